use super::*;

/// Returns the cells of a body with this column only.
fn column(name: &str, values: &[&str]) -> Vec<Option<String>> {
    let rows: Vec<String> = values
        .iter()
        .map(|value| format!("{{\"{name}\": {value}}}"))
        .collect();
    let mut columns = decoded(&rows.join("\n"));
    assert_eq!(columns.len(), 1);
    columns.remove(0).1
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
fn floats_that_json_cannot_represent_are_strings() {
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
fn kinds_have_their_natural_types() {
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
