//! Entry numbers: the numbers by which index entries know rows.
//!
//! ```text
//! index entry ── entry number ──► place map of the sealed part ──► row number ──► run, tombstones, values
//!                                 (no map, or not sealed: the same number)
//! ```
//!
//! A row's entry number is the row number with which it was inserted. It never changes and is never
//! given to another row. A row's row number changes when the row is sealed. Everything except
//! indexes works with row numbers: tuple ids in slots, tombstones, locks. So an index scan converts
//! entry numbers to row numbers as it fetches rows. Whoever makes index entries for existing rows
//! converts row numbers to entry numbers ([`EntryNumbers`]).

use std::ops::Range;

use lanes_columnar::place_map::GONE;

use super::reader::Content;
use crate::pg::table::OpenTable;
use crate::storage::part::Parts;
use crate::storage::part_image;

/// The row number of the row with an entry number; `None`: the row is gone. A number that no row
/// ever had may be returned unchanged.
pub fn row_of(table: OpenTable<'_>, parts: &Parts, number: u64) -> Option<u64> {
    let Some(part) = parts.part_of_row(number) else {
        return Some(number);
    };
    let Some(places) = part.places(table) else {
        return Some(number);
    };
    let first_row = part.entry.first_row;
    let within = u32::try_from(number - first_row).ok()?;
    let place = part_image::read_place(table, &part.entry, places, within)?;
    Some(first_row + u64::from(place))
}

/// Finds the entry numbers of rows that are asked for in ascending order. Holds the numbers of one
/// part at a time.
#[derive(Default)]
pub struct EntryNumbers {
    /// The rows that `numbers` covers. The entry numbers of other rows are not known yet.
    rows: Range<u64>,
    /// The entry numbers of the rows, by place. Both are counted from the first of the rows. Empty:
    /// entry numbers equal row numbers.
    numbers: Vec<u32>,
}

impl EntryNumbers {
    /// The entry number of a row that exists.
    pub fn of_row(&mut self, table: OpenTable<'_>, content: &Content, row: u64) -> u64 {
        if !self.rows.contains(&row) {
            self.read(table, content, row);
        }
        match self.numbers.get((row - self.rows.start) as usize) {
            Some(&number) => self.rows.start + u64::from(number),
            None => row,
        }
    }

    fn read(&mut self, table: OpenTable<'_>, content: &Content, row: u64) {
        self.numbers.clear();
        let Some(part) = content.parts.of_row(row) else {
            self.rows = row..row + 1;
            return;
        };
        self.rows = part.first_row..part.end_row;
        if !part.is_mapped() {
            return;
        }
        self.numbers.resize(part.rows as usize, 0);
        for (number, place) in (0..).zip(part_image::read_places(table, part)) {
            if place != GONE {
                self.numbers[place as usize] = number;
            }
        }
    }
}
