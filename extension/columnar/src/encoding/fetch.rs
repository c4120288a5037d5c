//! Fetches the bytes of a lane that decoding some of its rows needs, from where the lane is stored.

use std::ops::Range;

use super::EncodedLane;
use super::format::{Class, HEADER_BYTES, Header, section_place};
use crate::error::{Error, Result};
use crate::kind::LaneKind;
use crate::limits::VECTOR_ROWS;

/// Fetches a range of bytes into the same range of a buffer.
pub type Fetch<'a> = &'a mut dyn FnMut(&mut [u8], Range<usize>) -> Result<()>;

impl EncodedLane<'_> {
    /// Fetches the bytes that [`EncodedLane::decode`] reads for these rows: the lane's head, its patterns, the vectors
    /// of the rows and its dictionary. The lane lies at `place` of the buffer. Other bytes of the buffer stay as they
    /// are.
    ///
    /// # Errors
    /// The errors of `fetch`; also if the lane is of another kind, or its head is malformed.
    pub fn fetch(
        buffer: &mut [u8],
        place: Range<usize>,
        kind: LaneKind,
        rows: Range<usize>,
        fetch: Fetch<'_>,
    ) -> Result<()> {
        let within = |range: Range<usize>| {
            let start = (place.start + range.start).min(place.end);
            start..(place.start + range.end).clamp(start, place.end)
        };
        fetch(buffer, within(0..HEADER_BYTES))?;
        let lane = &buffer[place.clone()];
        let header = Header::read(lane, kind)?;
        if rows.end > header.rows as usize {
            return Err(Error::Malformed("it does not have the rows asked for"));
        }
        fetch(buffer, within(HEADER_BYTES..header.payload_at()))?;
        let patterns = 0..header.patterns as usize;
        let vectors = rows.start / VECTOR_ROWS..rows.end.div_ceil(VECTOR_ROWS);
        let vectors = patterns.end + vectors.start..patterns.end + vectors.end;
        let dictionary = match header.class {
            Class::Null => return Ok(()),
            Class::Dictionary => header.sections() - 1..header.sections(),
            _ => 0..0,
        };
        for sections in [patterns, vectors, dictionary] {
            if let (Some(first), Some(last)) = (sections.clone().next(), sections.last()) {
                let lane = &buffer[place.clone()];
                let start = section_place(lane, &header, first).start;
                let end = section_place(lane, &header, last).end;
                fetch(buffer, within(start..end))?;
            }
        }
        Ok(())
    }
}
