//! The fuzzing entries: any bytes as the parameters of a request, and as a remote read request. The
//! code must return for any input, and its result must keep the guarantees that later code relies
//! on.

use super::deletion::Selection;
use super::form::Form;
use super::labels::{self, LabelRequest};
use super::remote_read::answer;
use super::remote_read::request::{QUERIES_MAX, ReadRequest};
use super::remote_read::statement::Parameters;
use super::{evaluate, parameters, selectors, syntax};

/// Reads `data` as the parameters of each route: the body before the first NUL, the URL's query
/// after it. Panics only if a guarantee is broken.
pub fn exercise_parameters(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == 0);
    let (body, url) = data.split_at(end.unwrap_or(data.len()));
    let url = String::from_utf8_lossy(url.get(1..).unwrap_or_default());
    let form = Form::parse(body, &url);
    for name in ["time", "start", "end"] {
        if let Ok(Some(time)) = parameters::optional_time(&form, name) {
            // A time that PostgreSQL lacks is known before it is sent.
            std::hint::black_box(time.system_time());
        }
    }
    let longest = std::time::Duration::from_secs(120);
    if let Ok(timeout) = parameters::timeout(&form, longest) {
        assert!(!timeout.is_zero() && timeout <= longest);
    }
    if let Ok(times) = evaluate::range(&form) {
        assert!(times.start <= times.stop && times.step > Some(0.0));
    }
    if let Ok(request) = LabelRequest::parse(&form) {
        assert!(request.rows_max().is_none_or(|rows| rows > 1));
    }
    std::hint::black_box(labels::unescaped(form.get("name")));
    if let Ok(Some(selection)) = Selection::parse(&form) {
        assert!(selection.first < selection.until, "a deletion has times");
    }
    for selector in selectors::all(&form).unwrap_or_default() {
        assert_is_canonical(&selector);
    }
    let _ = syntax::format_query(&form);
    let _ = syntax::parse_query(&form);
    let _ = syntax::query_exemplars(&form);
}

/// Reads `data` as a remote read request, compressed or not. Panics only if a guarantee is broken.
pub fn exercise_remote_read(data: &[u8]) {
    let plain = ReadRequest::decode(data).ok();
    for request in plain.into_iter().chain(answer::request(data).ok()) {
        assert!(request.queries.len() <= QUERIES_MAX);
        for query in &request.queries {
            assert_is_canonical(&query.selector);
        }
        let parameters = Parameters::of(request.queries);
        let lengths = [
            parameters.places.len(),
            parameters.selectors.len(),
            parameters.firsts.len(),
        ];
        assert_eq!(lengths, [parameters.untils.len(); 3]);
        let times = parameters.firsts.iter().zip(&parameters.untils);
        assert!(times.clone().all(|(first, until)| first < until));
        if let Some((first, until)) = parameters.bounds() {
            assert!(times.into_iter().all(|(a, b)| first <= *a && *b <= until));
        }
    }
}

/// A selector that is sent to the database is one that the SQL functions of labels read.
fn assert_is_canonical(selector: &str) {
    let read = lanes_labels::selector::Selector::parse(selector);
    assert!(read.is_ok(), "{selector} is not read");
}
