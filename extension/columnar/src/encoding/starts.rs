//! Where the rows of one key begin.

use crate::bits;
use crate::body::Body;
use crate::column::Column;

/// The rows at which some of these columns differs from the row before, row 0 excluded: with the
/// columns that rows are sorted by before their time, where each series begins. Columns have as
/// many rows. NULL equals NULL.
pub fn key_starts(columns: &[&Column]) -> Vec<u32> {
    let rows = columns.first().map_or(0, |column| column.rows());
    let mut differs = vec![false; rows];
    let mut own = differs.clone();
    for column in columns {
        mark(column, &mut own);
        for (differs, own) in differs.iter_mut().zip(&own) {
            *differs |= own;
        }
    }
    let starts = (0..).zip(&differs).filter(|(_, differs)| **differs);
    starts.map(|(row, _)| row).collect()
}

/// Says of each row of a column but the first whether it differs from the row before.
fn mark(column: &Column, differs: &mut [bool]) {
    match column.body() {
        Body::Absent => differs.fill(false),
        Body::Bool(bitmap) => each(differs, |row| {
            bits::get(bitmap.words(), row) != bits::get(bitmap.words(), row - 1)
        }),
        Body::Fixed { stride, values, .. } => match stride {
            8 => mark_equal::<8>(values, differs),
            4 => mark_equal::<4>(values, differs),
            _ => {
                let value = |row: usize| &values[row * stride..(row + 1) * stride];
                each(differs, |row| value(row) != value(row - 1));
            }
        },
        Body::Plain(items) => each(differs, |row| items.item(row) != items.item(row - 1)),
        Body::Coded { codes, .. } => each(differs, |row| codes[row] != codes[row - 1]),
    }
    // The values of NULL rows do not count.
    if let Some(validity) = column.validity() {
        for (row, differs) in differs.iter_mut().enumerate().skip(1) {
            match (bits::get(validity, row - 1), bits::get(validity, row)) {
                (true, true) => {}
                (before, now) => *differs = before != now,
            }
        }
    }
}

fn each(differs: &mut [bool], is_other: impl Fn(usize) -> bool) {
    for (row, differs) in differs.iter_mut().enumerate().skip(1) {
        *differs = is_other(row);
    }
}

fn mark_equal<const N: usize>(values: &[u8], differs: &mut [bool]) {
    let values = values.as_chunks::<N>().0;
    let pairs = values.iter().zip(values.iter().skip(1));
    for (differs, (before, now)) in differs.iter_mut().skip(1).zip(pairs) {
        *differs = before != now;
    }
}
