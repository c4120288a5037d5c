//! A table, its columns, and the batch types that they accept.

use lanes_wire::ColumnType;

/// A table that events are appended to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The oid. A table that is dropped and created again gets another one.
    pub oid: u32,
    /// The schema and name for messages, quoted where SQL requires it.
    pub name: String,
    /// The columns in their order.
    pub columns: Vec<TableColumn>,
    /// Whether the gateway's role may insert into the table, or into some of its columns.
    pub may_insert: bool,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// The name.
    pub name: String,
    /// The type for messages, as SQL writes it.
    pub sql_type: String,
    /// The values that the column accepts.
    pub kind: ColumnKind,
    /// Whether the column is NOT NULL.
    pub is_not_null: bool,
    /// Whether the column has a default other than NULL.
    pub has_default: bool,
    /// Whether a batch must not contain the column because it is generated, or an identity column
    /// GENERATED ALWAYS.
    pub is_generated: bool,
}

impl TableColumn {
    /// Creates a nullable column without a default. Its kind follows from the type, which is named
    /// as in `pg_catalog`.
    pub fn nullable(name: &str, sql_type: &str) -> Self {
        Self {
            name: name.to_owned(),
            sql_type: sql_type.to_owned(),
            kind: ColumnKind::of_type(sql_type),
            is_not_null: false,
            has_default: false,
            is_generated: false,
        }
    }
}

/// The kinds of SQL types that events distinguish. A domain has the kind of its base type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// `boolean`.
    Bool,
    /// `smallint`.
    Int2,
    /// `integer`.
    Int4,
    /// `bigint`.
    Int8,
    /// `real`.
    Float4,
    /// `double precision`.
    Float8,
    /// `numeric`.
    Numeric,
    /// `timestamptz` and `timestamp`.
    Timestamp,
    /// `date`.
    Date,
    /// `uuid`.
    Uuid,
    /// `text`, `varchar` and `char`.
    Text,
    /// `bytea`.
    Bytes,
    /// `json` and `jsonb`, converted by their input functions from any JSON value.
    Json,
    /// Every other type, converted from text by its input function.
    Other,
}

impl ColumnKind {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::Int2,
        Self::Int4,
        Self::Int8,
        Self::Float4,
        Self::Float8,
        Self::Numeric,
        Self::Timestamp,
        Self::Date,
        Self::Uuid,
        Self::Text,
        Self::Bytes,
        Self::Json,
        Self::Other,
    ];

    /// The kind of a base type, by its name in `pg_catalog`. Types of other schemas are
    /// [`ColumnKind::Other`].
    pub fn of_type(name: &str) -> Self {
        match name {
            "bool" => Self::Bool,
            "int2" => Self::Int2,
            "int4" => Self::Int4,
            "int8" => Self::Int8,
            "float4" => Self::Float4,
            "float8" => Self::Float8,
            "numeric" => Self::Numeric,
            "timestamptz" | "timestamp" => Self::Timestamp,
            "date" => Self::Date,
            "uuid" => Self::Uuid,
            "text" | "varchar" | "bpchar" => Self::Text,
            "bytea" => Self::Bytes,
            "json" | "jsonb" => Self::Json,
            _ => Self::Other,
        }
    }

    /// The kind of a column that is created for values of a batch type.
    pub fn of_batch(column_type: ColumnType) -> Self {
        match column_type {
            ColumnType::Bool => Self::Bool,
            ColumnType::Int16 => Self::Int2,
            ColumnType::Int32 => Self::Int4,
            ColumnType::Int64 => Self::Int8,
            ColumnType::Float32 => Self::Float4,
            ColumnType::Float64 => Self::Float8,
            ColumnType::Timestamp => Self::Timestamp,
            ColumnType::Date => Self::Date,
            ColumnType::Uuid => Self::Uuid,
            ColumnType::Text => Self::Text,
            ColumnType::Bytes => Self::Bytes,
        }
    }

    /// The batch type for values of this kind from a format without types of its own (JSON).
    pub fn natural(self) -> ColumnType {
        match self {
            Self::Bool => ColumnType::Bool,
            Self::Int2 => ColumnType::Int16,
            Self::Int4 => ColumnType::Int32,
            Self::Int8 => ColumnType::Int64,
            Self::Float4 => ColumnType::Float32,
            Self::Float8 => ColumnType::Float64,
            Self::Timestamp => ColumnType::Timestamp,
            Self::Date => ColumnType::Date,
            Self::Uuid => ColumnType::Uuid,
            Self::Bytes => ColumnType::Bytes,
            Self::Numeric | Self::Text | Self::Json | Self::Other => ColumnType::Text,
        }
    }

    /// Whether `lanes.append` accepts values of a batch type for this kind.
    pub fn takes(self, from: ColumnType) -> bool {
        use ColumnType as From;
        let is_integer = matches!(from, From::Int16 | From::Int32 | From::Int64);
        let is_number = is_integer || matches!(from, From::Float32 | From::Float64);
        // Every type accepts text through its input function.
        from == From::Text
            || match self {
                Self::Bool => from == From::Bool,
                Self::Int2 | Self::Int4 | Self::Int8 | Self::Numeric => is_integer,
                Self::Float4 | Self::Float8 => is_number,
                Self::Timestamp => from == From::Timestamp,
                Self::Date => from == From::Date,
                Self::Uuid => from == From::Uuid,
                Self::Bytes => from == From::Bytes,
                Self::Text | Self::Json | Self::Other => false,
            }
    }
}

impl Table {
    /// The index of the column with this name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_accepts_its_natural_type_and_text() {
        for kind in ColumnKind::ALL {
            assert!(kind.takes(kind.natural()), "{kind:?}");
            assert!(kind.takes(ColumnType::Text), "{kind:?}");
        }
    }

    #[test]
    fn a_column_created_for_a_type_accepts_it_unchanged() {
        for column_type in ColumnType::ALL {
            let kind = ColumnKind::of_batch(column_type);
            assert_eq!(kind.natural(), column_type);
        }
    }

    #[test]
    fn types_do_not_mix() {
        assert!(!ColumnKind::Bool.takes(ColumnType::Int16));
        assert!(
            !ColumnKind::Int8.takes(ColumnType::Float64),
            "fractions are not dropped silently"
        );
        assert!(!ColumnKind::Text.takes(ColumnType::Int32));
        assert!(!ColumnKind::Timestamp.takes(ColumnType::Int64));
        assert!(ColumnKind::Float4.takes(ColumnType::Int64));
    }
}
