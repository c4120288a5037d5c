use std::sync::Arc;

use arrow_array::types::{Int8Type, UInt16Type};
use arrow_array::*;
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use lanes_wire::{BatchView, ColumnType, limits};
use proptest::prelude::*;

use super::decode;
use crate::events::test_support::{cells, table};
use crate::events::{Malformed, Table};

const BYTES_MAX: usize = 1 << 24;

type Columns = Vec<(&'static str, ArrayRef)>;

fn batch(columns: Columns) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

fn stream_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

fn stream(columns: Columns) -> Vec<u8> {
    stream_of(&[batch(columns)])
}

fn of_type(sql_type: &str) -> Table {
    table(&[("v", sql_type)])
}

fn fault_of(body: &[u8], table: &Table) -> String {
    let mut out = b"old".to_vec();
    let error = decode(body, table, 100, BYTES_MAX, &mut out).expect_err("malformed");
    assert_eq!(out, b"old", "a fault leaves the old batch");
    let text = error.to_string();
    assert!(!text.contains('\n') && text.len() < 250, "{text}");
    text
}

/// Type and cells of column `v`, which all these arrays together fill.
fn column_of(arrays: &[ArrayRef], sql_type: &str) -> (ColumnType, Vec<Option<String>>) {
    let batches: Vec<_> = arrays
        .iter()
        .map(|array| batch(vec![("v", array.clone())]))
        .collect();
    let mut out = Vec::new();
    let rows = decode(
        &stream_of(&batches),
        &of_type(sql_type),
        1000,
        BYTES_MAX,
        &mut out,
    )
    .unwrap();
    let view = BatchView::verify(&out).unwrap();
    assert_eq!(view.rows(), rows);
    (view.columns()[0].column_type(), cells(&view).remove(0).1)
}

fn column(array: impl Array + 'static, sql_type: &str) -> (ColumnType, Vec<Option<String>>) {
    column_of(&[Arc::new(array)], sql_type)
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values
        .iter()
        .map(|value| Some((*value).to_owned()))
        .collect()
}

#[test]
fn numbers() {
    use ColumnType as To;
    assert_eq!(
        column(Int8Array::from(vec![-128, 127]), "int2"),
        (To::Int16, some(&["-128", "127"]))
    );
    assert_eq!(
        column(UInt8Array::from(vec![255]), "int2"),
        (To::Int16, some(&["255"]))
    );
    assert_eq!(
        column(Int16Array::from(vec![-7]), "int2"),
        (To::Int16, some(&["-7"]))
    );
    assert_eq!(
        column(UInt16Array::from(vec![65535]), "int4"),
        (To::Int32, some(&["65535"]))
    );
    assert_eq!(
        column(Int32Array::from(vec![i32::MIN]), "int4"),
        (To::Int32, some(&["-2147483648"]))
    );
    assert_eq!(
        column(UInt32Array::from(vec![u32::MAX]), "int8"),
        (To::Int64, some(&["4294967295"]))
    );
    assert_eq!(
        column(Int64Array::from(vec![Some(1), None, Some(3)]), "int8"),
        (
            To::Int64,
            vec![Some("1".to_owned()), None, Some("3".to_owned())]
        )
    );
    assert_eq!(
        column(UInt64Array::from(vec![i64::MAX as u64]), "int8"),
        (To::Int64, some(&["9223372036854775807"]))
    );
    assert_eq!(
        column(
            Float16Array::from_iter_values([1.5_f32, -2.0].map(num)),
            "float4"
        ),
        (To::Float32, some(&["1.5", "-2.0"]))
    );
    assert_eq!(
        column(Float32Array::from(vec![0.1]), "float4"),
        (To::Float32, some(&["0.1"]))
    );
    assert_eq!(
        column(Float64Array::from(vec![f64::NAN, f64::INFINITY]), "float8"),
        (To::Float64, some(&["NaN", "inf"]))
    );
    assert_eq!(
        column(
            BooleanArray::from(vec![Some(true), None, Some(false)]),
            "bool"
        ),
        (
            To::Bool,
            vec![Some("true".to_owned()), None, Some("false".to_owned())]
        )
    );
}

fn num(value: f32) -> <arrow_array::types::Float16Type as ArrowPrimitiveType>::Native {
    <arrow_array::types::Float16Type as ArrowPrimitiveType>::Native::from_f32(value)
}

#[test]
fn decimals_are_text() {
    let decimal = Decimal128Array::from(vec![Some(12345), None, Some(-5)])
        .with_precision_and_scale(10, 3)
        .unwrap();
    assert_eq!(
        column(decimal, "numeric"),
        (
            ColumnType::Text,
            vec![Some("12.345".to_owned()), None, Some("-0.005".to_owned())]
        )
    );
    let decimal = Decimal256Array::from(vec![i256::from_i128(-7)])
        .with_precision_and_scale(40, 0)
        .unwrap();
    assert_eq!(column(decimal, "numeric").1, some(&["-7"]));
}

#[test]
fn times() {
    let ts = ColumnType::Timestamp;
    assert_eq!(
        column(TimestampSecondArray::from(vec![2]), "timestamptz"),
        (ts, some(&["2000000"]))
    );
    assert_eq!(
        column(
            TimestampMillisecondArray::from(vec![-2]).with_timezone("+05:30"),
            "timestamptz"
        ),
        (ts, some(&["-2000"]))
    );
    assert_eq!(
        column(
            TimestampMicrosecondArray::from(vec![5, i64::MAX]),
            "timestamptz"
        )
        .1,
        some(&["5", &i64::MAX.to_string()])
    );
    assert_eq!(
        column(
            TimestampNanosecondArray::from(vec![-1, 1999]),
            "timestamptz"
        )
        .1,
        some(&["-1", "1"])
    );
    assert_eq!(
        column(Date32Array::from(vec![1]), "date"),
        (ColumnType::Date, some(&["1"]))
    );
    assert_eq!(
        column(Date64Array::from(vec![-1, 86_400_000]), "date").1,
        some(&["-1", "1"])
    );
    // Under a NULL lies whatever the sender left there.
    let values = ScalarBuffer::from(vec![i64::MAX, 1]);
    let array = TimestampSecondArray::new(values, Some(NullBuffer::from(vec![false, true])));
    assert_eq!(
        column(array, "timestamptz").1,
        vec![None, Some("1000000".to_owned())]
    );
}

#[test]
fn text_and_bytes() {
    let texts = vec![
        Some("a"),
        None,
        Some(""),
        Some("longer than a view holds in place"),
    ];
    let expected: Vec<Option<String>> = texts.iter().map(|text| text.map(str::to_owned)).collect();
    for array in [
        Arc::new(StringArray::from(texts.clone())) as ArrayRef,
        Arc::new(LargeStringArray::from(texts.clone())),
        Arc::new(StringViewArray::from(texts.clone())),
    ] {
        assert_eq!(
            column_of(&[array.slice(0, 4)], "text"),
            (ColumnType::Text, expected.clone())
        );
        assert_eq!(
            column_of(&[array.slice(1, 2), array.slice(3, 1)], "text").1,
            expected[1..]
        );
    }
    let bytes = vec![Some(&b"\x00\xff"[..]), None, Some(b"")];
    let expected = vec![Some("00ff".to_owned()), None, Some(String::new())];
    for array in [
        Arc::new(BinaryArray::from(bytes.clone())) as ArrayRef,
        Arc::new(LargeBinaryArray::from(bytes.clone())),
        Arc::new(BinaryViewArray::from(bytes.clone())),
    ] {
        assert_eq!(
            column_of(&[array], "bytea"),
            (ColumnType::Bytes, expected.clone())
        );
    }
    let fixed = || FixedSizeBinaryArray::try_from_iter([[7_u8; 16]].iter()).unwrap();
    assert_eq!(
        column(fixed(), "uuid"),
        (ColumnType::Uuid, some(&[&"07".repeat(16)]))
    );
    assert_eq!(
        column(fixed(), "bytea"),
        (ColumnType::Bytes, some(&[&"07".repeat(16)]))
    );
    assert_eq!(
        column(NullArray::new(2), "int4"),
        (ColumnType::Text, vec![None, None])
    );
}

#[test]
fn text_under_a_null_may_be_anything() {
    let array = StringArray::new(
        OffsetBuffer::from_lengths([1, 1, 1]),
        Buffer::from(b"a\0c"),
        Some(NullBuffer::from(vec![true, false, true])),
    );
    assert_eq!(
        column(array, "text").1,
        vec![Some("a".to_owned()), None, Some("c".to_owned())]
    );
}

#[test]
fn dictionaries_stay_and_lose_what_is_not_used() {
    let first: DictionaryArray<Int8Type> = vec![Some("x"), None, Some("y"), Some("x")]
        .into_iter()
        .collect();
    let keys = UInt16Array::from(vec![Some(2), None, Some(2)]);
    let values = StringArray::from(vec![Some("unused"), None, Some("z")]);
    let second = DictionaryArray::<UInt16Type>::new(keys, Arc::new(values));
    let expected = vec![
        Some("x".to_owned()),
        None,
        Some("y".to_owned()),
        Some("x".to_owned()),
    ];
    let mut out = Vec::new();
    let body = stream(vec![("v", Arc::new(first.clone()))]);
    decode(&body, &of_type("text"), 100, BYTES_MAX, &mut out).unwrap();
    let view = BatchView::verify(&out).unwrap();
    assert_eq!(cells(&view)[0].1, expected);
    match view.columns()[0].values() {
        lanes_wire::Values::Codes { items, .. } => {
            assert_eq!(items.len(), 3, "x, y and one for NULL")
        }
        other => panic!("not a dictionary: {other:?}"),
    }
    assert_eq!(
        column(second, "text").1,
        vec![Some("z".to_owned()), None, Some("z".to_owned())]
    );
    // The same dictionary in two batches, then another.
    let third: DictionaryArray<Int8Type> = vec![Some("y"), Some("q")].into_iter().collect();
    let (_, cells) = column_of(
        &[
            Arc::new(first.slice(2, 2)),
            Arc::new(first.slice(0, 2)),
            Arc::new(third),
        ],
        "text",
    );
    assert_eq!(
        cells,
        vec![
            Some("y".to_owned()),
            Some("x".to_owned()),
            Some("x".to_owned()),
            None,
            Some("y".to_owned()),
            Some("q".to_owned())
        ]
    );
    let all_null = DictionaryArray::<Int8Type>::new(
        Int8Array::from(vec![None, None]),
        Arc::new(StringArray::from(Vec::<&str>::new())),
    );
    assert_eq!(column(all_null, "text").1, vec![None, None]);
}

#[test]
fn several_batches_are_one() {
    let part = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let arrays = [
        part(vec![Some(1), Some(2), Some(3)]),
        part(vec![]),
        part(vec![None]),
        part(vec![Some(5)]),
    ];
    let expected = vec![
        Some("1".to_owned()),
        Some("2".to_owned()),
        Some("3".to_owned()),
        None,
        Some("5".to_owned()),
    ];
    assert_eq!(column_of(&arrays, "int8").1, expected);
}

#[test]
fn no_rows() {
    let mut out = Vec::new();
    let body = stream(vec![("v", Arc::new(Int64Array::from(Vec::<i64>::new())))]);
    assert_eq!(
        decode(&body, &of_type("int8"), 100, BYTES_MAX, &mut out),
        Ok(0)
    );
    assert_eq!(BatchView::verify(&out).unwrap().columns().len(), 1);
}

#[test]
fn faults_name_row_and_column() {
    let good = || {
        batch(vec![(
            "v",
            Arc::new(TimestampSecondArray::from(vec![1, 2])),
        )])
    };
    let bad = batch(vec![(
        "v",
        Arc::new(TimestampSecondArray::from(vec![1, i64::MAX])),
    )]);
    assert_eq!(
        fault_of(&stream_of(&[good(), bad]), &of_type("timestamptz")),
        "row 4, column \"v\": found 9223372036854775807 where a timestamp that PostgreSQL can hold is expected"
    );
    let columns: [(ArrayRef, &str); 8] = [
        (
            Arc::new(TimestampMicrosecondArray::from(vec![
                limits::TIMESTAMP_MICROSECONDS_MIN - 1,
            ])),
            "row 1, column \"v\": found -210866803200000001 where a timestamp that PostgreSQL can hold is expected",
        ),
        (
            Arc::new(Date32Array::from(vec![i32::MAX - 1])),
            "row 1, column \"v\": found 2147483646 where a date that PostgreSQL can hold is expected",
        ),
        (
            Arc::new(Date64Array::from(vec![i64::MIN])),
            "row 1, column \"v\": found -9223372036854775808 where a date that PostgreSQL can hold is expected",
        ),
        (
            Arc::new(UInt64Array::from(vec![0, 1 << 63])),
            "row 2, column \"v\": found 9223372036854775808 where an integer below 9223372036854775808 is expected",
        ),
        (
            Arc::new(StringArray::from(vec!["a", "b", "c\0d", "\0"])),
            "row 3, column \"v\": text holds a NUL character",
        ),
        (
            Arc::new(StringViewArray::from(vec!["a", "\0"])),
            "row 2, column \"v\": text holds a NUL character",
        ),
        (
            Arc::new(
                vec!["a", "b\0"]
                    .into_iter()
                    .collect::<DictionaryArray<Int8Type>>(),
            ),
            "row 2, column \"v\": text holds a NUL character",
        ),
        (
            Arc::new(Time64MicrosecondArray::from(vec![1])),
            "column \"v\": Arrow type Time64(µs) is not supported",
        ),
    ];
    for (array, expected) in columns {
        assert_eq!(
            fault_of(&stream(vec![("v", array)]), &of_type("text")),
            expected
        );
    }
    let nested = StructArray::from(vec![(
        Arc::new(Field::new("a", DataType::Int32, true)),
        Arc::new(Int32Array::from(vec![1])) as ArrayRef,
    )]);
    assert!(
        fault_of(&stream(vec![("v", Arc::new(nested))]), &of_type("jsonb"))
            .starts_with("column \"v\": Arrow type Struct(")
    );
    let other = stream(vec![("w", Arc::new(Int32Array::from(vec![1])))]);
    assert_eq!(
        fault_of(&other, &of_type("int4")),
        "table public.events has no column \"w\""
    );
    let twice = Schema::new(vec![
        Field::new("v", DataType::Int32, true),
        Field::new("v", DataType::Int32, true),
    ]);
    let array: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let twice = RecordBatch::try_new(Arc::new(twice), vec![array.clone(), array]).unwrap();
    assert_eq!(
        fault_of(&stream_of(&[twice]), &of_type("int4")),
        "column \"v\" appears more than once"
    );
    let no_columns = RecordBatch::try_new_with_options(
        Arc::new(Schema::empty()),
        vec![],
        &RecordBatchOptions::new().with_row_count(Some(5)),
    );
    assert_eq!(
        fault_of(&stream_of(&[no_columns.unwrap()]), &of_type("int4")),
        "batch of 5 rows has no columns"
    );
}

#[test]
fn what_is_no_stream() {
    let body = stream(vec![("v", Arc::new(Int64Array::from(vec![1, 2, 3])))]);
    let table = of_type("int8");
    for (body, expected) in [
        (Vec::new(), "not an Arrow IPC stream: it is empty"),
        (
            b"ARROW1\0\0".to_vec(),
            "not an Arrow IPC stream: it is an Arrow file; send the stream format",
        ),
        (
            b"{\"v\":1}".to_vec(),
            "Arrow IPC stream, message 1: metadata of 578167419 bytes where 3 are left",
        ),
        (
            b"ab".to_vec(),
            "Arrow IPC stream, message 1: cut off: 2 bytes are left",
        ),
        (
            body[..body.len() - 16].to_vec(),
            "Arrow IPC stream, message 2: body of 64 bytes where 56 are left",
        ),
        (
            [&body[..], &body[..]].concat(),
            &format!(
                "Arrow IPC stream, message 3: {} bytes follow the end of the stream",
                body.len()
            ),
        ),
        (
            [0xff; 8].to_vec(),
            "Arrow IPC stream, message 1: metadata of -1 bytes where 0 are left",
        ),
    ] {
        let fault = fault_of(&body, &table);
        assert!(
            fault == expected
                || (expected.contains("body of") && fault.contains("message 2: body of")),
            "{fault}"
        );
    }
    // Without its end mark a stream is whole all the same.
    let mut out = Vec::new();
    assert_eq!(
        decode(&body[..body.len() - 8], &table, 100, BYTES_MAX, &mut out),
        Ok(3)
    );
    // A record batch without its schema.
    let schema_bytes = 8 + i32::from_le_bytes(body[4..8].try_into().unwrap()) as usize;
    assert_eq!(
        fault_of(&body[schema_bytes..], &table),
        "Arrow IPC stream, message 1: the first message is not a schema"
    );
    assert_eq!(
        fault_of(
            &[&body[..schema_bytes], &body[..schema_bytes]].concat(),
            &table
        ),
        "Arrow IPC stream, message 2: a message of type Schema is not expected"
    );
}

#[test]
fn rows_and_bytes_are_bounded() {
    let table = of_type("int8");
    let one = || batch(vec![("v", Arc::new(Int64Array::from(vec![1; 50])))]);
    let body = stream_of(&[one(), one()]);
    let mut out = Vec::new();
    assert_eq!(decode(&body, &table, 100, 800, &mut out), Ok(100));
    assert_eq!(
        decode(&body, &table, 99, 800, &mut out),
        Err(Malformed::TooManyRows { rows_max: 99 })
    );
    assert_eq!(
        decode(&body, &table, 100, 799, &mut out),
        Err(Malformed::TooLarge { bytes_max: 799 })
    );
    // A thousand views of one long text.
    let mut builder = builder::StringViewBuilder::new().with_deduplicate_strings();
    let text = "x".repeat(10_000);
    (0..1000).for_each(|_| builder.append_value(&text));
    let body = stream(vec![("v", Arc::new(builder.finish()))]);
    assert!(body.len() < 50_000);
    assert_eq!(
        decode(&body, &of_type("text"), 1000, 1 << 20, &mut out),
        Err(Malformed::TooLarge { bytes_max: 1 << 20 })
    );
    // Rows without bytes.
    let body = stream(vec![("v", Arc::new(NullArray::new(1 << 40)))]);
    assert_eq!(
        decode(&body, &table, 100, 800, &mut out),
        Err(Malformed::TooManyRows { rows_max: 100 })
    );
}

#[test]
fn delta_dictionaries_are_refused_by_name() {
    let options = IpcWriteOptions::default()
        .with_dictionary_handling(arrow_ipc::writer::DictionaryHandling::Delta);
    let dictionary = |keys: Vec<i8>, values: Vec<&str>| {
        let array = DictionaryArray::<Int8Type>::new(
            Int8Array::from(keys),
            Arc::new(StringArray::from(values)),
        );
        batch(vec![("v", Arc::new(array))])
    };
    let batches = [
        dictionary(vec![0], vec!["a"]),
        dictionary(vec![1], vec!["a", "b"]),
    ];
    let mut writer =
        StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    for batch in &batches {
        writer.write(batch).unwrap();
    }
    assert_eq!(
        fault_of(&writer.into_inner().unwrap(), &of_type("text")),
        "Arrow IPC stream, message 4: delta dictionaries are not supported; send the whole dictionary"
    );
}

fn columns() -> impl Strategy<
    Value = (
        Vec<Option<i64>>,
        Vec<Option<String>>,
        Vec<Option<bool>>,
        usize,
    ),
> {
    (0_usize..40).prop_flat_map(|rows| {
        (
            proptest::collection::vec(any::<Option<i64>>(), rows),
            proptest::collection::vec(proptest::option::of("[^\0]{0,20}"), rows),
            proptest::collection::vec(any::<Option<bool>>(), rows),
            0..=rows,
        )
    })
}

fn four_columns() -> Table {
    table(&[
        ("number", "int8"),
        ("text", "text"),
        ("word", "text"),
        ("flag", "bool"),
    ])
}

fn written(
    (numbers, texts, flags, cut): &(
        Vec<Option<i64>>,
        Vec<Option<String>>,
        Vec<Option<bool>>,
        usize,
    ),
) -> Vec<u8> {
    let words: DictionaryArray<Int8Type> = texts.iter().map(Option::as_deref).collect();
    let whole = batch(vec![
        ("number", Arc::new(Int64Array::from(numbers.clone()))),
        ("text", Arc::new(StringArray::from(texts.clone()))),
        ("word", Arc::new(words)),
        ("flag", Arc::new(BooleanArray::from(flags.clone()))),
    ]);
    let rest = whole.num_rows() - cut;
    stream_of(&[whole.slice(0, *cut), whole.slice(*cut, rest)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn arrays_come_back(columns in columns()) {
        let mut out = Vec::new();
        let rows = decode(&written(&columns), &four_columns(), 100, BYTES_MAX, &mut out);
        let (numbers, texts, flags, _) = columns;
        prop_assert_eq!(rows, Ok(numbers.len()));
        let view = BatchView::verify(&out).unwrap();
        let found: Vec<_> = cells(&view).into_iter().map(|(_, cells)| cells).collect();
        let text = |value: Option<i64>| value.map(|value| value.to_string());
        prop_assert_eq!(&found[0], &numbers.into_iter().map(text).collect::<Vec<_>>());
        prop_assert_eq!(&found[1], &texts);
        prop_assert_eq!(&found[2], &texts);
        let flag = |value: Option<bool>| value.map(|value| value.to_string());
        prop_assert_eq!(&found[3], &flags.into_iter().map(flag).collect::<Vec<_>>());
    }

    #[test]
    fn broken_streams_end_well(
        columns in columns(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut body = written(&columns);
        for (place, byte) in changes {
            let place = place.index(body.len());
            body[place] = byte;
        }
        if let Some(end) = end {
            body.truncate(end.index(body.len()));
        }
        let mut out = Vec::new();
        if decode(&body, &four_columns(), 100, BYTES_MAX, &mut out).is_ok() {
            BatchView::verify(&out).unwrap();
        }
    }
}
