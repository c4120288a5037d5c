use lanes_wire::{BatchView, ColumnType, limits};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::decode;
use crate::events::test_support::{cells, cells_by_name, table};
use crate::events::{ColumnKind, Malformed, Table};

const BYTES_MAX: usize = 1 << 24;

fn every_kind() -> Table {
    table(&[
        ("flag", "bool"),
        ("tiny", "int2"),
        ("number", "int4"),
        ("big", "int8"),
        ("real", "float4"),
        ("double", "float8"),
        ("amount", "numeric"),
        ("ts", "timestamptz"),
        ("day", "date"),
        ("id", "uuid"),
        ("name", "text"),
        ("blob", "bytea"),
        ("doc", "jsonb"),
        ("address", "inet"),
    ])
}

/// Names and cells of the batch, columns in the order of their first keys.
fn decoded(body: &str) -> Vec<(String, Vec<Option<String>>)> {
    let mut out = b"old".to_vec();
    let rows = decode(body.as_bytes(), &every_kind(), 100, BYTES_MAX, &mut out)
        .unwrap_or_else(|error| panic!("{body}: {error}"));
    let view = BatchView::verify(&out).unwrap();
    assert_eq!(view.rows(), rows, "{body}");
    cells(&view)
}

/// The cells of a body that has only this column.
fn column(name: &str, values: &[&str]) -> Vec<Option<String>> {
    let rows: Vec<String> = values
        .iter()
        .map(|value| format!("{{\"{name}\": {value}}}"))
        .collect();
    let mut columns = decoded(&rows.join("\n"));
    assert_eq!(columns.len(), 1);
    columns.remove(0).1
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values
        .iter()
        .map(|value| Some((*value).to_owned()))
        .collect()
}

fn fault(body: &str) -> String {
    let mut out = b"old".to_vec();
    let error = decode(body.as_bytes(), &every_kind(), 3, BYTES_MAX, &mut out).expect_err(body);
    assert_eq!(out, b"old", "a fault leaves the old batch");
    error.to_string()
}

#[test]
fn one_batch_in_every_form() {
    let expected = vec![
        ("tiny".to_owned(), some(&["1", "2"])),
        ("name".to_owned(), some(&["a", "b"])),
    ];
    for body in [
        r#"[{"tiny":1,"name":"a"},{"tiny":2,"name":"b"}]"#,
        "  [ {\"tiny\" : 1, \"name\" : \"a\"} ,\n{\"name\":\"b\",\"tiny\":2}\n] \n",
        "{\"tiny\":1,\"name\":\"a\"}\n{\"tiny\":2,\"name\":\"b\"}",
        "\n \r\n{\"tiny\":1,\"name\":\"a\"}\r\n\r\n{\"tiny\":2,\"name\":\"b\"}\r\n",
        "{\"tiny\":1,\"\\u006eame\":\"\\u0061\"}\n{\"tiny\":2,\"name\":\"b\"}",
    ] {
        assert_eq!(decoded(body), expected, "{body}");
    }
    assert_eq!(
        decoded("{\n  \"tiny\": 1,\n  \"name\": \"a\"\n}\n"),
        vec![
            ("tiny".to_owned(), some(&["1"])),
            ("name".to_owned(), some(&["a"]))
        ],
        "one object over several lines"
    );
}

#[test]
fn nothing_is_no_rows() {
    for body in ["", "\n\n", "[]", " [ ] "] {
        assert_eq!(decoded(body), vec![], "{body}");
    }
}

#[test]
fn absent_is_null_and_absent_everywhere_is_left_out() {
    assert_eq!(
        decoded("{\"tiny\":1}\n{\"name\":\"b\"}\n{\"name\":null,\"tiny\":3,\"flag\":true}"),
        vec![
            (
                "tiny".to_owned(),
                vec![Some("1".to_owned()), None, Some("3".to_owned())]
            ),
            ("name".to_owned(), vec![None, Some("b".to_owned()), None]),
            ("flag".to_owned(), vec![None, None, Some("true".to_owned())]),
        ]
    );
}

