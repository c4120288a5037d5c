//! `cargo bench -p lanes-columnar --bench sealing`: what sealing costs by step, in nanoseconds of the processor a row: sorting by
//! series and time, gathering the columns in that order, and encoding them.
//!
//! Rows come as a scraper writes them, one scrape of all series after the other, so far into the night; or, to be merged, as
//! four parts that have been sealed, one after the other.

mod node_exporter;

use lanes_columnar::Column;
use lanes_columnar::encoding::key_starts;
use lanes_columnar::image;
use lanes_columnar::limits::SEGMENT_ROWS;
use lanes_columnar::sort::sort_rows;
use node_exporter::{DOUBLE, LONG, Row, column, median, samples};
use std::hint::black_box;

fn main() {
    println!(
        "{:<32}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "rows", "count", "sort ns", "gather ns", "encode ns", "all ns"
    );
    for (targets, scrapes) in [(3, 33), (3, 131), (3, 524), (1, 2_000)] {
        let mut rows = samples(targets, scrapes, 3);
        rows.sort_by_key(|row| (row[1] / 10_000_000, row[0]));
        report(&format!("sealed, {scrapes} scrapes"), &rows);
    }
    for (targets, scrapes) in [(3, 132), (3, 524), (1, 2_000)] {
        let mut rows = samples(targets, scrapes, 3);
        rows.sort_by_key(|row| (row[1] / 10_000_000, row[0]));
        let mut merged = Vec::with_capacity(rows.len());
        for part in rows.chunks(rows.len().div_ceil(4)) {
            let mut part = part.to_vec();
            part.sort_by_key(|row| (row[0], row[1]));
            merged.extend_from_slice(&part);
        }
        report(&format!("merged, 4 of {} scrapes", scrapes / 4), &merged);
    }
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
    let encode = || -> usize {
        gathered
            .iter()
            .map(|columns| {
                let mut bytes = Vec::new();
                let starts = key_starts(&[&columns[0]]);
                image::encode_sealed(columns, columns[0].rows(), &starts, &mut bytes)
                    .expect("a segment");
                bytes.len()
            })
            .sum()
    };
    let per_row = |time: f64| time / rows.len() as f64;
    let times = [
        per_row(median(|| drop(black_box(sort())))),
        per_row(median(|| drop(black_box(gather())))),
        per_row(median(|| _ = black_box(encode()))),
    ];
    println!(
        "{name:<32}{:>10}{:>10.1}{:>10.1}{:>10.1}{:>10.1}",
        rows.len(),
        times[0],
        times[1],
        times[2],
        times.iter().sum::<f64>()
    );
}
