//! The statements that a definition in the store may contain: those that `lanes.table_definition`
//! writes, about its own table.
//!
//! The check keeps out damaged, foreign and crudely forged records: no other kinds of statements
//! are executed, and only one at a time. It is not a sandbox. Defaults, checks, policies, generated
//! columns and indexes contain expressions, which may call any function. Some are evaluated while
//! rows are restored, others when the table is used later. Whoever can write to the store can
//! therefore do in the new database what the restoring role can. For this reason, restore requires
//! that the store is declared as trusted ([`super::command`]).

use super::plan::Definition;

impl Definition {
    /// Returns the statements in the order of their execution.
    pub fn statements(&self) -> impl Iterator<Item = &str> {
        let grants = self.grants.iter().map(|grant| &grant.statement);
        self.create
            .iter()
            .chain(&self.guard)
            .chain(&self.finish)
            .chain(grants)
            .map(String::as_str)
    }

    /// Checks whether a database may have written the definition.
    ///
    /// # Errors
    /// Returns the name or the statement that no database writes.
    pub fn check(&self) -> Result<(), String> {
        let table = &self.table;
        if !is_qualified_name(table) {
            return Err(format!(
                "a definition in the object store is not that of a table: {}",
                table.escape_debug()
            ));
        }
        match self
            .statements()
            .find(|statement| !is_written_of(table, statement))
        {
            None => Ok(()),
            Some(statement) => Err(format!(
                "the definition of {table} in the object store contains an unexpected statement: {}",
                statement.escape_debug()
            )),
        }
    }
}

/// What may follow `ALTER TABLE` and the name of the table.
const CHANGES: [&str; 7] = [
    "ADD COLUMN ",
    "ADD CONSTRAINT ",
    "ALTER COLUMN ",
    "DROP COLUMN ",
    "SET (",
    "ENABLE ROW LEVEL SECURITY",
    "FORCE ROW LEVEL SECURITY",
];

/// Whether a statement is of a kind that a table's definition contains, and about the table if it
/// names one at its beginning.
fn is_written_of(table: &str, statement: &str) -> bool {
    let of_table = |statement: &str, then: &[&str]| {
        let rest = statement.strip_prefix(table);
        let rest = rest.and_then(|rest| rest.strip_prefix(' '));
        rest.is_some_and(|rest| then.iter().any(|then| rest.starts_with(then)))
    };
    let after = |beginning: &str| statement.strip_prefix(beginning);
    if let Some(rest) = after("ALTER TABLE ") {
        return of_table(rest, &CHANGES);
    }
    if let Some(rest) = after("CREATE TABLE ").or_else(|| after("CREATE UNLOGGED TABLE ")) {
        return of_table(rest, &["("]);
    }
    if let Some(name) = after("CREATE SCHEMA IF NOT EXISTS ") {
        return after_identifier(name) == Some("");
    }
    if let Some(rest) = after("CREATE POLICY ") {
        let rest = after_identifier(rest).and_then(|rest| rest.strip_prefix(" ON "));
        return rest.is_some_and(|rest| of_table(rest, &["AS "]));
    }
    if let Some(rest) = after("CREATE INDEX ").or_else(|| after("CREATE UNIQUE INDEX ")) {
        let rest = after_identifier(rest).and_then(|rest| rest.strip_prefix(" ON "));
        // PostgreSQL writes ONLY for an index of a partitioned table.
        return rest
            .is_some_and(|rest| of_table(rest.strip_prefix("ONLY ").unwrap_or(rest), &["USING "]));
    }
    if let Some(rest) = after("CREATE SEQUENCE ") {
        return after_qualified_name(rest).is_some_and(|rest| rest.starts_with(" AS "));
    }
    if let Some(rest) = after("GRANT ") {
        let objects = [format!(" ON {table} TO "), " ON SEQUENCE ".to_owned()];
        return objects.iter().any(|object| rest.contains(object));
    }
    after("SELECT setval(").is_some()
}

fn is_qualified_name(text: &str) -> bool {
    after_qualified_name(text) == Some("")
}

/// Whether a text is a type as PostgreSQL's `format_type` writes it, and nothing else. The text is
/// inserted into statements.
pub(super) fn is_type(text: &str) -> bool {
    let (mut depth, mut is_quoted) = (0_u32, false);
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            // A modifier may contain whatever its type writes.
            ',' | '-' if depth > 0 => {}
            ' ' | '.' | '_' | '[' | ']' => {}
            c if c.is_ascii_alphanumeric() => {}
            _ => return false,
        }
    }
    depth == 0 && !is_quoted && !text.trim().is_empty()
}

/// Returns what follows a name with its schema; `None` if there is no such name.
fn after_qualified_name(text: &str) -> Option<&str> {
    after_identifier(after_identifier(text)?.strip_prefix('.')?)
}

