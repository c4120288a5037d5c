//! Codes of conditions and values that PostgreSQL evaluates once for each row of a small side.

/// The code of a condition that does not hold.
pub const FALSE: u64 = 0;
/// The code of a condition that holds.
pub const TRUE: u64 = 1;
/// The code of a condition that is NULL.
pub const NULL: u64 = 2;

/// The code of a value that is NULL.
pub const NULL_VALUE: u64 = 0;
