use super::*;

#[test]
fn integers() {
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
}

#[test]
fn floats_and_booleans() {
    use ColumnType as To;
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
    // Under a NULL, the sender may have left any value.
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
fn dictionaries_are_kept_without_unused_items() {
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
    // Two batches share a dictionary, and the third has another one.
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
fn columns_of_a_new_table_follow_the_schema() {
    let plain = |name: &str, data_type: DataType| Field::new(name, data_type, true);
    let uuid = [("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())];
    let items = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let fields = [
        (plain("flag", DataType::Boolean), ColumnKind::Bool),
        (plain("small", DataType::UInt8), ColumnKind::Int2),
        (plain("wide", DataType::UInt64), ColumnKind::Int8),
        (plain("real", DataType::Float16), ColumnKind::Float4),
        (
            plain(
                "at",
                DataType::Timestamp(arrow_schema::TimeUnit::Second, None),
            ),
            ColumnKind::Timestamp,
        ),
        (plain("day", DataType::Date64), ColumnKind::Date),
        (plain("service", items), ColumnKind::Text),
        (
            plain("price", DataType::Decimal128(10, 2)),
            ColumnKind::Numeric,
        ),
        (
            plain("digest", DataType::FixedSizeBinary(16)),
            ColumnKind::Bytes,
        ),
        (
            plain("id", DataType::FixedSizeBinary(16))
                .with_metadata(std::collections::HashMap::from(uuid)),
            ColumnKind::Uuid,
        ),
    ];
    let schema = |fields: Vec<Field>| {
        let schema = Schema::new(fields);
        StreamWriter::try_new(Vec::new(), &schema)
            .unwrap()
            .into_inner()
            .unwrap()
    };
    let body = schema(fields.iter().map(|(field, _)| field.clone()).collect());
    let expected: Vec<_> = fields
        .iter()
        .map(|(field, kind)| (field.name().clone(), *kind))
        .collect();
    assert_eq!(columns(&body, 10), Ok(expected));
    for (data_type, expected) in [
        (DataType::Null, "column \"v\": it is of type Null"),
        (
            DataType::new_list(DataType::Int8, true),
            "column \"v\": Arrow type List",
        ),
    ] {
        let error = columns(&schema(vec![plain("v", data_type)]), 10)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(columns(&body[..body.len() / 2], 10).is_err());
}
