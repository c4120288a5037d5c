//! Events that tables accept, and events that they refuse.

use super::{
    FLATBUFFERS, assert_refused, assert_stored, batch, begin, run, scalar, send, settings,
};
use lanes_support::cluster::Cluster;
use lanes_support::gateway::Gateway;
use lanes_support::provision::{Passwords, provision};
use lanes_wire::ColumnType;

const GRANT: &str = "GRANT INSERT ON ALL TABLES IN SCHEMA public TO lanes_gateway";

#[test]
fn every_type_is_stored_bit_by_bit() {
    let (cluster, _passwords, gateway) = begin(
        "events_types",
        "CREATE DOMAIN celsius AS float8 CHECK (VALUE > -273.15);
         CREATE TABLE all_types (b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 celsius, tz timestamptz, ts timestamp, d date,
             u uuid, t text, v varchar(20), raw bytea, n numeric, j jsonb, host text NOT NULL DEFAULT 'here') USING lanes;
         GRANT INSERT ON all_types TO lanes_gateway",
    );
    let columns = [
        ("b", ColumnType::Bool),
        ("i2", ColumnType::Int16),
        ("i4", ColumnType::Int32),
        ("i8", ColumnType::Int64),
        ("f4", ColumnType::Float32),
        ("f8", ColumnType::Float64),
        ("tz", ColumnType::Timestamp),
        ("ts", ColumnType::Timestamp),
        ("d", ColumnType::Date),
        ("u", ColumnType::Uuid),
        ("t", ColumnType::Text),
        ("v", ColumnType::Text),
        ("raw", ColumnType::Bytes),
        ("n", ColumnType::Text),
        ("j", ColumnType::Text),
    ];
    let body = batch(&columns, |buffers| {
        let [b, i2, i4, i8, f4, f8, tz, ts, d, u, t, v, raw, n, j] = buffers else {
            unreachable!("as many as named")
        };
        b.push_bool(true).unwrap();
        i2.push_i16(-2).unwrap();
        i4.push_i32(i32::MAX).unwrap();
        i8.push_i64(i64::MIN).unwrap();
        f4.push_f32(0.1).unwrap();
        f8.push_f64(-0.0).unwrap();
        tz.push_i64(1_700_000_000_123_456).unwrap();
        ts.push_i64(i64::MAX).unwrap();
        d.push_i32(-1).unwrap();
        u.push_uuid(*b"0123456789abcdef").unwrap();
        t.push_text("grüße").unwrap();
        v.push_text("").unwrap();
        raw.push_bytes(&[0, 255]).unwrap();
        n.push_text("123456789012345678901234567890.5").unwrap();
        j.push_text("{\"a\": [1]}").unwrap();
        buffers.iter_mut().for_each(|buffer| buffer.push_null());
    });
    assert_stored(&send(&gateway, "all_types", FLATBUFFERS, &body));
    let sql = "SELECT string_agg(all_types::text, ' / ') FROM all_types";
    run(
        &cluster,
        "ALTER DATABASE lanes SET timezone = 'UTC'; ALTER DATABASE lanes SET datestyle = 'ISO'",
    );
    assert_eq!(
        scalar(&cluster, sql),
        "(t,-2,2147483647,-9223372036854775808,0.1,-0,\"2023-11-14 22:13:20.123456+00\",infinity,1969-12-31,\
         30313233-3435-3637-3839-616263646566,grüße,\"\",\"\\\\x00ff\",123456789012345678901234567890.5,\"{\"\"a\"\": [1]}\",here) / \
         (,,,,,,,,,,,,,,,here)"
    );
}

/// Returns one row of column `n`.
fn number(n: i64) -> Vec<u8> {
    batch(&[("n", ColumnType::Int64)], |buffers| {
        buffers[0].push_i64(n).unwrap();
    })
}

