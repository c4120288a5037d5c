use super::*;

/// Generates a value of this kind, and the cell that it becomes.
fn value(kind: ColumnKind) -> BoxedStrategy<(Value, String)> {
    fn same<T: ToString + Into<Value>>(value: T) -> (Value, String) {
        let text = value.to_string();
        (value.into(), text)
    }
    // The addition turns minus zero, which JSON text does not keep, into zero.
    match kind {
        ColumnKind::Bool => any::<bool>().prop_map(same).boxed(),
        ColumnKind::Int2 => any::<i16>().prop_map(same).boxed(),
        ColumnKind::Int4 => any::<i32>().prop_map(same).boxed(),
        ColumnKind::Int8 => any::<i64>().prop_map(same).boxed(),
        ColumnKind::Float4 => any::<f32>()
            .prop_map(|value| if value.is_finite() { value + 0.0 } else { 0.0 })
            .prop_map(|value| (json!(f64::from(value)), format!("{value:?}")))
            .boxed(),
        ColumnKind::Float8 => any::<f64>()
            .prop_map(|value| if value.is_finite() { value + 0.0 } else { 0.0 })
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

/// Generates a row: for each column a value, NULL, or nothing.
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
            prop_assert_eq!(result, Err(Malformed::NoColumns));
        } else {
            prop_assert_eq!(result, Ok(rows.len()));
            let view = BatchView::verify(&out).unwrap();
            prop_assert_eq!(view.rows(), rows.len());
            let mut found = cells_by_name(&view);
            for (_, cells) in found.iter_mut().filter(|(name, _)| name == "doc") {
                for cell in cells.iter_mut().flatten() {
                    // White space is kept too; the pretty form contains some.
                    *cell = serde_json::from_str::<Value>(cell).unwrap().to_string();
                }
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn any_bytes_are_handled(bytes in any::<Vec<u8>>(), text in "[\\[{\"a-z:,}\\]0-9\n ]*") {
        for body in [bytes.as_slice(), text.as_bytes()] {
            let mut out = Vec::new();
            if decode(body, &every_kind(), 10, BYTES_MAX, &mut out).is_ok() {
                BatchView::verify(&out).unwrap();
            }
        }
    }
}
