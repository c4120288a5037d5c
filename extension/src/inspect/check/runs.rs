//! Runs and sealed segments: their order, their values and their zones.

use lanes_columnar::arena::RunEntry;
use lanes_columnar::column::Column;
use lanes_columnar::kind::LaneKind;
use lanes_columnar::zone_map::{self, Zone};

use super::Findings;
use crate::inspect::column_name;
use crate::pg::ports::CHECK_FOR_INTERRUPTS;
use crate::storage::directory::{FLAG_DEAD, FLAG_REMOTE, FLAG_SEALED};
use crate::table::decode::try_decode;
use crate::table::reader::{Content, Reader};

/// Decodes every run, one after the other.
pub fn check(reader: &Reader<'_>, content: &Content, remote: bool, findings: &mut Findings) {
    let mut end = 0;
    for index in 0..content.runs.len() {
        CHECK_FOR_INTERRUPTS();
        let run = content.runs.get(index);
        if run.first_row < end {
            findings.add(place_of(&run), "the run before it overlaps it");
        }
        end = run.end_row().max(end);
        if run.flags & FLAG_DEAD != 0 || (run.flags & FLAG_REMOTE != 0 && !remote) {
            continue;
        }
        match try_decode(reader.table, &reader.shape, &run) {
            Err(failure) => findings.add(place_of(&run), failure),
            Ok(columns) if run.flags & FLAG_SEALED != 0 => {
                check_zones(reader, content, &run, &columns, findings);
            }
            Ok(_) => {}
        }
    }
}

fn place_of(run: &RunEntry) -> String {
    let kind = match run.flags & FLAG_SEALED {
        0 => "run",
        _ => "segment",
    };
    format!("{kind} at row {}", run.first_row)
}

fn check_zones(
    reader: &Reader<'_>,
    content: &Content,
    run: &RunEntry,
    columns: &[Column],
    findings: &mut Findings,
) {
    for (index, column) in columns.iter().enumerate() {
        let stored = content.parts.zone(reader.table, run.first_row, index);
        let Some(stored) = stored.filter(|_| column.kind() != LaneKind::Absent) else {
            continue;
        };
        let found = zone_map::of_column(column, 0..column.rows());
        if let Some(difference) = difference(&stored, &found) {
            let column = column_name(reader.table, index).unwrap_or_default();
            let problem = format!("the zone of column {column} has another {difference}");
            findings.add(place_of(run), problem);
        }
    }
}

/// The part of a stored zone that is wrong, given the zone of the rows.
fn difference(stored: &Zone, found: &Zone) -> Option<&'static str> {
    let differs = |a: zone_map::Bound, b: zone_map::Bound| a.compare(b).is_some_and(|o| o.is_ne());
    let has_values = stored.non_null > 0 && found.non_null > 0;
    if stored.non_null != found.non_null {
        Some("number of values")
    } else if has_values && differs(stored.minimum, found.minimum) {
        Some("minimum")
    } else if has_values && differs(stored.maximum, found.maximum) {
        Some("maximum")
    } else if stored.has_sum && found.has_sum && stored.sum != found.sum {
        Some("sum")
    } else if stored.sorted && !found.sorted {
        Some("order")
    } else if found.has_nan && !stored.has_nan {
        Some("mark of NaN")
    } else if found.has_infinite && !stored.has_infinite {
        Some("mark of infinities")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanes_columnar::kind::Number;
    use lanes_columnar::zone_map::Bound;

    fn zone() -> Zone {
        Zone {
            minimum: Bound::Signed(1),
            maximum: Bound::Signed(9),
            non_null: 4,
            sum: 20,
            ..Zone::empty(LaneKind::Fixed {
                stride: 8,
                width: 8,
                number: Number::Signed,
            })
        }
    }

    #[test]
    fn each_wrong_part_of_a_zone_is_named() {
        let right = zone();
        let changed = |change: fn(&mut Zone)| {
            let mut stored = right;
            change(&mut stored);
            difference(&stored, &right)
        };
        assert_eq!(difference(&right, &right), None);
        assert_eq!(changed(|z| z.non_null = 3), Some("number of values"));
        assert_eq!(changed(|z| z.minimum = Bound::Signed(2)), Some("minimum"));
        assert_eq!(changed(|z| z.maximum = Bound::Signed(8)), Some("maximum"));
        assert_eq!(changed(|z| z.sum = 21), Some("sum"));
        let unsorted = Zone {
            sorted: false,
            ..right
        };
        assert_eq!(difference(&right, &unsorted), Some("order"));
        let special = Zone {
            has_nan: true,
            ..right
        };
        assert_eq!(difference(&right, &special), Some("mark of NaN"));
        let special = Zone {
            has_infinite: true,
            ..right
        };
        assert_eq!(difference(&right, &special), Some("mark of infinities"));
    }

    #[test]
    fn a_zone_that_knows_less_is_right() {
        let found = zone();
        let stored = Zone {
            minimum: Bound::Unknown,
            maximum: Bound::Unknown,
            has_sum: false,
            sum: 0,
            sorted: false,
            ..found
        };
        assert_eq!(difference(&stored, &found), None);
    }
}
