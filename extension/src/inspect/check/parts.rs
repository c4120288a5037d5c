//! Sealed parts: their segments and their place maps.

use lanes_columnar::place_map::GONE;

use super::Findings;
use crate::pg::ports::CHECK_FOR_INTERRUPTS;
use crate::pg::table::OpenTable;
use crate::storage::part::LivePart;
use crate::storage::part_image;
use crate::table::reader::Content;

/// Checks that segments and places lie within their part.
pub fn check(table: OpenTable<'_>, content: &Content, findings: &mut Findings) {
    for part in content.parts.live() {
        CHECK_FOR_INTERRUPTS();
        let entry = &part.entry;
        let mut add = |problem: &str| {
            findings.add(format!("part at row {}", entry.first_row), problem);
        };
        let segments = &part.index(table).segments;
        let mut end = entry.first_row;
        if !segments.iter().all(|segment| {
            let follows = segment.first_row >= end;
            end = segment.end_row();
            follows && end <= entry.end_row
        }) {
            add("its segments overlap, or lie outside of it");
        }
        let rows: u64 = segments.iter().map(|segment| u64::from(segment.rows)).sum();
        if rows != entry.rows {
            add(&format!(
                "it has {rows} rows, and should have {}",
                entry.rows
            ));
        }
        if entry.is_mapped()
            && let Some(problem) = problem_of_map(table, part)
        {
            add(problem);
        }
    }
}

/// The problem of a place map: it has to have one place for each row of its part.
fn problem_of_map(table: OpenTable<'_>, part: &LivePart) -> Option<&'static str> {
    let entry = &part.entry;
    let places = part_image::read_places(table, entry);
    if places.len() as u64 != entry.end_row - entry.first_row {
        return Some("its place map is of another number of rows");
    }
    problem_of_places(&places, entry.rows as usize)
}

fn problem_of_places(places: &[u32], rows: usize) -> Option<&'static str> {
    let mut is_taken = vec![false; rows];
    for &place in places.iter().filter(|&&place| place != GONE) {
        match is_taken.get_mut(place as usize) {
            None => return Some("its place map has a place past the last row"),
            Some(taken) if *taken => return Some("its place map has a place twice"),
            Some(taken) => *taken = true,
        }
    }
    (!is_taken.into_iter().all(|taken| taken)).then_some("its place map lacks a row")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_map_has_each_row_once() {
        assert_eq!(problem_of_places(&[2, GONE, 0, 1], 3), None);
        let twice = Some("its place map has a place twice");
        assert_eq!(problem_of_places(&[0, 0, 1], 3), twice);
        let past = Some("its place map has a place past the last row");
        assert_eq!(problem_of_places(&[0, 3], 3), past);
        let lacking = Some("its place map lacks a row");
        assert_eq!(problem_of_places(&[0, GONE, 2], 3), lacking);
    }
}
