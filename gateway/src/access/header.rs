//! The header `Authorization`: a name with a password, or a token.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What a header claims.
#[derive(PartialEq, Eq)]
pub enum Claim {
    /// `Basic`: a user and its password.
    Password {
        /// The name.
        name: String,
        /// The password.
        password: Vec<u8>,
    },
    /// `Bearer`: a token.
    Token(Vec<u8>),
}

/// Reads the value of a header; `None` if it is neither of the two schemes, or malformed.
pub fn parse(value: &[u8]) -> Option<Claim> {
    let space = value.iter().position(|byte| *byte == b' ')?;
    let (scheme, rest) = value.split_at(space);
    let rest = rest.trim_ascii();
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return (!rest.is_empty()).then(|| Claim::Token(rest.to_vec()));
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let decoded = STANDARD.decode(rest).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let name = String::from_utf8(decoded.get(..colon)?.to_vec()).ok()?;
    Some(Claim::Password {
        name,
        password: decoded.get(colon + 1..)?.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(value: &str) -> Option<(String, Vec<u8>)> {
        match parse(value.as_bytes())? {
            Claim::Password { name, password } => Some((name, password)),
            Claim::Token(_) => None,
        }
    }

    fn token(value: &str) -> Option<Vec<u8>> {
        match parse(value.as_bytes())? {
            Claim::Token(token) => Some(token),
            Claim::Password { .. } => None,
        }
    }

    #[test]
    fn both_schemes_are_read_in_any_case() {
        // alice:pa:ss
        let expected = Some(("alice".to_owned(), b"pa:ss".to_vec()));
        assert_eq!(password("Basic YWxpY2U6cGE6c3M="), expected);
        assert_eq!(password("bASIC  YWxpY2U6cGE6c3M= "), expected);
        assert_eq!(password("Basic Og=="), Some((String::new(), Vec::new())));
        assert_eq!(token("Bearer abc.d-e"), Some(b"abc.d-e".to_vec()));
        assert_eq!(token("BEARER abc"), Some(b"abc".to_vec()));
    }

    #[test]
    fn everything_else_is_refused() {
        for value in [
            "",
            "Basic",
            "Basic ",
            "Bearer ",
            "Basic !!!",
            // alice, without a colon
            "Basic YWxpY2U=",
            // without padding
            "Basic YWxpY2U6cGE6c3M",
            // a name that is not UTF-8
            "Basic /zp4",
            "Digest username=\"alice\"",
            "BasicYWxpY2U6cGE6c3M=",
        ] {
            assert!(parse(value.as_bytes()).is_none(), "{value}");
        }
    }
}
