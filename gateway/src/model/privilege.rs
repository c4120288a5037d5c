//! What a role may do to a table.

/// What PostgreSQL says about INSERT of a role into a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertPrivilege {
    /// The role may insert.
    Granted,
    /// The role lacks INSERT on the table, or USAGE on its schema.
    Denied,
    /// There is no such role.
    NoRole,
    /// There is no such table.
    NoTable,
}
