use super::*;

/// The cells of three columns, and the row at which a second record batch begins.
type Written = (
    Vec<Option<i64>>,
    Vec<Option<String>>,
    Vec<Option<bool>>,
    usize,
);

fn columns() -> impl Strategy<Value = Written> {
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

fn written((numbers, texts, flags, cut): &Written) -> Vec<u8> {
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
    fn broken_streams_are_handled(
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
