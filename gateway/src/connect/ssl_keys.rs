//! libpq's keys of TLS, taken out of a connection string.
//!
//! The parser of `tokio-postgres` refuses most of these keys, so it gets the rest of the string. It
//! knows the same two forms as libpq: `key=value` pairs, and URLs.

use percent_encoding::percent_decode_str;

/// Keys of libpq that change what TLS protects, and that the gateway does not have. Ignoring one
/// would protect less than its user believes.
const UNSUPPORTED: [(&str, &str); 10] = [
    (
        "sslcrl",
        "certificates that were withdrawn are not looked up",
    ),
    (
        "sslcrldir",
        "certificates that were withdrawn are not looked up",
    ),
    (
        "sslpassword",
        "remove the password of the key: openssl pkey -in KEY -out NEW",
    ),
    (
        "sslcertmode",
        "leave out sslcert and sslkey to send no certificate",
    ),
    ("sslsni", "the host name is always sent"),
    ("sslcompression", "TLS is never compressed"),
    ("ssl_min_protocol_version", "TLS 1.2 is the least version"),
    (
        "ssl_max_protocol_version",
        "TLS 1.3 is the greatest version",
    ),
    (
        "requirepeer",
        "name the folder of a socket that only the server can write to",
    ),
    ("gssencmode", "GSSAPI is not used"),
];

/// The values of the keys, as text. The last value of a key counts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SslKeys {
    /// `sslmode`.
    pub mode: Option<String>,
    /// `sslrootcert`: a path, or `system`.
    pub root: Option<String>,
    /// `sslcert`: a path.
    pub certificate: Option<String>,
    /// `sslkey`: a path.
    pub key: Option<String>,
}

impl SslKeys {
    /// Fills in what is missing from libpq's variables of the environment.
    pub fn or_environment(mut self, variable: impl Fn(&str) -> Option<String>) -> Self {
        for (place, name) in [
            (&mut self.mode, "PGSSLMODE"),
            (&mut self.root, "PGSSLROOTCERT"),
            (&mut self.certificate, "PGSSLCERT"),
            (&mut self.key, "PGSSLKEY"),
        ] {
            if place.is_none() {
                *place = variable(name).filter(|value| !value.is_empty());
            }
        }
        self
    }

    /// Returns the place of a key; `None` for a key that is none of TLS.
    fn place(&mut self, key: &str) -> Result<Option<&mut Option<String>>, String> {
        if let Some((_, instead)) = UNSUPPORTED.iter().find(|(known, _)| *known == key) {
            return Err(format!("{key} is not supported: {instead}"));
        }
        Ok(match key {
            "sslmode" => Some(&mut self.mode),
            "sslrootcert" => Some(&mut self.root),
            "sslcert" => Some(&mut self.certificate),
            "sslkey" => Some(&mut self.key),
            _ => None,
        })
    }

    /// Keeps a value if its key is one of TLS. Returns whether it is.
    fn take(&mut self, key: &str, value: impl FnOnce() -> String) -> Result<bool, String> {
        let Some(place) = self.place(key)? else {
            return Ok(false);
        };
        // libpq takes an empty value for a missing one.
        *place = Some(value()).filter(|value| !value.is_empty());
        Ok(true)
    }
}

/// Returns the keys of TLS, and the connection string without them.
///
/// # Errors
/// Returns the name of a key that is not supported.
pub fn take(text: &str) -> Result<(SslKeys, String), String> {
    let scheme = ["postgres://", "postgresql://"]
        .into_iter()
        .find(|scheme| text.starts_with(scheme));
    match scheme {
        Some(scheme) => take_from_url(text, scheme.len()),
        None => take_from_pairs(text),
    }
}

/// A URL's parameters begin at the first question mark after the password.
fn take_from_url(text: &str, scheme_bytes: usize) -> Result<(SslKeys, String), String> {
    let mut keys = SslKeys::default();
    let host = text.find('@').map_or(scheme_bytes, |at| at + 1);
    let Some(mark) = text[host..].find('?').map(|mark| host + mark) else {
        return Ok((keys, text.to_owned()));
    };
    let decoded = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let mut others = Vec::new();
    for parameter in text[mark + 1..].split('&') {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if !keys.take(&decoded(key), || decoded(value))? {
            others.push(parameter);
        }
    }
    let separator = if others.is_empty() { "" } else { "?" };
    let rest = format!("{}{separator}{}", &text[..mark], others.join("&"));
    Ok((keys, rest))
}

