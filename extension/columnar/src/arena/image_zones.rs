//! The zones of the vectors of a kept image. The first reader of a zone computes and stores it.
//!
//! A zone is computed from the heads of a vector's blocks, of which there may be many. This takes a
//! microsecond, and a scan for the rows of a few keys reads the zones of all vectors. Each zone is
//! therefore stored beside the image, in 40 bytes for a vector of a column.
//!
//! An image does not change, so all readers compute the same zone, and two may store it at once.
//! The word that is written last marks the others as present.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use super::zones::{KNOWN, NOTHING, ZoneHead};
use crate::kind::LaneKind;
use crate::zone_map::Zone;

/// The zones of an image. The zones of one column are adjacent.
#[derive(Clone, Copy)]
pub(super) struct ImageZones<'a> {
    heads: &'a [ZoneHead],
    vectors: usize,
}

impl<'a> ImageZones<'a> {
    pub(super) fn new(heads: &'a [ZoneHead], vectors: usize) -> Self {
        ImageZones { heads, vectors }
    }

    /// The zone of a vector of a column, computed by `find` if it is not stored yet. It is not
    /// exact.
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
    /// The stored zone. `None`: it was not computed yet. `Some(None)`: the image has no zone for
    /// the vector.
    fn known(&self, kind: LaneKind) -> Option<Option<Zone>> {
        let tally = self.tally.load(Acquire);
        if tally & KNOWN == 0 {
            return None;
        }
        Some((tally & NOTHING == 0).then(|| Zone {
            // The heads of blocks contain nothing about these.
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