/// Returns what follows an identifier as PostgreSQL writes it; `None` if there is none.
fn after_identifier(text: &str) -> Option<&str> {
    let Some(quoted) = text.strip_prefix('"') else {
        let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let end = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
        let is_name = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        return is_name.then(|| &text[end..]);
    };
    let mut rest = quoted;
    loop {
        rest = &rest[rest.find('"')? + 1..];
        match rest.strip_prefix('"') {
            // Two quotes stand for one in the name.
            Some(more) => rest = more,
            None => return Some(rest),
        }
    }
}

/// Returns a statement that is safe to print on a terminal. Anybody may have written the contents
/// of the store.
pub(super) fn shown(statement: &str) -> String {
    let escaped = statement.chars().map(|c| match c {
        '\n' | '\t' => c.to_string(),
        c if c.is_control() => c.escape_debug().to_string(),
        c => c.to_string(),
    });
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "public.\"od\"\"d; table\"";

    #[test]
    fn statements_that_databases_write_are_accepted() {
        for statement in [
            "CREATE SCHEMA IF NOT EXISTS \"S\"",
            "CREATE TABLE {t} (a int, b text COLLATE pg_catalog.\"C\") USING lanes WITH (hot = '1 day')",
            "CREATE UNLOGGED TABLE {t} (a int) USING lanes",
            "ALTER TABLE {t} ADD COLUMN late text DEFAULT 'before'::text",
            "ALTER TABLE {t} DROP COLUMN \"........lanes.dropped.1\"",
            "ALTER TABLE {t} SET (hot = '1 day')",
            "ALTER TABLE {t} ALTER COLUMN a SET DEFAULT nextval('s'::regclass)",
            "ALTER TABLE {t} ADD CONSTRAINT c CHECK ((a > 0))",
            "ALTER TABLE {t} ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE {t} FORCE ROW LEVEL SECURITY",
            "CREATE POLICY \"p q\" ON {t} AS PERMISSIVE FOR ALL TO PUBLIC USING (true)",
            "CREATE UNIQUE INDEX i ON {t} USING btree (a)",
            "CREATE SEQUENCE public.s AS bigint INCREMENT 1 OWNED BY {t}.a",
            "SELECT setval('public.s', max(a)::int8) FROM {t} HAVING max(a) IS NOT NULL",
            "GRANT SELECT ON {t} TO PUBLIC",
            "GRANT UPDATE (a) ON {t} TO r WITH GRANT OPTION",
            "GRANT USAGE ON SEQUENCE public.s TO r",
        ] {
            let statement = statement.replace("{t}", TABLE);
            assert!(is_written_of(TABLE, &statement), "{statement}");
        }
    }

    #[test]
    fn other_statements_are_refused() {
        for statement in [
            "",
            "DROP TABLE {t}",
            "ALTER TABLE public.other ADD COLUMN a int",
            "ALTER TABLE {t} OWNER TO postgres",
            "ALTER TABLE {t} RENAME TO other",
            "ALTER TABLE {t} DISABLE ROW LEVEL SECURITY",
            "CREATE TABLE {t} AS SELECT 1",
            "CREATE SCHEMA IF NOT EXISTS s CREATE TABLE t (a int)",
            "CREATE SCHEMA IF NOT EXISTS s; DROP SCHEMA s",
            "CREATE POLICY p ON public.other AS PERMISSIVE FOR ALL TO PUBLIC",
            "CREATE INDEX i ON public.other USING btree (a)",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "CREATE ROLE r SUPERUSER",
            "GRANT postgres TO r",
            "COPY {t} FROM PROGRAM 'id'",
            "SELECT pg_read_file('/etc/passwd')",
            "DO 'BEGIN END'",
            "alter table {t} add column a int",
        ] {
            let statement = statement.replace("{t}", TABLE);
            assert!(!is_written_of(TABLE, &statement), "{statement}");
        }
    }

    #[test]
    fn a_name_is_two_identifiers_and_nothing_else() {
        for name in ["public.t", "a_1.\"b c\"", "\"a\"\"b\".\"\"\"\"", TABLE] {
            assert!(is_qualified_name(name), "{name}");
        }
        for name in [
            "t",
            "public.t; DROP TABLE u",
            "public.",
            "Public.t",
            "public.\"t",
            "1.t",
            "",
        ] {
            assert!(!is_qualified_name(name), "{name}");
        }
    }

    #[test]
    fn text_after_a_type_is_refused() {
        for text in [
            "bigint",
            "timestamp(3) with time zone",
            "numeric(10,-2)",
            "character varying(3)[]",
            "public.\"My; type\"\"\"",
            "geometry(Point,4326)",
            "\"char\"",
        ] {
            assert!(is_type(text), "{text}");
        }
        for text in [
            "",
            "int); DROP TABLE t",
            "int; DROP TABLE t",
            "int, b int",
            "int)",
            "(int",
            "\"int",
            "int DEFAULT 'a'",
            "int /* */",
        ] {
            assert!(!is_type(text), "{text}");
        }
    }

    #[test]
    fn printed_statements_contain_no_control_characters() {
        assert_eq!(shown("a\tb\n\u{1b}[2Jc\r"), "a\tb\n\\u{1b}[2Jc\\r");
    }
}