fn take_from_pairs(text: &str) -> Result<(SslKeys, String), String> {
    let mut keys = SslKeys::default();
    let mut others = String::new();
    let mut rest = text;
    // Text that is no pair is left to the other parser, which refuses it.
    while let Some(pair) = Pair::read(rest) {
        if !keys.take(pair.key, || pair.value)? {
            others.push_str(pair.text);
            others.push(' ');
        }
        rest = pair.rest;
    }
    others.push_str(rest.trim_start());
    Ok((keys, others))
}

/// A pair `key=value`, with spaces around the sign, and perhaps quotes around the value.
struct Pair<'a> {
    key: &'a str,
    value: String,
    /// The pair as written.
    text: &'a str,
    /// The text after the pair.
    rest: &'a str,
}

impl<'a> Pair<'a> {
    /// Reads the first pair of a text; `None` if it does not begin with one.
    fn read(text: &'a str) -> Option<Self> {
        let start = text.trim_start();
        let (key, after) = start.split_once('=')?;
        let key = key.trim_end();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return None;
        }
        let after = after.trim_start();
        let is_quoted = after.starts_with('\'');
        let mut characters = after.char_indices().skip(usize::from(is_quoted));
        let mut value = String::new();
        let end = loop {
            match characters.next() {
                None if is_quoted => return None,
                None => break after.len(),
                Some((at, '\'')) if is_quoted => break at + 1,
                Some((at, space)) if !is_quoted && space.is_whitespace() => break at,
                Some((_, '\\')) => value.push(characters.next()?.1),
                Some((_, other)) => value.push(other),
            }
        };
        let (_, rest) = after.split_at(end);
        let pair = &start[..start.len() - rest.len()];
        Some(Self {
            key,
            value,
            text: pair,
            rest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(values: [&str; 4]) -> SslKeys {
        let [mode, root, certificate, key] =
            values.map(|value| Some(value.to_owned()).filter(|value| !value.is_empty()));
        SslKeys {
            mode,
            root,
            certificate,
            key,
        }
    }

    #[test]
    fn keys_are_taken_out_of_both_forms() {
        for (text, expected, rest) in [
            ("host=a user=b", ["", "", "", ""], "host=a user=b "),
            (
                "host=a sslmode=verify-full sslrootcert = '/a b/it\\'s' user=b",
                ["verify-full", "/a b/it's", "", ""],
                "host=a user=b ",
            ),
            (
                "sslcert=c sslkey=k\\ k password='sslmode=disable x' sslmode=allow sslmode=prefer",
                ["prefer", "", "c", "k k"],
                "password='sslmode=disable x' ",
            ),
            ("sslmode=''", ["", "", "", ""], ""),
            (
                "postgresql://u:p%3F@h:1/d?sslmode=require&connect_timeout=3&sslrootcert=%2Fa%20b",
                ["require", "/a b", "", ""],
                "postgresql://u:p%3F@h:1/d?connect_timeout=3",
            ),
            (
                "postgres://h?sslmode=verify-ca",
                ["verify-ca", "", "", ""],
                "postgres://h",
            ),
            ("postgres://h/d", ["", "", "", ""], "postgres://h/d"),
            (
                "postgres://u:a?sslmode=disable@h/d?sslkey=k",
                ["", "", "", "k"],
                "postgres://u:a?sslmode=disable@h/d",
            ),
        ] {
            let taken = take(text);
            assert_eq!(taken, Ok((keys(expected), rest.to_owned())), "{text}");
        }
    }

    #[test]
    fn what_is_no_connection_string_is_left_to_its_parser() {
        for text in ["host", "host=a b", "password='open", "a b=c"] {
            let (keys, rest) = take(text).unwrap();
            assert_eq!((keys, rest.as_str()), (SslKeys::default(), text));
            assert!(rest.parse::<tokio_postgres::Config>().is_err(), "{text}");
        }
    }

    #[test]
    fn keys_that_would_protect_more_are_refused() {
        for text in [
            "host=a sslcrl=/x",
            "postgres://a?sslpassword=secret",
            "ssl_min_protocol_version=TLSv1.3",
        ] {
            let error = take(text).unwrap_err();
            assert!(error.contains("is not supported"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_environment_fills_in_what_is_missing() {
        let variable = |name: &str| match name {
            "PGSSLMODE" => Some("require".to_owned()),
            "PGSSLROOTCERT" => Some("/env".to_owned()),
            "PGSSLCERT" => Some(String::new()),
            _ => None,
        };
        let filled = keys(["disable", "", "", ""]).or_environment(variable);
        assert_eq!(filled, keys(["disable", "/env", "", ""]));
    }
}
