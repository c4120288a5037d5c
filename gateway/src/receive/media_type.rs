//! The headers of remote write 1.0. Other requests to the write route are answered with 415.
//! Senders that support several protocols (vmagent, Prometheus with 2.0) fall back to 1.0 on
//! exactly this status.

use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};

/// Why a request is not remote write 1.0, as text for the sender.
pub type Unsupported = String;

/// Accepts remote write 1.0 compressed with snappy. `Content-Type` is required, as in the protocol:
/// a web page cannot send this type to another site without a preflight request. A missing
/// `Content-Encoding` means snappy, as in Prometheus's own receiver.
///
/// # Errors
/// Returns what was found and what is supported.
pub fn check(headers: &HeaderMap) -> Result<(), Unsupported> {
    if let Some(encoding) = single(headers, &CONTENT_ENCODING)?
        && !encoding.trim().eq_ignore_ascii_case("snappy")
    {
        return Err(format!(
            "Content-Encoding {encoding:?} is not supported; use snappy (block format)"
        ));
    }
    match single(headers, &CONTENT_TYPE)? {
        Some(content_type) => check_content_type(content_type),
        None => Err("Content-Type is missing; use application/x-protobuf".to_owned()),
    }
}

fn check_content_type(content_type: &str) -> Result<(), Unsupported> {
    let mut parts = content_type.split(';');
    let media_type = parts.next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/x-protobuf") {
        return Err(format!(
            "Content-Type {content_type:?} is not supported; use application/x-protobuf"
        ));
    }
    for parameter in parts {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = value.trim().trim_matches('"');
        if name.trim().eq_ignore_ascii_case("proto") && value != "prometheus.WriteRequest" {
            return Err(format!(
                "protobuf message {value:?} is not supported; use prometheus.WriteRequest (remote write 1.0)"
            ));
        }
    }
    Ok(())
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Unsupported> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(format!("header {name} is present more than once"));
    }
    value
        .to_str()
        .map(Some)
        .map_err(|_| format!("header {name} is not text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(headers: &[(HeaderName, &str)]) -> bool {
        check(
            &headers
                .iter()
                .map(|(name, value)| (name.clone(), value.parse().unwrap()))
                .collect(),
        )
        .is_ok()
    }

    #[test]
    fn remote_write_1_is_supported() {
        assert!(checked(&[(CONTENT_TYPE, "application/x-protobuf")]));
        assert!(checked(&[
            (CONTENT_ENCODING, "snappy"),
            (CONTENT_TYPE, "application/x-protobuf")
        ]));
        assert!(checked(&[
            (CONTENT_ENCODING, "Snappy"),
            (CONTENT_TYPE, "Application/X-Protobuf; charset=x")
        ]));
        assert!(checked(&[(
            CONTENT_TYPE,
            "application/x-protobuf;proto=prometheus.WriteRequest"
        )]));
        assert!(checked(&[(
            CONTENT_TYPE,
            "application/x-protobuf; PROTO=\"prometheus.WriteRequest\""
        )]));
    }

    #[test]
    fn everything_else_is_refused() {
        assert!(!checked(&[]));
        assert!(!checked(&[(CONTENT_ENCODING, "snappy")]));
        for encoding in ["zstd", "gzip", "identity", "snappy, gzip", ""] {
            let protobuf = (CONTENT_TYPE, "application/x-protobuf");
            assert!(
                !checked(&[(CONTENT_ENCODING, encoding), protobuf]),
                "{encoding}"
            );
        }
        for content_type in [
            "application/json",
            "text/plain",
            "",
            "application/x-protobuf;proto=io.prometheus.write.v2.Request",
            "application/x-protobuf; proto=\"io.prometheus.write.v2.Request\"",
            "application/x-protobuf; proto",
        ] {
            assert!(!checked(&[(CONTENT_TYPE, content_type)]), "{content_type}");
        }
    }

    #[test]
    fn a_header_twice_is_refused() {
        let mut headers = HeaderMap::new();
        headers.append(CONTENT_ENCODING, "snappy".parse().unwrap());
        headers.append(CONTENT_ENCODING, "zstd".parse().unwrap());
        assert!(check(&headers).is_err());
    }
}
