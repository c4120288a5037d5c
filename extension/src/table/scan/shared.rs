//! What the participants of a parallel scan share.

use std::sync::atomic::{AtomicU64, Ordering};

use pgrx::pg_sys;

/// What all participants of a parallel scan share, behind Postgres's own part of the descriptor.
#[repr(C)]
pub struct ParallelState {
    pub base: pg_sys::ParallelTableScanDescData,
    pub segments: SharedSegments,
}

/// Which segments the participants of a parallel scan have taken.
#[repr(C)]
#[derive(Default)]
pub struct SharedSegments {
    /// The next one that nobody has taken.
    next: AtomicU64,
    /// One more than the sealings of the table as the first participant found it; 0: nobody has taken a segment yet.
    /// Whoever opened the table before or after a sealing in between has other rows in its segments, and leaves all of
    /// them to the others.
    numbering: AtomicU64,
}

impl SharedSegments {
    /// Starts over. No participant is scanning now.
    pub fn restart(&self) {
        self.next.store(0, Ordering::Relaxed);
        self.numbering.store(0, Ordering::Relaxed);
    }

    /// Takes a segment; `None`: the table was sealed between the others' looking at it and this one's.
    /// `first` is the first that has rows; an older list of runs may say that there are some before, of dead ones.
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
