//! The format of a body, by its `Content-Type`.

use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};

/// The format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One batch of crate `lanes-wire`.
    FlatBuffers,
    /// An array of objects, or a sequence of objects.
    Json,
    /// An Arrow IPC stream.
    Arrow,
}

const SUPPORTED: &str = "use application/x-flatbuffers, application/json, application/x-ndjson or application/vnd.apache.arrow.stream";

impl Format {
    /// The memory that a request is expected to hold until it is answered, in multiples of its
    /// body: the body, and the batch made of it if the body is not a batch itself.
    pub fn times_body(self) -> usize {
        match self {
            Self::FlatBuffers => 1,
            Self::Json | Self::Arrow => 2,
        }
    }

    /// Returns the format that the headers name.
    ///
    /// # Errors
    /// Returns what was found and what is supported, as the text of a 415.
    pub fn of(headers: &HeaderMap) -> Result<Self, String> {
        if let Some(encoding) = headers.get(CONTENT_ENCODING)
            && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
        {
            return Err(format!(
                "Content-Encoding {encoding:?} is not supported; send the body without encoding"
            ));
        }
        let Some(content_type) = headers.get(CONTENT_TYPE) else {
            return Err(format!("Content-Type is missing; {SUPPORTED}"));
        };
        let media_type = content_type
            .as_bytes()
            .split(|byte| *byte == b';')
            .next()
            .unwrap_or_default()
            .trim_ascii();
        let is = |name: &str| media_type.eq_ignore_ascii_case(name.as_bytes());
        if is("application/x-flatbuffers") {
            Ok(Self::FlatBuffers)
        } else if is("application/json") || is("application/x-ndjson") {
            Ok(Self::Json)
        } else if is("application/vnd.apache.arrow.stream") {
            Ok(Self::Arrow)
        } else {
            Err(format!(
                "Content-Type {content_type:?} is not supported; {SUPPORTED}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn of(
        content_type: Option<&'static str>,
        encoding: Option<&'static str>,
    ) -> Result<Format, String> {
        let mut headers = HeaderMap::new();
        if let Some(text) = content_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(text));
        }
        if let Some(text) = encoding {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(text));
        }
        Format::of(&headers)
    }

    #[test]
    fn formats_by_their_names() {
        assert_eq!(
            of(Some("application/x-flatbuffers"), None),
            Ok(Format::FlatBuffers)
        );
        assert_eq!(
            of(Some("Application/JSON; charset=utf-8"), Some("identity")),
            Ok(Format::Json)
        );
        assert_eq!(of(Some("application/x-ndjson"), None), Ok(Format::Json));
        assert_eq!(
            of(Some("application/vnd.apache.arrow.stream"), None),
            Ok(Format::Arrow)
        );
    }

    #[test]
    fn other_formats_are_refused_with_those_supported() {
        for (content_type, encoding, expected) in [
            (None, None, "is missing; use application/x-flatbuffers"),
            (Some("text/csv"), None, "\"text/csv\" is not supported; use"),
            (
                Some("application/json"),
                Some("gzip"),
                "Content-Encoding \"gzip\" is not supported",
            ),
        ] {
            let error = of(content_type, encoding).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