#[test]
fn constraints_policies_and_privileges_are_enforced() {
    let (cluster, _passwords, gateway) = begin(
        "events_constraints",
        "CREATE TABLE checked (n int8 CHECK (n < 100), twice int8 GENERATED ALWAYS AS (n * 2) STORED) USING lanes;
         CREATE TABLE keyed (n int8 PRIMARY KEY);
         CREATE TABLE policed (n int8) USING lanes;
         ALTER TABLE policed ENABLE ROW LEVEL SECURITY;
         CREATE TABLE parts (n int8) PARTITION BY RANGE (n);
         CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (10) USING lanes;
         CREATE TABLE heap (n int8);
         CREATE VIEW seen AS SELECT 1::int8 AS n;",
    );
    assert_refused(
        &send(&gateway, "checked", FLATBUFFERS, &number(1)),
        403,
        "GRANT INSERT on it",
    );
    run(&cluster, GRANT);
    // The gateway caches the refusal for a second.
    let granted = (0..100).find_map(|_| {
        let answer = send(&gateway, "checked", FLATBUFFERS, &number(1));
        if answer.status != 403 {
            return Some(answer);
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        None
    });
    assert_stored(&granted.expect("the gateway notices the grant"));
    assert_refused(
        &send(&gateway, "checked", FLATBUFFERS, &number(100)),
        400,
        "checked_n_check",
    );
    assert_stored(&send(&gateway, "keyed", FLATBUFFERS, &number(1)));
    assert_refused(
        &send(&gateway, "keyed", FLATBUFFERS, &number(1)),
        400,
        "keyed_pkey",
    );
    assert_refused(
        &send(&gateway, "policed", FLATBUFFERS, &number(1)),
        400,
        "row-level security",
    );
    assert_stored(&send(&gateway, "parts", FLATBUFFERS, &number(1)));
    assert_refused(
        &send(&gateway, "parts", FLATBUFFERS, &number(11)),
        400,
        "partition",
    );
    assert_stored(&send(&gateway, "heap", FLATBUFFERS, &number(1)));
    assert_refused(
        &send(&gateway, "seen", FLATBUFFERS, &number(1)),
        404,
        "table public.seen does not exist",
    );
    assert_eq!(
        scalar(
            &cluster,
            "SELECT concat_ws(' ', (SELECT sum(twice) FROM checked), (SELECT count(*) FROM keyed), (SELECT count(*) FROM policed),
                    (SELECT count(*) FROM parts), (SELECT count(*) FROM heap))"
        ),
        "2 1 0 1 1"
    );
}

