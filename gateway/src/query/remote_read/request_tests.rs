//! Requests encoded by prost, and bytes that are none.

use prost::Message;

use super::*;

#[derive(Clone, PartialEq, Message)]
struct Wire {
    #[prost(message, repeated, tag = "1")]
    queries: Vec<WireQuery>,
    #[prost(int32, repeated, tag = "2")]
    accepted: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct WireQuery {
    #[prost(int64, tag = "1")]
    start: i64,
    #[prost(int64, tag = "2")]
    end: i64,
    #[prost(message, repeated, tag = "3")]
    matchers: Vec<WireMatcher>,
    #[prost(message, optional, tag = "4")]
    hints: Option<WireHints>,
}

#[derive(Clone, PartialEq, Message)]
struct WireMatcher {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct WireHints {
    #[prost(int64, tag = "1")]
    step: i64,
    #[prost(string, tag = "2")]
    func: String,
    #[prost(int64, tag = "3")]
    start: i64,
    #[prost(int64, tag = "4")]
    end: i64,
    #[prost(string, repeated, tag = "5")]
    grouping: Vec<String>,
}

fn matcher(kind: i32, name: &str, value: &str) -> WireMatcher {
    WireMatcher {
        kind,
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

fn query(matchers: Vec<WireMatcher>) -> WireQuery {
    WireQuery {
        start: -5,
        end: 1000,
        matchers,
        hints: None,
    }
}

fn decoded(queries: Vec<WireQuery>, accepted: Vec<i32>) -> Result<ReadRequest, RequestError> {
    ReadRequest::decode(&Wire { queries, accepted }.encode_to_vec())
}

#[test]
fn queries_have_all_kinds_of_matchers() {
    let matchers = vec![
        matcher(0, "__name__", "up"),
        matcher(1, "a", "\"b\""),
        matcher(2, "c", "d|e"),
        matcher(3, "f", ".+"),
    ];
    let request = decoded(vec![query(matchers), query(Vec::new())], vec![]).unwrap();
    let selectors: Vec<_> = request.queries.iter().map(|one| &one.selector).collect();
    assert_eq!(
        selectors,
        [
            r#"{"__name__"="up","a"!="\"b\"","c"=~"d|e","f"!~".+"}"#,
            "{}"
        ]
    );
    assert_eq!(
        (request.queries[0].start, request.queries[0].end),
        (-5, 1000)
    );
}

#[test]
fn the_first_known_type_of_answer_is_chosen() {
    use ResponseType::{Samples, StreamedXorChunks};
    for (accepted, expected) in [
        (vec![], Ok(Samples)),
        (vec![0, 1], Ok(Samples)),
        (vec![1, 0], Ok(StreamedXorChunks)),
        (vec![7, 1, 0], Ok(StreamedXorChunks)),
        (vec![7], Err(RequestError::ResponseType)),
    ] {
        let found = decoded(vec![], accepted).map(|request| request.response_type);
        assert_eq!(found, expected);
    }
    // Not packed.
    let single = ReadRequest::decode(&[0x10, 1]).unwrap();
    assert_eq!(single.response_type, StreamedXorChunks);
}

#[test]
fn hints_narrow_the_times() {
    let times = |start, end| {
        let hints = WireHints {
            step: 15,
            func: "rate".to_owned(),
            start,
            end,
            grouping: vec!["job".to_owned()],
        };
        let query = WireQuery {
            hints: Some(hints),
            ..query(vec![])
        };
        let found = &decoded(vec![query], vec![]).unwrap().queries[0];
        (found.start, found.end)
    };
    assert_eq!(times(10, 500), (10, 500));
    assert_eq!(times(-10, 5000), (-5, 1000));
    assert_eq!(times(0, 0), (-5, 1000), "no times");
    assert_eq!(times(7, 6), (-5, 1000), "no times");
}

#[test]
fn other_requests_are_refused() {
    let refused = |matchers| {
        decoded(vec![query(matchers)], vec![])
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(vec![matcher(4, "a", "b")]),
        "matcher type 4 is unknown; EQ is 0, NEQ 1, RE 2 and NRE 3"
    );
    let wrong = refused(vec![matcher(2, "a", "(")]);
    assert!(wrong.starts_with("matcher \"a\": "), "{wrong}");
    assert_eq!(
        refused(vec![matcher(0, "a", "\0")]),
        "a matcher has a text that is not UTF-8 or contains NUL"
    );
    assert_eq!(
        refused(vec![matcher(3, "a", "b"); 101]),
        "more than 100 regular expressions in a request"
    );
    assert_eq!(
        refused(vec![matcher(0, "a", "b"); 1001]),
        "more than 1000 matchers in a request"
    );
    let many = decoded(vec![query(vec![]); 101], vec![]).unwrap_err();
    assert_eq!(many.to_string(), "more than 100 queries in a request");
    // A query that is a number, and one that is cut.
    assert!(ReadRequest::decode(&[0x08, 1]).is_err());
    assert!(ReadRequest::decode(&[0x0a, 9, 0]).is_err());
    assert!(ReadRequest::decode(&[0x0a, 4, 0x1a, 2, 0x12, 0]).is_ok());
    assert!(ReadRequest::decode(&[0x0a, 5, 0x1a, 3, 0x12, 1, 0xff]).is_err());
}
