//! The zones of the vectors of a kept image, noted by the first who works one out.
//!
//! A zone follows from the heads of a vector's blocks, of which there may be many: working it out takes a microsecond,
//! and a scan that wants the rows of a few keys asks for the zones of all vectors. So each zone is kept beside the
//! image, 40 bytes for a vector of a column.
//!
//! An image does not change, so whoever works a zone out finds the same: two may note it at once. A word that is
//! written last says that the others are there.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use super::zones::{KNOWN, NOTHING, ZoneHead};
use crate::kind::LaneKind;
use crate::zone_map::Zone;

/// The zones of an image: those of a column side by side.
#[derive(Clone, Copy)]
pub(super) struct ImageZones<'a> {
    heads: &'a [ZoneHead],
    vectors: usize,
}

impl<'a> ImageZones<'a> {
    pub(super) fn new(heads: &'a [ZoneHead], vectors: usize) -> Self {
        ImageZones { heads, vectors }
    }

    /// The zone of a vector of a column, worked out by `find` if nobody has noted it yet. It is not exact.
    pub(super) fn get_or_find(
        &self,
        (column, vector): (usize, usize),
        kind: LaneKind,
        find: impl FnOnce() -> Option<Zone>,
    ) -> Option<Zone> {
        let index = column * self.vectors + vector;
        // A column that was added since the image was kept has no place.
        let Some(head) = self.heads.get(index).filter(|_| vector < self.vectors) else {
            return find();
        };
        if let Some(known) = head.known(kind) {
            return known;
        }
        let found = find();
        head.note(found);
        found
    }
}

impl ZoneHead {
    /// The zone that was noted; `None` if nobody has looked yet, `Some(None)` if the image tells nothing.
    fn known(&self, kind: LaneKind) -> Option<Option<Zone>> {
        let tally = self.tally.load(Acquire);
        if tally & KNOWN == 0 {
            return None;
        }
        Some((tally & NOTHING == 0).then(|| Zone {
            // Heads of blocks tell nothing of these.
            sorted: false,
            sum: 0,
            has_sum: false,
            ..self.load(kind, false)
        }))
    }

    fn note(&self, found: Option<Zone>) {
        let tally = match found {
            Some(zone) => self.store_words(zone) | KNOWN,
            None => KNOWN | NOTHING,
        };
        fence(Release);
        self.tally.store(tally, Relaxed);
    }
}
