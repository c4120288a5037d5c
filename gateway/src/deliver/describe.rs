//! The description of a table from PostgreSQL's catalogue, and the statement that creates a table.

use tokio_postgres::Row;

use super::call_error::CallError;
use super::connection::get;
use crate::model::{ColumnKind, InsertPrivilege, Table, TableColumn};

/// Returns one row for each column, in order, and a single row without a column for a table without
/// columns. `$1` is the schema, `$2` the name.
pub const DESCRIBE: &str = "\
SELECT c.oid, format('%I.%I', n.nspname, c.relname), has_any_column_privilege(c.oid, 'INSERT'),
       a.attname::text, format_type(a.atttypid, a.atttypmod), b.name, a.attnotnull OR b.is_not_null,
       (a.atthasdef AND a.attgenerated = '') OR a.attidentity = 'd' OR b.has_default,
       a.attgenerated <> '' OR a.attidentity = 'a'
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN LATERAL (
       WITH RECURSIVE chain AS (
            SELECT t.typname, t.typnamespace, t.typtype, t.typbasetype, t.typnotnull, t.typdefault IS NOT NULL AS has_default
              FROM pg_type t WHERE t.oid = a.atttypid
             UNION ALL
            SELECT t.typname, t.typnamespace, t.typtype, t.typbasetype, d.typnotnull OR t.typnotnull,
                   d.has_default OR t.typdefault IS NOT NULL
              FROM chain d JOIN pg_type t ON t.oid = d.typbasetype WHERE d.typtype = 'd')
       SELECT CASE WHEN typnamespace = 'pg_catalog'::regnamespace THEN typname::text ELSE '' END AS name,
              typnotnull AS is_not_null, has_default
         FROM chain WHERE typtype <> 'd') b ON true
 WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p', 'f')
 ORDER BY a.attnum";

/// Returns one row if the table exists: whether the role exists, and whether it may insert. `$1` is
/// the role, `$2` is `schema.table`, quoted where SQL requires it. A role that may insert by SQL has
/// both privileges; one on some columns only does not suffice, because a batch may have all.
pub const MAY_INSERT: &str = "\
SELECT r.oid IS NOT NULL,
       coalesce(has_schema_privilege(r.oid, n.oid, 'USAGE') AND has_table_privilege(r.oid, c.oid, 'INSERT'), false)
  FROM (SELECT parse_ident($2::text) AS parts) p
  JOIN pg_namespace n ON n.nspname = p.parts[1]
  JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.parts[2] AND c.relkind IN ('r', 'p', 'f')
  LEFT JOIN pg_roles r ON r.rolname = $1
 WHERE array_length(p.parts, 1) = 2";

/// Reads a row of [`MAY_INSERT`].
pub fn privilege(row: &Row) -> Result<InsertPrivilege, CallError> {
    let (has_role, may_insert): (bool, bool) = (get(row, 0)?, get(row, 1)?);
    Ok(match (has_role, may_insert) {
        (true, true) => InsertPrivilege::Granted,
        (true, false) => InsertPrivilege::Denied,
        (false, _) => InsertPrivilege::NoRole,
    })
}

/// Builds the table that the rows of [`DESCRIBE`] describe; `None` if there are no rows.
pub fn table(rows: &[Row]) -> Result<Option<Table>, CallError> {
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let mut columns = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(name) = get(row, 3)? else { continue };
        columns.push(TableColumn {
            name,
            sql_type: get(row, 4)?,
            kind: ColumnKind::of_type(get(row, 5)?),
            is_not_null: get(row, 6)?,
            has_default: get(row, 7)?,
            is_generated: get(row, 8)?,
        });
    }
    Ok(Some(Table {
        oid: get(first, 0)?,
        name: get(first, 1)?,
        may_insert: get(first, 2)?,
        columns,
    }))
}

/// Returns the statement that creates a lanes table with these columns, unless a table with this
/// name exists.
pub fn create_statement(
    schema: &str,
    table: &str,
    columns: &[(&str, ColumnKind)],
    is_unlogged: bool,
) -> String {
    let columns: Vec<String> = columns
        .iter()
        .map(|(name, kind)| format!("{} {}", identifier(name), sql_type(*kind)))
        .collect();
    format!(
        "CREATE {}TABLE IF NOT EXISTS {}.{} ({}) USING lanes",
        if is_unlogged { "UNLOGGED " } else { "" },
        identifier(schema),
        identifier(table),
        columns.join(", ")
    )
}

/// Quotes a name as an SQL identifier.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The SQL type of a column of this kind.
pub fn sql_type(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Bool => "boolean",
        ColumnKind::Int2 => "smallint",
        ColumnKind::Int4 => "integer",
        ColumnKind::Int8 => "bigint",
        ColumnKind::Float4 => "real",
        ColumnKind::Float8 => "double precision",
        ColumnKind::Numeric => "numeric",
        ColumnKind::Timestamp => "timestamp with time zone",
        ColumnKind::Date => "date",
        ColumnKind::Uuid => "uuid",
        ColumnKind::Text | ColumnKind::Other => "text",
        ColumnKind::Bytes => "bytea",
        ColumnKind::Json => "jsonb",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        assert_eq!(
            create_statement(
                "s",
                "a\"; DROP TABLE t; --",
                &[("Ts", ColumnKind::Timestamp), ("x y", ColumnKind::Bytes)],
                true
            ),
            "CREATE UNLOGGED TABLE IF NOT EXISTS \"s\".\"a\"\"; DROP TABLE t; --\" \
             (\"Ts\" timestamp with time zone, \"x y\" bytea) USING lanes"
        );
    }
}
