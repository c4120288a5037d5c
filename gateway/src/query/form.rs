//! The parameters of a request, from its body and its URL.
//!
//! As in Prometheus, the body of a POST request counts if it is a form; where the body and the URL
//! have a parameter both, that of the body comes first.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;

/// The maximum length of a body, in bytes.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// The parameters of a request, in the order in which they count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    pairs: Vec<(String, String)>,
}

impl Form {
    /// Reads the parameters from a body, which is empty for GET, and from the query of a URL. Bytes
    /// that are not UTF-8 are replaced.
    pub fn parse(body: &[u8], url_query: &str) -> Self {
        let of_body = form_urlencoded::parse(body).into_owned();
        let of_url = form_urlencoded::parse(url_query.as_bytes()).into_owned();
        Self {
            pairs: of_body.chain(of_url).collect(),
        }
    }

    /// Returns the first value of a parameter; the empty text if it is missing.
    pub fn get(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    /// Returns all values of a parameter.
    pub fn all<'f>(&'f self, name: &str) -> impl Iterator<Item = &'f str> {
        let named = self.pairs.iter().filter(move |(found, _)| found == name);
        named.map(|(_, value)| value.as_str())
    }
}

/// Whether the headers announce a form in the body.
pub fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    let kind = kind.and_then(|kind| kind.split(|byte| *byte == b';').next());
    kind.is_some_and(|kind| {
        kind.trim_ascii()
            .eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_counts_before_the_url() {
        let form = Form::parse(b"query=a%2Bb+c&match[]=x", "query=url&match%5B%5D=y&time=1");
        assert_eq!(form.get("query"), "a+b c");
        assert_eq!(form.get("time"), "1");
        assert_eq!(form.get("step"), "");
        assert_eq!(form.all("match[]").collect::<Vec<_>>(), ["x", "y"]);
    }

    #[test]
    fn only_forms_are_read() {
        let is_form_of = |kind: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            is_form(&headers)
        };
        assert!(is_form_of("application/x-www-form-urlencoded"));
        assert!(is_form_of(
            "Application/X-WWW-form-urlencoded; charset=utf-8"
        ));
        assert!(!is_form_of("application/json"));
        assert!(!is_form(&HeaderMap::new()));
    }
}
