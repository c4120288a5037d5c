//! `cargo bench -p lanes-columnar --bench sealing`: what sealing costs by step, in nanoseconds of
//! the processor a row: sorting by series and time, gathering the columns in that order, and
//! encoding them; and the bytes a row that come of it.
//!
//! Rows come as a scraper writes them, one scrape of all series after the other, so far into the
//! night; or, to be merged, as eight parts that have been sealed, one after the other. `-- TEXT`
//! runs only those whose name has the text in it.

mod node_exporter;

use lanes_columnar::Column;
use lanes_columnar::encoding::{encode_lane, key_starts};
use lanes_columnar::limits::SEGMENT_ROWS;
use lanes_columnar::sort::sort_rows;
use node_exporter::{DOUBLE, LONG, Row, column, median, samples};
use std::hint::black_box;

fn main() {
    print!("{:<24}{:>9}", "rows", "count");
    for step in ["sort", "gather", "series", "time", "value", "all"] {
        print!("{:>9}", format!("{step} ns"));
    }
    for lane in ["series", "time", "value", "all"] {
        print!("{:>9}", format!("{lane} B"));
    }
    println!();
    // Cargo passes options of its own.
    let wanted = std::env::args()
        .skip(1)
        .find(|text| !text.starts_with("--"));
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| name.contains(wanted));
    for (targets, scrapes) in [(3, 12), (3, 33), (3, 131), (3, 524), (1, 2_000)] {
        let name = format!("sealed, {scrapes} scrapes");
        if is_wanted(&name) {
            report(&name, &as_scraped(targets, scrapes));
        }
    }
    for (targets, scrapes) in [(3, 96), (3, 264), (3, 1_048)] {
        let name = format!("merged, 8 of {} scrapes", scrapes / 8);
        if !is_wanted(&name) {
            continue;
        }
        let mut rows = as_scraped(targets, scrapes);
        let part = rows.len().div_ceil(8);
        for part in rows.chunks_mut(part) {
            part.sort_by_key(|row| (row[0], row[1]));
        }
        report(&name, &rows);
    }
}

fn as_scraped(targets: usize, scrapes: usize) -> Vec<Row> {
    let mut rows = samples(targets, scrapes, 3);
    rows.sort_by_key(|row| (row[1] / 10_000_000, row[0]));
    rows
}

fn report(name: &str, rows: &[Row]) {
    let columns = [(0, LONG), (1, LONG), (2, DOUBLE)].map(|(lane, kind)| column(rows, lane, kind));
    let sort = || {
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        sort_rows(&[&columns[0], &columns[1]], &mut order);
        order
    };
    let order = sort();
    let gather = || -> Vec<Vec<Column>> {
        order
            .chunks(SEGMENT_ROWS as usize)
            .map(|here| columns.iter().map(|column| column.gather(here)).collect())
            .collect()
    };
    let gathered = gather();
    let encode = |lane: usize| -> usize {
        let lanes = gathered.iter().map(|columns| {
            let starts = key_starts(&[&columns[0]]);
            encode_lane(&columns[lane], &starts).expect("a lane").len()
        });
        lanes.sum()
    };
    let per_row = |number: f64| number / rows.len() as f64;
    let steps = [
        per_row(median(|| drop(black_box(sort())))),
        per_row(median(|| drop(black_box(gather())))),
    ];
    let lanes = [0, 1, 2].map(|lane| per_row(median(|| _ = black_box(encode(lane)))));
    let bytes = [0, 1, 2].map(|lane| per_row(encode(lane) as f64));
    print!("{name:<24}{:>9}", rows.len());
    for time in steps.iter().chain(&lanes) {
        print!("{time:>9.1}");
    }
    print!("{:>9.1}", steps.iter().chain(&lanes).sum::<f64>());
    for bytes in bytes {
        print!("{bytes:>9.3}");
    }
    println!("{:>9.3}", bytes.iter().sum::<f64>());
}
