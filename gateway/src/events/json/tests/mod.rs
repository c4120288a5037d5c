use crate::events::format::Malformed;
use crate::events::format::test_support::{cells, cells_by_name, table};
use crate::model::{Budget, ColumnKind, Overloaded, Reservation, Room, Table};
use lanes_wire::{BatchView, ColumnType, limits};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

mod faults;
mod properties;
mod values;

const BYTES_MAX: usize = 1 << 24;

fn decode(
    body: &[u8],
    table: &Table,
    rows_max: usize,
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<usize, Malformed> {
    let room = &mut Room::boundless();
    super::decode(body, table, rows_max, bytes_max, room, out)
}

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

fn some(values: &[&str]) -> Vec<Option<String>> {
    values
        .iter()
        .map(|value| Some((*value).to_owned()))
        .collect()
}

/// Returns names and cells of the batch, with columns in the order of their first keys.
fn decoded(body: &str) -> Vec<(String, Vec<Option<String>>)> {
    let mut out = b"old".to_vec();
    let rows = decode(body.as_bytes(), &every_kind(), 100, BYTES_MAX, &mut out)
        .unwrap_or_else(|error| panic!("{body}: {error}"));
    let view = BatchView::verify(&out).unwrap();
    assert_eq!(view.rows(), rows, "{body}");
    cells(&view)
}

#[test]
fn every_form_of_a_body_is_the_same_batch() {
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
fn an_empty_body_has_no_rows() {
    for body in ["", "\n\n", "[]", " [ ] "] {
        assert_eq!(decoded(body), vec![], "{body}");
    }
}

#[test]
fn missing_values_are_null_and_missing_columns_are_omitted() {
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