#[test]
fn null_in_every_kind() {
    for column in &every_kind().columns {
        assert_eq!(self::column(&column.name, &["null"]), vec![None]);
    }
}

#[test]
fn integers_are_exact() {
    assert_eq!(
        column("tiny", &["-32768", "32767", "\"-5\"", "-0"]),
        some(&["-32768", "32767", "-5", "0"])
    );
    assert_eq!(
        column("number", &["-2147483648", "2147483647"]),
        some(&["-2147483648", "2147483647"])
    );
    assert_eq!(
        column(
            "big",
            &[
                "-9223372036854775808",
                "9223372036854775807",
                "\"9007199254740993\""
            ]
        ),
        some(&[
            "-9223372036854775808",
            "9223372036854775807",
            "9007199254740993"
        ])
    );
}

#[test]
fn floats_and_what_json_cannot_say() {
    assert_eq!(
        column(
            "double",
            &[
                "1.25",
                "-3",
                "1e300",
                "18446744073709551615",
                "\"NaN\"",
                "\"-Infinity\""
            ]
        ),
        some(&[
            "1.25",
            "-3.0",
            "1e300",
            "1.8446744073709552e19",
            "NaN",
            "-inf"
        ])
    );
    assert_eq!(
        column("real", &["0.1", "16777217", "\"Infinity\"", "-0.0"]),
        some(&["0.1", "16777216.0", "inf", "0.0"])
    );
}

#[test]
fn numeric_keeps_its_digits() {
    assert_eq!(
        column(
            "amount",
            &[
                "1.10",
                "123456789012345678901234567890.5",
                "1E+2",
                "\"NaN\"",
                "-0"
            ]
        ),
        some(&[
            "1.10",
            "123456789012345678901234567890.5",
            "1E+2",
            "NaN",
            "-0"
        ])
    );
}

#[test]
fn times_as_text_and_as_microseconds() {
    assert_eq!(
        column(
            "ts",
            &[
                "\"1970-01-01T00:00:01Z\"",
                "-5",
                "\"1970-01-01 00:00:00.5\"",
                "\"infinity\""
            ]
        ),
        some(&["1000000", "-5", "500000", &i64::MAX.to_string()])
    );
    assert_eq!(
        column("day", &["\"1970-01-02\"", "\"-infinity\""]),
        some(&["1", &i32::MIN.to_string()])
    );
}

