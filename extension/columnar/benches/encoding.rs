//! `cargo bench -p lanes-columnar --bench encoding [-- <file>]`: what a sample of node_exporter
//! costs when it is sealed, by lane: bytes, and nanoseconds of the processor a row to encode, to
//! open, and to decode beside copying the plain lane in the same run.
//!
//! The samples are those of a few machines' pages (`node_exporter/page.txt`: a captured page, a
//! line a series: value, decimals or `-`, and how it moves), for some time at a scrape every ten
//! seconds, sorted by series and time and cut into full segments. Values move as the page did:
//! counters grow at about their rate, gauges walk around their value, the rest stands still. A file
//! has rows of one's own instead: series and time as integers, value as a float, 8 bytes each,
//! little-endian, sorted.

mod node_exporter;

use lanes_columnar::encoding::{DecodedVector, EncodedLane, encode_lane, key_starts};
use lanes_columnar::kind::{LaneKind, Number};
use lanes_columnar::limits::{SEGMENT_ROWS, VECTOR_ROWS};
use lanes_columnar::{Column, LaneData};
use node_exporter::{DOUBLE, LONG, Random, Row, column, median, samples};
use std::hint::black_box;

fn main() {
    let file = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    println!(
        "{:<24}{:<8}{:>9}{:>10}{:>10}{:>10}{:>10}{:>9}{:>8}  encodings of vectors",
        "samples",
        "lane",
        "B/sample",
        "encode ns",
        "open ns",
        "decode ns",
        "copy ns",
        "GB/s",
        "x copy"
    );
    if let Some(file) = file {
        let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let rows = bytes.as_chunks::<24>().0.iter();
        let rows: Vec<Row> = rows
            .map(|row| [0, 1, 2].map(|word_at| word(&row.as_chunks::<8>().0[word_at])))
            .collect();
        return report(&file, &rows);
    }
    report("hour", &samples(2, 360, 0));
    report("hour, 3 ms late", &samples(2, 360, 3));
    report("5 minutes, 3 ms late", &samples(24, 30, 3));
    report("a minute, 3 ms late", &samples(120, 6, 3));
    report("one scrape, 3 ms late", &samples(360, 1, 3));
    report_others();
}

/// Prints what these samples cost, by lane and in all.
fn report(name: &str, rows: &[Row]) {
    let mut total = 0.0;
    for (lane, (lane_name, kind)) in [("series", LONG), ("ts", LONG), ("value", DOUBLE)]
        .into_iter()
        .enumerate()
    {
        let columns: Vec<(Column, Vec<u32>)> = rows
            .chunks(SEGMENT_ROWS as usize)
            .map(|rows| {
                (
                    column(rows, lane, kind),
                    key_starts(&[&column(rows, 0, LONG)]),
                )
            })
            .collect();
        total += report_lane(name, lane_name, kind, &columns);
    }
    println!("{name:<24}{:<8}{total:>9.3}", "all");
}

/// Prints what lanes of other kinds cost, of events as they come.
fn report_others() {
    let mut random = Random(11);
    let mut events = |kind: LaneKind, value: &dyn Fn(u64, usize) -> Vec<u8>| {
        let mut column = Column::new(kind);
        for row in 0..SEGMENT_ROWS as usize {
            match (kind, value(random.next(), row)) {
                (LaneKind::Bool, value) => column.push_bool(value[0] != 0),
                (LaneKind::Varlena { .. }, value) => column.push_item(&value),
                (_, value) => column.push_fixed(&value),
            }
        }
        [(column, Vec::new())]
    };
    let number = |width, number| LaneKind::Fixed {
        width,
        stride: width,
        number,
    };
    let name = "events";
    let (int, real) = (number(4, Number::Signed), number(4, Number::Float));
    let text = |dictionary| LaneKind::Varlena {
        dictionary,
        packed: true,
    };
    let sizes = events(int, &|random, _| {
        ((random % 5_000) as i32).to_ne_bytes().to_vec()
    });
    report_lane(name, "int4", int, &sizes);
    let durations = events(real, &|random, _| {
        ((random % 20_000) as f32 / 100.0).to_ne_bytes().to_vec()
    });
    report_lane(name, "float4", real, &durations);
    let doubles = events(DOUBLE, &|random, _| {
        ((random >> 11) as f64).sqrt().to_ne_bytes().to_vec()
    });
    report_lane(name, "float8", DOUBLE, &doubles);
    let is_error = events(LaneKind::Bool, &|random, _| {
        vec![u8::from(random % 50 == 0)]
    });
    report_lane(name, "bool", LaneKind::Bool, &is_error);
    let services = events(text(true), &|random, _| {
        format!("service-{}", random % 60).into_bytes()
    });
    report_lane(name, "codes", text(true), &services);
    let lines = events(text(false), &|random, row| {
        format!("GET /api/v1/query?id={row} 200 in {} ms", random % 500).into_bytes()
    });
    report_lane(name, "text", text(false), &lines);
}

/// Prints what a lane costs and answers its bytes a sample.
fn report_lane(name: &str, lane: &str, kind: LaneKind, columns: &[(Column, Vec<u32>)]) -> f64 {
    let rows: usize = columns.iter().map(|(column, _)| column.rows()).sum();
    let encode = || -> Vec<Vec<u8>> {
        columns
            .iter()
            .map(|(column, starts)| encode_lane(column, starts).expect("a lane"))
            .collect()
    };
    let encoded = encode();
    let bytes: usize = encoded.iter().map(Vec::len).sum();
    let open = || -> Vec<EncodedLane<'_>> {
        encoded
            .iter()
            .map(|bytes| EncodedLane::open(bytes, kind).expect("a lane"))
            .collect()
    };
    let lanes = open();
    let mut vector = DecodedVector::new();
    let mut copy = vec![0_u8; VECTOR_ROWS * 8];
    let per_row = |time: f64| time / rows as f64;
    let encode_time = per_row(median(|| drop(black_box(encode()))));
    let open_time = per_row(median(|| drop(black_box(open()))));
    let decode_time = per_row(median(|| {
        for lane in &lanes {
            for index in 0..lane.vectors() {
                lane.decode_vector(index, &mut vector);
                black_box(vector.lane(None));
            }
        }
    }));
    let width = match kind {
        LaneKind::Fixed { width, .. } => usize::from(width),
        _ => 4,
    };
    let copy_time = per_row(median(|| {
        for (column, _) in columns {
            let values = match column.lane().data {
                LaneData::Fixed { values, .. } => values,
                LaneData::Codes { codes, .. } => codes.cast(),
                // A plain lane of another class has more than one part.
                _ => return,
            };
            // SAFETY: the column has as many values of that width.
            let values = unsafe { std::slice::from_raw_parts(values, column.rows() * width) };
            for vector in values.chunks(copy.len()) {
                copy[..vector.len()].copy_from_slice(vector);
                black_box(&copy);
            }
        }
    }));
    let mut encodings: Vec<(&str, usize)> = Vec::new();
    for (name, count) in lanes.iter().flat_map(EncodedLane::encodings) {
        match encodings.iter_mut().find(|(known, _)| *known == name) {
            Some((_, total)) => *total += count,
            None => encodings.push((name, count)),
        }
    }
    let per_sample = bytes as f64 / rows as f64;
    println!(
        "{name:<24}{lane:<8}{per_sample:>9.3}{encode_time:>10.2}{open_time:>10.2}{decode_time:>10.2}{copy_time:>10.2}{:>9.1}{:>8.1}  {}",
        width as f64 / decode_time,
        decode_time / copy_time,
        encodings
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    per_sample
}
