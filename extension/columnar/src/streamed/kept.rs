//! How the columns of streamed rows are kept, and how their vectors are decoded there.

use std::ops::Range;

use super::room::{Room, write_bits, write_bytes};
use super::sealed_run::{SealedRun, lane};
use crate::bits;
use crate::column::Column;
use crate::dictionary::next_instance;
use crate::encoding::{DecodedVector, EncodedLane, ItemList};
use crate::error::{Error, Result};
use crate::kind::LaneKind;
use crate::lane::LaneData;
use crate::limits::VECTOR_ROWS;

/// The items of codes.
pub(super) struct Dictionary {
    pub items: ItemList,
    /// Another number, other items.
    pub instance: u64,
}

/// How a column is kept.
pub(super) enum Kept {
    Absent,
    Values {
        kind: LaneKind,
    },
    Codes {
        kind: LaneKind,
        dictionary: Dictionary,
    },
    Whole(Column),
}

/// Decides how a column is stored, and decodes it if it is decoded at once. An error names the run
/// by its index.
pub(super) fn keep(
    kind: LaneKind,
    places: usize,
    runs: &[SealedRun],
    lanes: &[Option<EncodedLane<'_>>],
    missing: Option<&[u8]>,
    known: Option<Dictionary>,
    room: &mut Room,
) -> std::result::Result<Kept, (usize, Error)> {
    let has_nulls = lanes.iter().flatten().any(EncodedLane::may_have_nulls);
    let is_whole = lanes.iter().any(Option::is_none);
    if !is_whole && !matches!(kind, LaneKind::Varlena { .. }) {
        room.prepare(kind, places, has_nulls);
        return Ok(Kept::Values { kind });
    }
    let known = |lane: &EncodedLane<'_>| known.filter(|known| known.items.is_of(lane));
    let read = |lane: &EncodedLane<'_>| {
        lane.dictionary().map(|items| Dictionary {
            items,
            instance: next_instance(),
        })
    };
    if let ([run], [Some(lane)]) = (runs, lanes)
        && let Some(dictionary) = known(lane).or_else(|| read(lane))
    {
        room.prepare(kind, places, has_nulls);
        // The memory may contain codes of another dictionary at places without rows.
        room.zero_codes(0..run.place);
        room.zero_codes(run.place + run.rows.len()..places);
        return Ok(Kept::Codes { kind, dictionary });
    }
    let mut column = Column::new(kind);
    column.reserve(places);
    for (number, (run, lane)) in runs.iter().zip(lanes).enumerate() {
        column.push_repeated(None, run.place - column.rows());
        match lane {
            Some(lane) => {
                let decoded = lane.decode(run.rows.clone(), &mut column);
                decoded.map_err(|error| (number, error))?;
            }
            None => column.push_repeated(missing, run.rows.len()),
        }
    }
    column.push_repeated(None, places - column.rows());
    Ok(Kept::Whole(column))
}

/// Decodes a vector of a column to its place.
pub(super) fn fill(
    run: &SealedRun,
    place: &Range<usize>,
    vector: usize,
    kept: &Kept,
    room: &mut Room,
    decoded: &mut DecodedVector,
) -> Result<()> {
    let (kind, items) = match kept {
        Kept::Absent | Kept::Whole(_) => return Ok(()),
        Kept::Values { kind } => (*kind, 0),
        Kept::Codes { kind, dictionary } => (*kind, dictionary.items.len()),
    };
    let lane = lane(&run.image, place, kind)?;
    let first = vector * VECTOR_ROWS;
    // The rows of the vector that have places.
    let rows = run.rows.start.max(first)..run.rows.end.min(first + lane.vector_rows(vector));
    let at = run.place + (rows.start - run.rows.start);
    let rows = rows.start - first..rows.end - first;
    let is_whole = rows.len() == lane.vector_rows(vector);
    let values = is_whole
        .then(|| room.values_at(kind, at, rows.len()))
        .flatten();
    let is_there = lane.try_decode_vector_to(vector, values, decoded)?;
    match kept {
        Kept::Codes { .. } if is_there => {
            // The codes stay in memory, but the vector does not count as filled.
            if !are_below(room.codes_at(at..at + rows.len()), items) {
                return Err(Error::Malformed("a code names no item"));
            }
        }
        Kept::Codes { .. } => {
            let codes = decoded.codes();
            if !are_below(codes, items) {
                return Err(Error::Malformed("a code names no item"));
            }
            match codes.get(rows.clone()) {
                Some(codes) => write_bytes(&mut room.values, at * size_of::<u32>(), codes),
                // All rows are NULL. Even the codes of NULL rows must be valid.
                None => room.zero_codes(at..at + rows.len()),
            }
        }
        _ if is_there => {}
        _ => write_values(decoded, kind, rows.clone(), at, room),
    }
    if room.has_nulls {
        let validity = &mut room.validity;
        write_bits(validity, at, rows.len(), |done, count| {
            decoded.validity_bits(rows.start + done, count)
        });
    }
    Ok(())
}

