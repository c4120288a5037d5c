use super::*;

fn fault(body: &str) -> String {
    let mut out = b"old".to_vec();
    let error = decode(body.as_bytes(), &every_kind(), 3, BYTES_MAX, &mut out).expect_err(body);
    assert_eq!(out, b"old", "a fault leaves the old batch");
    error.to_string()
}

/// Bodies, and their faults.
const FAULTS: &[(&str, &str)] = &[
    (
        r#"[{"tiny":1},{"tiny":1.5}]"#,
        r#"row 2, column "tiny": found the number 1.5, written with a fraction or an exponent, where an integer from -32768 to 32767 is expected"#,
    ),
    (
        r#"{"tiny":32768}"#,
        r#"row 1, column "tiny": found the number 32768 where an integer from -32768 to 32767 is expected"#,
    ),
    (
        r#"{"number":"x"}"#,
        r#"row 1, column "number": found the string "x" where an integer from -2147483648 to 2147483647 is expected"#,
    ),
    (
        r#"{"big":9223372036854775808}"#,
        r#"row 1, column "big": found the number 9223372036854775808 where an integer from -9223372036854775808 to 9223372036854775807 is expected"#,
    ),
    (
        r#"{"big":1.0}"#,
        r#"row 1, column "big": found the number 1.0, written with a fraction or an exponent, where an integer from -9223372036854775808 to 9223372036854775807 is expected"#,
    ),
    (
        r#"{"tiny":1e3}"#,
        r#"row 1, column "tiny": found the number 1000.0, written with a fraction or an exponent, where an integer from -32768 to 32767 is expected"#,
    ),
    (
        r#"{"big":1e30}"#,
        r#"row 1, column "big": found the number 1000000000000000000000000000000 where an integer from -9223372036854775808 to 9223372036854775807 is expected"#,
    ),
    (
        r#"{"flag":1}"#,
        r#"row 1, column "flag": found the number 1 where true or false is expected"#,
    ),
    (
        r#"{"real":1e39}"#,
        r#"row 1, column "real": found the number 1000000000000000000000000000000000000000 where a number in the range of real, "NaN", "Infinity" or "-Infinity" is expected"#,
    ),
    (
        r#"{"double":"1.5"}"#,
        r#"row 1, column "double": found the string "1.5" where a number, "NaN", "Infinity" or "-Infinity" is expected"#,
    ),
    (
        r#"{"amount":[1]}"#,
        r#"row 1, column "amount": found an array where a number or a string is expected"#,
    ),
    (
        r#"{"amount":{}}"#,
        r#"row 1, column "amount": found an object where a number or a string is expected"#,
    ),
    (
        r#"{"amount":true}"#,
        r#"row 1, column "amount": found true where a number or a string is expected"#,
    ),
    (
        r#"{"ts":"yesterday"}"#,
        r#"row 1, column "ts": found the string "yesterday" where a timestamp (RFC 3339 text, or integer microseconds since 1970-01-01 UTC) is expected"#,
    ),
    (
        r#"{"ts":-210866803200000001}"#,
        r#"row 1, column "ts": found the number -210866803200000001 where a timestamp (RFC 3339 text, or integer microseconds since 1970-01-01 UTC) is expected"#,
    ),
    (
        r#"{"ts":1.5}"#,
        r#"row 1, column "ts": found the number 1.5, written with a fraction or an exponent, where a timestamp (RFC 3339 text, or integer microseconds since 1970-01-01 UTC) is expected"#,
    ),
    (
        r#"{"day":1}"#,
        r#"row 1, column "day": found the number 1 where a date (YYYY-MM-DD) is expected"#,
    ),
    (
        r#"{"id":"67e5"}"#,
        r#"row 1, column "id": found the string "67e5" where a uuid is expected"#,
    ),
    (
        r#"{"blob":"\\x0"}"#,
        r#"row 1, column "blob": found the string "\x0" where a string of \x and hexadecimal digits is expected"#,
    ),
    (
        r#"{"name":5}"#,
        r#"row 1, column "name": found the number 5 where a string is expected"#,
    ),
    (
        r#"{"name":{"a":1}}"#,
        r#"row 1, column "name": found an object where a string is expected"#,
    ),
    (
        r#"{"name":[[[]]]}"#,
        r#"row 1, column "name": found an array where a string is expected"#,
    ),
    (
        r#"{"address":true}"#,
        r#"row 1, column "address": found true where a string as PostgreSQL writes values of the type (an array: "{1,2}") is expected"#,
    ),
    (
        r#"{"doc":"\ud800"}"#,
        r#"row 1, column "doc": found "\ud800" where JSON without unpaired surrogates is expected"#,
    ),
    (
        r#"{"name":"a\u0000b"}"#,
        r#"row 1, column "name": text contains a NUL character"#,
    ),
    (
        r#"{"doc":["\u0000"]}"#,
        r#"row 1, column "doc": text contains a NUL character"#,
    ),
    (
        "{\"tiny\":1}\n{\"tinny\":1}",
        "row 2: table public.events has no column \"tinny\"",
    ),
    (r#"{"":1}"#, "row 1: table public.events has no column \"\""),
    (
        r#"{"tiny":1,"flag":true,"tiny":2}"#,
        "row 1: key \"tiny\" appears more than once",
    ),
    (
        "{\"tiny\":1}\n{\"tiny\":1,\"tiny\":2}",
        "row 2: key \"tiny\" appears more than once",
    ),
    (
        "[1]",
        "row 1: found the number 1 where an object is expected",
    ),
    (
        "[{},[]]",
        "row 2: found an array where an object is expected",
    ),
    ("null", "row 1: found null where an object is expected"),
    (
        "\"abc\"",
        "row 1: found the string \"abc\" where an object is expected",
    ),
    (
        "-1.5",
        "row 1: found the number -1.5 where an object is expected",
    ),
    ("{}\n{}\n{}\n{}", "more than 3 rows in one request"),
    (
        "[{}, {}]",
        "every object is empty, but a row needs at least one column; its value may be null",
    ),
    (
        "{\"tiny\":1} {\"tiny\":1}",
        "line 1, column 12: something follows the object; send one object per line (application/x-ndjson), or an array of objects",
    ),
    (
        "{\"tiny\":1}\n{\"tiny\":1},\n{\"tiny\":1}",
        "line 2, column 11: something follows the object; send one object per line (application/x-ndjson), or an array of objects",
    ),
    (
        "{\n\"tiny\":1}\n{\"tiny\":1}",
        "line 3, column 1: something follows the object; send one object per line (application/x-ndjson), or an array of objects",
    ),
];

#[test]
fn faults_name_row_and_column() {
    for (body, expected) in FAULTS {
        assert_eq!(fault(body), *expected, "{body}");
    }
    let long = fault(&format!(r#"{{"name":"a","{}":1}}"#, "x".repeat(100_000)));
    assert!(long.len() < 200, "messages are short: {long}");
}

#[test]
fn text_that_is_not_json_is_reported_with_its_position() {
    for (body, expected) in [
        ("{\"tiny\":1}\n{\"tiny\":1", "not JSON at line 2, column "),
        (
            "{\"tiny\":1}\n\n{\"tiny\" 1}",
            "not JSON at line 3, column 9: ",
        ),
        ("[{\"tiny\":1}\n,,", "not JSON at line 2, column "),
        ("[{\"tiny\":1}] x", "not JSON at line 1, column "),
        ("{\n\"tiny\":1\n", "not JSON at line "),
        ("{\"tiny\":01}", "not JSON at line 1, column "),
        ("{\"name\":\"a\tb\"}", "not JSON at line 1, column "),
        ("{\"name\":\"\\ud800\"}", "not JSON at line 1, column "),
        ("{\"double\":1e400}", "not JSON at line 1, column "),
        ("\u{feff}[]", "not JSON at line 1, column "),
        ("{'tiny':1}", "not JSON at line 1, column "),
        ("[", "not JSON at line 1, column "),
        ("x", "not JSON at line 1, column "),
    ] {
        let fault = fault(body);
        assert!(fault.starts_with(expected), "{body}: {fault}");
        assert!(
            !fault.contains('\n') && fault.len() < 150,
            "{body}: {fault}"
        );
    }
    let bytes = b"{\"name\":\"\xff\"}";
    assert_eq!(
        decode(bytes, &every_kind(), 1, BYTES_MAX, &mut Vec::new()),
        Err(Malformed::NotUtf8 { byte: 9 })
    );
}

#[test]
fn depth_is_bounded() {
    let nested =
        |levels: usize| format!("[{{\"doc\":{}{}}}]", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(decoded(&nested(30)).len(), 1);
    assert_eq!(
        fault(&nested(31)),
        "JSON is nested deeper than 32 levels at byte 38"
    );
    for body in [
        format!("{{\"doc\":{}", "[".repeat(1_000_000)),
        format!("{{\"amount\":{}", "{\"a\":".repeat(1_000_000)),
    ] {
        assert!(fault(&body).starts_with("JSON is nested deeper"));
    }
    for name in ["name", "ts", "real", "unknown"] {
        fault(&format!("{{\"{name}\":{}", "[".repeat(1_000_000)));
    }
    fault(&"[".repeat(1_000_000));
}

#[test]
fn the_bytes_of_columns_are_bounded() {
    let columns: Vec<(String, &str)> = (0..100)
        .map(|number| (format!("c{number}"), "int8"))
        .collect();
    let columns: Vec<(&str, &str)> = columns
        .iter()
        .map(|(name, kind)| (name.as_str(), *kind))
        .collect();
    let table = table(&columns);
    let wide: Vec<String> = columns
        .iter()
        .map(|(name, _)| format!("\"{name}\":1"))
        .collect();
    let wide = format!("{{{}}}", wide.join(","));
    let narrow = "{}\n".repeat(10_000);
    for body in [format!("{narrow}{wide}"), format!("{wide}\n{narrow}")] {
        let mut out = Vec::new();
        let decode = |bytes_max, out: &mut Vec<u8>| {
            decode(body.as_bytes(), &table, 1_000_000, bytes_max, out)
        };
        let needed = 10_001 * 100 * 8 + body.len();
        assert_eq!(
            decode(needed - 1, &mut out),
            Err(Malformed::TooLarge {
                bytes_max: needed - 1
            })
        );
        assert_eq!(decode(needed, &mut out), Ok(10_001));
    }
}

#[test]
fn room_grows_row_by_row_and_a_body_without_room_is_not_decoded() {
    let columns: Vec<(String, &str)> = (0..20)
        .map(|number| (format!("c{number}"), "int8"))
        .collect();
    let columns: Vec<(&str, &str)> = columns
        .iter()
        .map(|(name, kind)| (name.as_str(), *kind))
        .collect();
    let table = table(&columns);
    let body = "{\"c0\":1}\n".repeat(10_000);
    let wide = format!("{body}{{\"c1\":1,\"c2\":1}}");
    let budget = Budget::new(1 << 20, std::time::Duration::ZERO);
    // A single request could take all of the budget and more.
    let mut other = Reservation::default();
    other.grow(&budget, 1).unwrap();
    let decode = |body: &str| {
        let room = Room::new(Reservation::default(), &budget, body.len());
        let mut room = room.unwrap();
        let mut out = Vec::new();
        let decoded = super::super::decode(
            body.as_bytes(),
            &table,
            1_000_000,
            BYTES_MAX,
            &mut room,
            &mut out,
        );
        (decoded, room.into_reservation().bytes(), out.len())
    };
    let (decoded, taken, out_bytes) = decode(&body);
    assert_eq!(decoded, Ok(10_000));
    let row_bytes = 10_000 * 8;
    assert!(
        taken >= body.len() + row_bytes + out_bytes && taken < 4 * (body.len() + row_bytes),
        "{taken}"
    );
    let (decoded, taken, out_bytes) = decode(&wide);
    assert_eq!(decoded, Err(Malformed::Overloaded(Overloaded)));
    assert!(taken >= row_bytes && out_bytes == 0, "{taken}");
    assert_eq!(budget.pending_bytes(), other.bytes());
}
