//! The place map of a part that is being sealed: see [`lanes_columnar::place_map`].
//!
//! In runs, and in parts without a map, the entry number of a row is its row number. In a part with a
//! map, the map has the entry numbers. A new map leads from entry numbers directly to the new places.
//! So a row that was sealed many times is still found by one look-up.

use std::ops::Range;

use lanes_columnar::place_map::{self, GONE};

use crate::error;
use crate::pg::table::OpenTable;
use crate::storage::part_image;
use crate::table::reader::Content;

/// The map of a part with these rows of a range, in this order. Rows are given by their distances
/// from the range's first row. `None`: each row lies at its entry number.
pub fn of_range(
    table: OpenTable<'_>,
    content: &Content,
    range: &Range<u64>,
    rows: &[u32],
) -> Option<Vec<u8>> {
    let span = (range.end - range.start) as usize;
    let mut places = vec![GONE; span];
    for (place, &row) in rows.iter().enumerate() {
        places[row as usize] = place as u32;
    }
    let within = |first_row: u64| range.contains(&first_row);
    let parts = content.parts.live().iter().map(|part| &part.entry);
    for part in parts.filter(|part| part.is_mapped() && within(part.first_row)) {
        let first = (part.first_row - range.start) as usize;
        let mut of_part = part_image::read_places(table, part);
        for place in of_part.iter_mut().filter(|place| **place != GONE) {
            *place = places[first + *place as usize];
        }
        places[first..first + of_part.len()].copy_from_slice(&of_part);
    }
    if place_map::is_identity(&places) {
        return None;
    }
    let map = place_map::encode(&places);
    Some(map.unwrap_or_else(|| {
        error::too_large(
            "the place map of a sealed part would take more than 4 GiB",
            "Set lanes.seal_memory lower, so that fewer rows are sealed together.",
        )
    }))
}