/// Writes the values of rows of a decoded vector from the place `at` on. They are not codes.
#[inline]
fn write_values(
    decoded: &DecodedVector,
    kind: LaneKind,
    rows: Range<usize>,
    at: usize,
    room: &mut Room,
) {
    match (decoded.lane(None).data, kind) {
        (LaneData::Bool(words), _) => {
            // SAFETY: a bitmap of a decoded vector covers all of its rows.
            let words = unsafe { std::slice::from_raw_parts(words, bits::words(VECTOR_ROWS)) };
            write_bits(&mut room.values, at, rows.len(), |done, count| {
                bits::read(words, rows.start + done, count)
            });
        }
        (LaneData::Fixed { values, .. }, LaneKind::Fixed { stride, .. }) => {
            let stride = usize::from(stride);
            // SAFETY: the decoded vector has a value for each of its rows, at a distance of a
            // stride.
            let values = unsafe {
                std::slice::from_raw_parts(values.add(rows.start * stride), rows.len() * stride)
            };
            write_bytes(&mut room.values, at * stride, values);
        }
        // All of them are NULL.
        _ => {}
    }
}

/// Decodes the blocks of a vector that have some of these rows of it to their places, and returns the rows that were
/// decoded. Returns `None` if the vector has to be decoded as a whole.
pub(super) fn fill_part(
    run: &SealedRun,
    place: &Range<usize>,
    (vector, wanted): (usize, Range<usize>),
    kept: &Kept,
    room: &mut Room,
    decoded: &mut DecodedVector,
) -> Result<Option<Range<usize>>> {
    let (kind, items) = match kept {
        Kept::Absent | Kept::Whole(_) => return Ok(None),
        Kept::Values { kind } => (*kind, None),
        Kept::Codes { kind, dictionary } => (*kind, Some(dictionary.items.len())),
    };
    let lane = lane(&run.image, place, kind)?;
    let (first, rows) = (vector * VECTOR_ROWS, lane.vector_rows(vector));
    if first < run.rows.start || first + rows > run.rows.end {
        return Ok(None);
    }
    let at = run.place + (first - run.rows.start);
    if items.is_some() {
        // The memory may contain codes of another dictionary.
        room.zero_codes(at..at + rows);
    }
    let Some(values) = room.values_at(kind, at, rows) else {
        return Ok(None);
    };
    let Some(part) = lane.try_decode_part_to(vector, wanted, values, decoded)? else {
        return Ok(None);
    };
    if let Some(items) = items {
        let codes = room.codes_at(at + part.start..at + part.end);
        if !are_below(codes, items) {
            codes.fill(0);
            return Err(Error::Malformed("a code names no item"));
        }
    }
    if room.has_nulls {
        write_bits(&mut room.validity, at, rows, |done, count| {
            decoded.validity_bits(done, count)
        });
    }
    Ok(Some(part))
}

/// Whether all codes are below the number of items, of which there are fewer than 2^31: in one pass
/// without branches.
fn are_below(codes: &[u32], items: usize) -> bool {
    let Some(last) = items.checked_sub(1) else {
        return codes.is_empty();
    };
    let beyond = |beyond, &code: &u32| beyond | code | (last as u32).wrapping_sub(code);
    codes.iter().fold(0, beyond) >> (u32::BITS - 1) == 0
}
