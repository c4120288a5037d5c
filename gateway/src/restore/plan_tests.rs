//! Plans of restores.

use super::*;

fn table(oid: u32) -> (String, Bytes) {
    let json = r#"{"table": "public.t", "owner": "me", "create": [], "finish": [], "grants": [], "later": 1}"#;
    (
        record::table_name("7/5", oid),
        Bytes::from_static(json.as_bytes()),
    )
}

fn part(origin: u64, first_row: u64, end_row: u64) -> (String, Bytes) {
    let part = PartRecord {
        target: 9,
        storage: 1,
        origin,
        first_row,
        end_row,
        segments: vec![(format!("7/5/1/{origin}/{first_row}"), end_row - first_row)],
        types: Vec::new(),
    };
    let json = serde_json::to_vec(&part).unwrap();
    (format!("part/7/5/1/{origin}"), json.into())
}

fn head(storage: u64, runs: &[(u64, u64)]) -> (String, Bytes) {
    head_on(1, storage, runs)
}

fn head_on(timeline: u32, storage: u64, runs: &[(u64, u64)]) -> (String, Bytes) {
    let head = Head {
        target: 9,
        storage,
        runs: runs.to_vec(),
        bytes: 1,
        logged_ms: 0,
        columns: Vec::new(),
        timeline,
        wal_place: 1,
    };
    let json = serde_json::to_vec(&head).unwrap();
    (
        record::head_name("7/5", storage, runs[0].0, timeline),
        json.into(),
    )
}

/// The number of rows of an entry, and their slices.
type Taken = (u64, Option<Vec<(u64, u64)>>);

fn entries(plan: &Plan) -> Vec<Taken> {
    let entries = plan.tables[0].entries.iter();
    entries
        .map(|entry| (entry.rows, entry.slices.clone()))
        .collect()
}

#[test]
fn each_row_is_restored_once() {
    let parts = [part(3, 0, 100), part(5, 100, 200)];
    let heads = [
        head(1, &[(90, 10)]),
        head(1, &[(195, 5), (200, 10)]),
        head(1, &[(203, 4)]),
        head(1, &[(210, 3)]),
        head(2, &[(0, 50)]),
    ];
    let plan = plan("7/5", &[table(9)], &[], &parts, &heads, None).unwrap();
    assert_eq!(plan.tables[0].part_rows(), 200);
    assert_eq!(
        entries(&plan),
        [(10, Some(vec![(5, 10)])), (3, None), (50, None),]
    );
}

#[test]
fn merged_parts_are_skipped() {
    let parts = [
        part(3, 0, 100),
        part(4, 100, 200),
        part(7, 50, 250),
        part(6, 300, 400),
    ];
    let plan = plan("7/5", &[table(9)], &[], &parts, &[], None).unwrap();
    let origins: Vec<u64> = plan.tables[0]
        .parts
        .iter()
        .map(|part| part.origin)
        .collect();
    assert_eq!(origins, [7, 6]);
}

#[test]
fn rows_of_a_request_that_was_logged_again_are_cut_out() {
    let heads = [head(1, &[(0, 10)]), head(1, &[(2, 3)]), head(1, &[(8, 4)])];
    let plan = plan("7/5", &[table(9)], &[], &[], &heads, None).unwrap();
    assert_eq!(entries(&plan), [(10, None), (2, Some(vec![(2, 2)]))]);
}

#[test]
fn the_latest_timeline_precedes_earlier_ones() {
    let heads = [
        head_on(1, 1, &[(0, 10)]),
        head_on(1, 1, &[(10, 10)]),
        head_on(2, 1, &[(5, 10)]),
    ];
    let plan = plan("7/5", &[table(9)], &[], &[], &heads, None).unwrap();
    let taken = [(10, None), (5, Some(vec![(0, 5)])), (5, Some(vec![(5, 5)]))];
    assert_eq!(entries(&plan), taken);
}

#[test]
fn records_of_dropped_tables_are_counted_and_damaged_ones_are_named() {
    let gone = plan(
        "7/5",
        &[],
        &[],
        &[part(3, 0, 9)],
        &[head(1, &[(0, 1)])],
        None,
    )
    .unwrap();
    assert_eq!((gone.tables.len(), gone.dropped), (0, 2));
    let damaged = (record::table_name("7/5", 9), Bytes::from_static(b"{"));
    let error = plan("7/5", &[damaged], &[], &[], &[], None).unwrap_err();
    assert!(error.contains("table/7/5/9"), "{error}");
}

#[test]
fn a_forged_definition_ends_the_restore() {
    for (json, expected) in [
        (
            r#"{"table": "public.t", "create": ["COPY public.t FROM PROGRAM 'id'"], "finish": [], "grants": []}"#,
            "COPY public.t",
        ),
        (
            r#"{"table": "public.t", "create": [], "finish": [], "grants": [{"role": null, "statement": "GRANT postgres TO public"}]}"#,
            "GRANT postgres",
        ),
        (
            r#"{"table": "public.t; DROP TABLE u", "create": [], "finish": [], "grants": []}"#,
            "DROP TABLE u",
        ),
    ] {
        let forged = (
            record::table_name("7/5", 9),
            Bytes::from_static(json.as_bytes()),
        );
        let error = plan("7/5", &[forged], &[], &[], &[], None).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_forged_type_of_a_part_ends_the_restore() {
    let (name, value) = part(3, 0, 9);
    let mut forged: PartRecord = serde_json::from_slice(&value).unwrap();
    forged.types = vec![Some("int); DROP TABLE t".to_owned())];
    let forged = serde_json::to_vec(&forged).unwrap().into();
    let error = plan("7/5", &[table(9)], &[], &[(name, forged)], &[], None).unwrap_err();
    assert!(error.contains("DROP TABLE t"), "{error}");
}

#[test]
fn a_forged_type_of_an_added_column_ends_the_restore() {
    let planned = |sql_type: &str| {
        let json = format!(r#"{{"type": "{sql_type}", "value": "1"}}"#);
        let added = (record::added_name("7/5", 9, 2), json.into());
        plan("7/5", &[table(9)], &[added], &[], &[], None)
    };
    let error = planned("int); DROP TABLE t").unwrap_err();
    assert!(error.contains("DROP TABLE t"), "{error}");
    let added = &planned("int").unwrap().tables[0].added;
    assert_eq!(added.keys().copied().collect::<Vec<_>>(), [2]);
}

#[test]
fn databases_are_distinguished() {
    let names = ["table/7/5/9", "head/8/5/00/1", "series/7/5/e/1"];
    assert_eq!(
        scopes(names).into_iter().collect::<Vec<_>>(),
        ["7/5", "8/5"]
    );
}