/// An error that only PostgreSQL can detect also has its row and column.
#[test]
fn a_refused_value_is_reported_with_row_and_column() {
    let (_cluster, _passwords, gateway) = begin(
        "events_places",
        "CREATE TYPE mood AS ENUM ('glad', 'sad');
         CREATE DOMAIN celsius AS float8 CHECK (VALUE > -273.15);
         CREATE TABLE t (m mood, c celsius, v varchar(3), n numeric(4, 2), a int[], i int CHECK (i > 0)) USING lanes;
         GRANT INSERT ON t TO lanes_gateway",
    );
    for (row, told) in [
        (
            r#"{"m": "angry"}"#,
            r#"row 2, column "m": invalid input value for enum"#,
        ),
        (
            r#"{"c": -300}"#,
            r#"row 2: value for domain public.celsius violates"#,
        ),
        (r#"{"v": "long"}"#, r#"row 2, column "v": value too long"#),
        (
            r#"{"n": 100}"#,
            r#"row 2, column "n": numeric field overflow"#,
        ),
        (
            r#"{"a": "1"}"#,
            r#"row 2, column "a": malformed array literal"#,
        ),
        (
            r#"{"i": -1}"#,
            "row 2: new row for relation \"t\" violates check constraint",
        ),
    ] {
        let body = format!("{{\"m\": \"glad\"}}\n{row}\n{{\"m\": \"sad\"}}");
        assert_refused(
            &send(&gateway, "t", "application/json", body.as_bytes()),
            400,
            told,
        );
    }
}

#[test]
fn a_table_may_change_while_requests_arrive() {
    let (cluster, _passwords, gateway) = begin(
        "events_changes",
        "CREATE TABLE t (n int8) USING lanes; GRANT INSERT ON t TO lanes_gateway",
    );
    assert_stored(&send(&gateway, "t", FLATBUFFERS, &number(1)));
    run(&cluster, "ALTER TABLE t ADD COLUMN m int8");
    let wider = batch(
        &[("n", ColumnType::Int64), ("m", ColumnType::Int64)],
        |buffers| {
            buffers
                .iter_mut()
                .for_each(|buffer| buffer.push_i64(2).unwrap());
        },
    );
    assert_stored(&send(&gateway, "t", FLATBUFFERS, &wider));
    run(&cluster, "ALTER TABLE t DROP COLUMN m");
    assert_refused(
        &send(&gateway, "t", FLATBUFFERS, &wider),
        400,
        "has no column \"m\"",
    );
    run(
        &cluster,
        "ALTER TABLE t ALTER COLUMN n TYPE text USING n::text",
    );
    assert_refused(
        &send(&gateway, "t", FLATBUFFERS, &number(3)),
        400,
        "is text, which does not accept Int64",
    );
    run(
        &cluster,
        "DROP TABLE t; CREATE TABLE t (n int8) USING lanes; GRANT INSERT ON t TO lanes_gateway",
    );
    assert_stored(&send(&gateway, "t", FLATBUFFERS, &number(4)));
    assert_eq!(
        scalar(&cluster, "SELECT string_agg(n::text, ',') FROM t"),
        "4"
    );
    run(&cluster, "DROP TABLE t");
    assert_refused(
        &send(&gateway, "t", FLATBUFFERS, &number(5)),
        404,
        "table public.t does not exist",
    );
}

#[test]
fn a_table_is_created_for_the_first_request_if_configured() {
    let cluster = Cluster::builder("events_created").start().unwrap();
    let passwords = Passwords::generate();
    provision(&cluster, &passwords).unwrap();
    run(&cluster, "GRANT CREATE ON SCHEMA public TO lanes_gateway");
    let settings = settings("gateway", &cluster, &passwords)
        .environment("LANES_GATEWAY_EVENTS_CREATE_TABLES", "logged");
    let gateway = Gateway::start(settings).unwrap();
    let json = "application/json";
    let first =
        br#"[{"At": "2026-01-05T16:00:00.5Z", "n": 1, "x": 2, "t": "a", "ok": true, "tags": ["b"]},
        {"At": "2026-01-05T17:00:00+01:00", "x": 0.5, "t": "2026-01-05T16:00:00Z"}]"#;
    assert_stored(&send(&gateway, "made", json, first));
    assert_stored(&send(
        &gateway,
        "made",
        json,
        br#"{"n": -1, "tags": {"c": 1}}"#,
    ));
    assert_refused(
        &send(&gateway, "made", json, br#"{"n": 0.5}"#),
        400,
        "column \"n\"",
    );
    let columns = "SELECT string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum)
                     FROM pg_attribute WHERE attrelid = 'made'::regclass AND attnum > 0";
    assert_eq!(
        scalar(&cluster, columns),
        "\"At\" timestamp with time zone, n bigint, x double precision, t text, ok boolean, tags jsonb"
    );
    assert_eq!(
        scalar(
            &cluster,
            "SELECT concat_ws(' ', count(*), sum(n), sum(x), max(extract(epoch FROM \"At\")), (SELECT amname FROM pg_class JOIN pg_am ON relam = pg_am.oid WHERE relname = 'made'))
               FROM made"
        ),
        "3 0 2.5 1767628800.500000 lanes"
    );
    assert_stored(&send(&gateway, "flat", FLATBUFFERS, &number(1)));
    assert_refused(
        &send(&gateway, "none", json, br#"[{"n": 1, "m": null}]"#),
        400,
        "column \"m\": every value is null",
    );
    assert_eq!(scalar(&cluster, "SELECT to_regclass('none') IS NULL"), "t");
}
