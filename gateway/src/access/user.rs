//! A user, and the PostgreSQL role that decides what it may do.

use std::sync::Arc;

use crate::quota::limits::OwnLimits;

/// The longest name of a role, in bytes. PostgreSQL would cut a longer one, and so take another
/// role.
pub const ROLE_BYTES_MAX: usize = 63;

/// A user of the file.
#[derive(Debug, PartialEq, Eq)]
pub struct User {
    /// The name, as the file has it.
    pub name: String,
    /// The PostgreSQL role.
    pub role: Arc<str>,
    /// The user's own limits of writing. A limit that the file does not give has the default.
    pub limits: OwnLimits,
}

/// Who sent a request; `None` if no credentials are wanted.
pub type Caller = Option<Arc<User>>;

/// Checks the name of a role.
///
/// # Errors
/// Returns why no role can have this name.
pub fn check_role(role: &str) -> Result<(), String> {
    if role.is_empty() || role.len() > ROLE_BYTES_MAX || role.contains('\0') {
        return Err(format!(
            "the name of a PostgreSQL role has 1 to {ROLE_BYTES_MAX} bytes without NUL"
        ));
    }
    // SET ROLE takes this word, quoted too, for the role of the login.
    if role == "none" {
        return Err("PostgreSQL has no role \"none\"".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_names_that_postgresql_does_not_change() {
        for good in ["a", "Alice \"x\"", &"r".repeat(63)] {
            assert_eq!(check_role(good), Ok(()), "{good}");
        }
        for bad in ["", "none", "a\0b", &"r".repeat(64)] {
            assert!(check_role(bad).is_err(), "{bad:?}");
        }
    }
}
