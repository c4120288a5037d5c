//! Measures how many events a second one core decodes from JSON, in bodies of 100 events, by
//! processor time.
//!
//! `cargo run --release -p lanes-gateway --example decode_events`

use lanes_gateway::events::json;
use lanes_gateway::model::{Room, Table, TableColumn};

const ROWS: u32 = 100;
const BODIES: u32 = 30_000;

fn main() {
    let columns = [
        ("ts", "timestamptz"),
        ("service", "text"),
        ("duration", "float4"),
        ("is_error", "bool"),
    ];
    let table = Table {
        oid: 1,
        name: "events".to_owned(),
        may_insert: true,
        columns: columns
            .iter()
            .map(|(name, sql_type)| TableColumn::nullable(name, sql_type))
            .collect(),
    };
    let rows: Vec<String> = (0..ROWS)
        .map(|row| {
            let (second, microsecond, service) = (row % 60, row * 977, row % 7);
            let is_error = row % 9 == 0;
            format!(
                r#"{{"ts":"2026-01-01T00:00:{second:02}.{microsecond:06}Z","service":"api{service}","duration":{row}.25,"is_error":{is_error}}}"#
            )
        })
        .collect();
    let (mut out, mut room) = (Vec::new(), Room::boundless());
    for (form, body) in [
        ("array", format!("[{}]", rows.join(","))),
        ("lines", rows.join("\n")),
    ] {
        for _ in 0..3 {
            let before = processor_seconds();
            for _ in 0..BODIES {
                let decoded =
                    json::decode(body.as_bytes(), &table, 1_000, 1 << 20, &mut room, &mut out);
                assert_eq!(decoded, Ok(ROWS as usize));
            }
            let seconds = processor_seconds() - before;
            let rate = f64::from(ROWS * BODIES) / seconds / 1e6;
            println!("{form}: {rate:.2} M events/s");
        }
    }
}

/// Returns the user and system time of this process, in units of 10 ms.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit(") ").next().expect("a name in brackets");
    let ticks: u64 = after_name
        .split(' ')
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().expect("a number"))
        .sum();
    ticks as f64 / 100.0
}