#[test]
fn uuid_bytes_and_others() {
    let id = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    assert_eq!(
        column("id", &[&format!("\"{id}\"")]),
        some(&["67e5504410b1426f9247bb680e5fe0c8"])
    );
    assert_eq!(
        column("blob", &[r#""\\x00fF""#, r#""\\x""#]),
        some(&["00ff", ""])
    );
    assert_eq!(
        column("address", &["\"10.0.0.0/8\""]),
        some(&["10.0.0.0/8"])
    );
    assert_eq!(
        column("name", &[r#""a\n\"\u00e9\ud83d\ude00""#, "\"\""]),
        some(&["a\n\"\u{e9}\u{1f600}", ""])
    );
}

#[test]
fn json_is_kept_as_written() {
    assert_eq!(
        column(
            "doc",
            &[
                r#"{"b": [1.10, null], "a":"\\u0000"}"#,
                "[ ]",
                "\"x\"",
                "1e999",
                "true"
            ]
        ),
        some(&[
            r#"{"b": [1.10, null], "a":"\\u0000"}"#,
            "[ ]",
            "\"x\"",
            "1e999",
            "true"
        ])
    );
}

#[test]
fn faults_name_row_and_column() {
    let tables = "table public.events has no column";
    for (body, expected) in [
        (
            r#"[{"tiny":1},{"tiny":1.5}]"#,
            r#"row 2, column "tiny": found the number 1.5 where an integer from -32768 to 32767 is expected"#,
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
            r#"row 1, column "big": found the number 1 where an integer from -9223372036854775808 to 9223372036854775807 is expected"#,
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
            r#"row 1, column "ts": found the number 1.5 where a timestamp (RFC 3339 text, or integer microseconds since 1970-01-01 UTC) is expected"#,
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
            r#"row 1, column "address": found true where a string is expected"#,
        ),
        (
            r#"{"doc":"\ud800"}"#,
            r#"row 1, column "doc": found "\ud800" where JSON without halves of surrogate pairs is expected"#,
        ),
        (
            r#"{"name":"a\u0000b"}"#,
            r#"row 1, column "name": text holds a NUL character"#,
        ),
        (
            r#"{"doc":["\u0000"]}"#,
            r#"row 1, column "doc": text holds a NUL character"#,
        ),
        (
            "{\"tiny\":1}\n{\"tinny\":1}",
            &format!("row 2: {tables} \"tinny\""),
        ),
        (r#"{"":1}"#, &format!("row 1: {tables} \"\"")),
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
        ("[{}, {}]", "2 rows without a column"),
    ] {
        assert_eq!(fault(body), expected, "{body}");
    }
    let long = fault(&format!(r#"{{"name":"a","{}":1}}"#, "x".repeat(100_000)));
    assert!(long.len() < 200, "messages are short: {long}");
}

#[test]
fn what_is_no_json_is_shown_where() {
    for (body, expected) in [
        ("{\"tiny\":1}\n{\"tiny\":1", "not JSON at line 2, column "),
        (
            "{\"tiny\":1}\n\n{\"tiny\" 1}",
            "not JSON at line 3, column 9: ",
        ),
        ("[{\"tiny\":1}\n,,", "not JSON at line 2, column "),
        ("[{\"tiny\":1}] x", "not JSON at line 1, column "),
        ("{\"tiny\":1} {\"tiny\":1}", "not JSON at line 1, column "),
        ("{\"tiny\":1},\n{\"tiny\":1}", "not JSON at line 1, column "),
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
fn columns_take_no_more_than_allowed() {
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

/// A value for each kind, and the cell that it becomes.
fn value(kind: ColumnKind) -> BoxedStrategy<(Value, String)> {
    fn same<T: ToString + Into<Value>>(value: T) -> (Value, String) {
        let text = value.to_string();
        (value.into(), text)
    }
    match kind {
        ColumnKind::Bool => any::<bool>().prop_map(same).boxed(),
        ColumnKind::Int2 => any::<i16>().prop_map(same).boxed(),
        ColumnKind::Int4 => any::<i32>().prop_map(same).boxed(),
        ColumnKind::Int8 => any::<i64>().prop_map(same).boxed(),
        ColumnKind::Float4 => any::<f32>()
            .prop_map(|value| {
                if value.is_finite() && value != 0.0 {
                    value
                } else {
                    0.0
                }
            })
            .prop_map(|value| (json!(f64::from(value)), format!("{value:?}")))
            .boxed(),
        ColumnKind::Float8 => any::<f64>()
            .prop_map(|value| {
                if value.is_finite() && value != 0.0 {
                    value
                } else {
                    0.0
                }
            })
            .prop_map(|value| (json!(value), format!("{value:?}")))
            .boxed(),
        ColumnKind::Numeric => any::<i64>().prop_map(same).boxed(),
        ColumnKind::Timestamp => (limits::TIMESTAMP_MICROSECONDS_MIN..i64::MAX)
            .prop_map(same)
            .boxed(),
        ColumnKind::Date => (0_i32..100_000)
            .prop_map(|days| {
                let day = chrono::NaiveDate::from_epoch_days(days).unwrap();
                (json!(day.to_string()), days.to_string())
            })
            .boxed(),
        ColumnKind::Uuid => any::<[u8; 16]>()
            .prop_map(|bytes| {
                let id = uuid::Uuid::from_bytes(bytes);
                (json!(id.to_string()), id.simple().to_string())
            })
            .boxed(),
        ColumnKind::Bytes => any::<Vec<u8>>()
            .prop_map(|bytes| {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                (json!(format!("\\x{hex}")), hex)
            })
            .boxed(),
        ColumnKind::Json => any::<Vec<u16>>()
            .prop_map(|numbers| {
                let value = json!({ "numbers": numbers });
                (value.clone(), value.to_string())
            })
            .boxed(),
        ColumnKind::Text | ColumnKind::Other => {
            "[^\0]*".prop_map(|text| (json!(text), text)).boxed()
        }
    }
}

/// A row: for each column its value, NULL, or nothing.
fn row() -> impl Strategy<Value = Vec<Option<Option<(Value, String)>>>> {
    let columns = every_kind().columns;
    let cells: Vec<_> = columns
        .iter()
        .map(|column| {
            proptest::option::weighted(0.8, proptest::option::weighted(0.8, value(column.kind)))
        })
        .collect();
    cells
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn rows_come_back(rows in proptest::collection::vec(row(), 0..20), form in 0_u8..3) {
        let table = every_kind();
        let mut expected: Vec<(String, Vec<Option<String>>)> = Vec::new();
        let mut objects = Vec::new();
        for (number, column) in table.columns.iter().enumerate() {
            if rows.iter().any(|row| row[number].is_some()) {
                let cell = |row: &Vec<Option<Option<(Value, String)>>>| {
                    row[number].clone().flatten().map(|(_, text)| text)
                };
                expected.push((column.name.clone(), rows.iter().map(cell).collect()));
            }
        }
        expected.sort();
        for row in &rows {
            let mut object = Map::new();
            for (column, value) in table.columns.iter().zip(row) {
                if let Some(value) = value {
                    let value = value.clone().map_or(Value::Null, |(value, _)| value);
                    object.insert(column.name.clone(), value);
                }
            }
            objects.push(Value::Object(object));
        }
        let body = match form {
            0 => serde_json::to_string(&objects).unwrap(),
            1 => serde_json::to_string_pretty(&objects).unwrap(),
            _ => objects.iter().map(|object| format!("{object}\n")).collect(),
        };
        let mut out = Vec::new();
        let result = decode(body.as_bytes(), &table, 100, BYTES_MAX, &mut out);
        if expected.is_empty() && !rows.is_empty() {
            prop_assert_eq!(result, Err(Malformed::NoColumns { rows: rows.len() }));
        } else {
            prop_assert_eq!(result, Ok(rows.len()));
            let view = BatchView::verify(&out).unwrap();
            prop_assert_eq!(view.rows(), rows.len());
            let mut found = cells_by_name(&view);
            for (_, cells) in found.iter_mut().filter(|(name, _)| name == "doc") {
                for cell in cells.iter_mut().flatten() {
                    // Spaces are kept too; the pretty form has some.
                    *cell = serde_json::from_str::<Value>(cell).unwrap().to_string();
                }
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn any_bytes_end_well(bytes in any::<Vec<u8>>(), text in "[\\[{\"a-z:,}\\]0-9\n ]*") {
        for body in [bytes.as_slice(), text.as_bytes()] {
            let mut out = Vec::new();
            if decode(body, &every_kind(), 10, BYTES_MAX, &mut out).is_ok() {
                BatchView::verify(&out).unwrap();
            }
        }
    }
}

#[test]
fn kinds_bring_their_natural_types() {
    let body = r#"{"flag":true,"tiny":1,"number":1,"big":1,"real":1,"double":1,"amount":1,"ts":1,"day":"2026-01-01","name":"a","doc":1}"#;
    let mut out = Vec::new();
    decode(body.as_bytes(), &every_kind(), 1, BYTES_MAX, &mut out).unwrap();
    let view = BatchView::verify(&out).unwrap();
    for column in view.columns() {
        let place = every_kind().place(column.name()).unwrap();
        let kind = every_kind().columns[place].kind;
        assert_eq!(column.column_type(), kind.natural(), "{}", column.name());
    }
    assert_eq!(
        view.column("real").unwrap().column_type(),
        ColumnType::Float32
    );
}
