use super::*;

/// Arrays with a fault, and its message.
fn faulty_columns() -> [(ArrayRef, &'static str); 8] {
    [
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
            "row 3, column \"v\": text contains a NUL character",
        ),
        (
            Arc::new(StringViewArray::from(vec!["a", "\0"])),
            "row 2, column \"v\": text contains a NUL character",
        ),
        (
            Arc::new(
                vec!["a", "b\0"]
                    .into_iter()
                    .collect::<DictionaryArray<Int8Type>>(),
            ),
            "row 2, column \"v\": text contains a NUL character",
        ),
        (
            Arc::new(Time64MicrosecondArray::from(vec![1])),
            "column \"v\": Arrow type Time64(µs) is not supported; cast it to text, which a column of any type accepts (an array as '{1,2}')",
        ),
    ]
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
    for (array, expected) in faulty_columns() {
        assert_eq!(
            fault_of(&stream(vec![("v", array)]), &of_type("text")),
            expected
        );
    }
}

#[test]
fn faults_name_column_and_schema() {
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
fn bodies_that_are_not_streams_are_refused() {
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
            "Arrow IPC stream, message 1: metadata of 578167419 bytes, but 3 are left",
        ),
        (
            b"ab".to_vec(),
            "Arrow IPC stream, message 1: truncated: 2 bytes are left",
        ),
        (
            body[..body.len() - 16].to_vec(),
            "Arrow IPC stream, message 2: body of 64 bytes, but 56 are left",
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
            "Arrow IPC stream, message 1: metadata of -1 bytes, but 0 are left",
        ),
    ] {
        let fault = fault_of(&body, &table);
        assert!(
            fault == expected
                || (expected.contains("body of") && fault.contains("message 2: body of")),
            "{fault}"
        );
    }
    // A stream without its end marker is complete nevertheless.
    let mut out = Vec::new();
    assert_eq!(
        decode(&body[..body.len() - 8], &table, 100, BYTES_MAX, &mut out),
        Ok(3)
    );
    // The stream is a record batch without its schema.
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
        "Arrow IPC stream, message 2: unexpected message of type Schema"
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
    // The column has a thousand views of one long text.
    let mut builder = builder::StringViewBuilder::new().with_deduplicate_strings();
    let text = "x".repeat(10_000);
    (0..1000).for_each(|_| builder.append_value(&text));
    let body = stream(vec![("v", Arc::new(builder.finish()))]);
    assert!(body.len() < 50_000);
    assert_eq!(
        decode(&body, &of_type("text"), 1000, 1 << 20, &mut out),
        Err(Malformed::TooLarge { bytes_max: 1 << 20 })
    );
    // The rows have no bytes.
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

#[test]
fn compressed_buffers_are_refused_by_name() {
    // Compression is declared even if there is nothing to compress, which needs no codec.
    let empty = batch(vec![("v", Arc::new(Int64Array::from(Vec::<i64>::new())))]);
    for (compression, codec) in [
        (CompressionType::LZ4_FRAME, "lz4"),
        (CompressionType::ZSTD, "zstd"),
    ] {
        let options = IpcWriteOptions::default()
            .try_with_compression(Some(compression))
            .unwrap();
        let mut writer =
            StreamWriter::try_new_with_options(Vec::new(), &empty.schema(), options).unwrap();
        writer.write(&empty).unwrap();
        assert_eq!(
            fault_of(&writer.into_inner().unwrap(), &of_type("int8")),
            format!(
                "Arrow IPC stream, message 2: its buffers are compressed ({codec}); send them uncompressed"
            )
        );
    }
}

#[test]
fn without_room_nothing_is_read() {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![7; 10_000]));
    let body = stream_of(&[batch(vec![("v", array)])]);
    for (budget_bytes, decoded) in [
        (1 << 20, Ok(10_000)),
        // The room suffices for reading but not for the columns, or not even for reading.
        (4 * body.len(), Err(Malformed::Overloaded(Overloaded))),
        (2 * body.len(), Err(Malformed::Overloaded(Overloaded))),
    ] {
        let budget = Budget::new(budget_bytes, std::time::Duration::ZERO);
        let mut other = Reservation::default();
        other.grow(&budget, 1).unwrap();
        let mut room = Room::new(Reservation::default(), &budget, body.len()).unwrap();
        let mut out = Vec::new();
        let table = of_type("int8");
        let found = super::super::decode(&body, &table, 1_000_000, BYTES_MAX, &mut room, &mut out);
        assert_eq!(found, decoded);
    }
}
