//! The state that the participants of a parallel scan share.

use std::sync::atomic::{AtomicU64, Ordering};

/// The segments that the participants of a parallel scan have taken.
#[repr(C)]
#[derive(Default)]
pub struct SharedSegments {
    /// The next segment that nobody has taken.
    next: AtomicU64,
    /// One more than the number of sealings of the table as the first participant found it; 0: no
    /// segment was taken yet. A participant that found another number has other rows in its
    /// segments, and takes none.
    numbering: AtomicU64,
}

impl SharedSegments {
    /// Starts over. No participant is scanning at this time.
    pub fn restart(&self) {
        self.next.store(0, Ordering::Relaxed);
        self.numbering.store(0, Ordering::Relaxed);
    }

    /// Takes a segment; `None`: the table was sealed between the first participant's look at it and
    /// this one's. `first` is the first segment that has rows. An older list of runs may contain
    /// earlier ones, of dead runs.
    pub fn take(&self, sealings: u64, first: u64) -> Option<u64> {
        let own = sealings + 1;
        let others = self
            .numbering
            .compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed);
        if others.is_err_and(|others| others != own) {
            return None;
        }
        self.next.fetch_max(first, Ordering::Relaxed);
        Some(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// The segments of a participant: those that it takes, which it may read several times.
pub(super) struct TakenSegments<'a> {
    shared: &'a SharedSegments,
    /// The segments that it has taken.
    own: Vec<u64>,
    /// The place in `own` of the segment that is read next, while segments are read again.
    again: Option<usize>,
}

impl<'a> TakenSegments<'a> {
    /// No segment is taken yet.
    pub(super) fn new(shared: &'a SharedSegments) -> TakenSegments<'a> {
        TakenSegments {
            shared,
            own: Vec::new(),
            again: None,
        }
    }

    /// The next segment of this participant; `None` at the end. See [`SharedSegments::take`].
    pub(super) fn next(&mut self, sealings: u64, first: u64) -> Option<u64> {
        if let Some(place) = &mut self.again {
            let segment = self.own.get(*place).copied();
            *place += 1;
            return segment;
        }
        let taken = self.shared.take(sealings, first)?;
        self.own.push(taken);
        Some(taken)
    }

    /// Begins to read the segments again that were taken. The last one may lie behind the table's end.
    pub(super) fn read_again(&mut self) {
        self.again = Some(0);
    }
}
