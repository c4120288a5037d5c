//! Snapshots: what a statement sees.

use std::marker::PhantomData;
use std::ptr::NonNull;

use pgrx::pg_sys;

/// The kinds of snapshots that differ in what they see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnapshotKind {
    /// Sees what was committed when the snapshot was taken, and what earlier commands of its
    /// transaction did.
    Mvcc,
    /// Everything that was ever inserted.
    Any,
    /// Sees what is committed now, and what this transaction did.
    Current,
    /// Sees what is committed now, what this transaction did, and what running transactions did. The
    /// snapshot reports the running transaction.
    Dirty,
    /// Sees what VACUUM may not remove.
    NonVacuumable,
    /// A snapshot of logical decoding.
    Historic,
}

/// A snapshot that lives for `'a`, with its kind at hand.
#[derive(Clone, Copy)]
pub struct Snapshot<'a> {
    raw: NonNull<pg_sys::SnapshotData>,
    kind: SnapshotKind,
    lives: PhantomData<&'a pg_sys::SnapshotData>,
}

impl<'a> Snapshot<'a> {
    /// `None` for a null snapshot.
    ///
    /// # Safety
    /// `raw` is null, or a snapshot that lives for `'a`.
    pub unsafe fn new(raw: pg_sys::Snapshot) -> Option<Snapshot<'a>> {
        let raw = NonNull::new(raw)?;
        // SAFETY: the caller passes a live snapshot.
        let kind = match unsafe { raw.as_ref() }.snapshot_type {
            pg_sys::SnapshotType::SNAPSHOT_MVCC => SnapshotKind::Mvcc,
            pg_sys::SnapshotType::SNAPSHOT_ANY => SnapshotKind::Any,
            pg_sys::SnapshotType::SNAPSHOT_SELF | pg_sys::SnapshotType::SNAPSHOT_TOAST => {
                SnapshotKind::Current
            }
            pg_sys::SnapshotType::SNAPSHOT_DIRTY => SnapshotKind::Dirty,
            pg_sys::SnapshotType::SNAPSHOT_NON_VACUUMABLE => SnapshotKind::NonVacuumable,
            _ => SnapshotKind::Historic,
        };
        Some(Snapshot {
            raw,
            kind,
            lives: PhantomData,
        })
    }

    /// Runs `work` with the snapshot that is active, as that of a query is while one of its functions runs. It stays so
    /// as long as `work` pops none.
    pub fn with_active<R>(work: impl FnOnce(Option<Snapshot<'_>>) -> R) -> R {
        // SAFETY: runs inside a transaction; null if no snapshot is active.
        work(unsafe { Snapshot::new(pg_sys::GetActiveSnapshot()) })
    }

    /// The C snapshot, for PostgreSQL's functions.
    #[inline]
    pub fn as_ptr(self) -> pg_sys::Snapshot {
        self.raw.as_ptr()
    }

    /// The kind of the snapshot.
    #[inline]
    pub fn kind(self) -> SnapshotKind {
        self.kind
    }

    /// The command of its own transaction from which on an MVCC snapshot does not see changes.
    #[inline]
    pub fn command(self) -> pg_sys::CommandId {
        // SAFETY: the snapshot is live.
        unsafe { self.raw.as_ref() }.curcid
    }

    /// Whether a transaction was under way when an MVCC snapshot was taken, or began later.
    #[inline]
    pub fn was_under_way(self, xid: u32) -> bool {
        // SAFETY: the snapshot is live.
        unsafe { pg_sys::XidInMVCCSnapshot(xid.into(), self.as_ptr()) }
    }

    /// Whether VACUUM may remove what a transaction deleted, by a non-vacuumable snapshot.
    pub fn is_removable(self, xid: u32) -> bool {
        // SAFETY: a live snapshot of this kind has the state that is tested.
        unsafe { pg_sys::GlobalVisTestIsRemovableXid(self.raw.as_ref().vistest, xid.into()) }
    }

    /// Makes a dirty snapshot forget the transactions that it reported for an earlier row.
    pub fn forget_writers(self) {
        if self.kind == SnapshotKind::Dirty {
            // SAFETY: live, and a dirty snapshot belongs to its one user, who reads these fields afterwards.
            unsafe {
                (*self.as_ptr()).xmin = pg_sys::InvalidTransactionId;
                (*self.as_ptr()).xmax = pg_sys::InvalidTransactionId;
                (*self.as_ptr()).speculativeToken = 0;
            }
        }
    }

    /// Reports in a dirty snapshot that a transaction under way inserted the row.
    pub fn report_inserter(self, xid: u32) {
        // SAFETY: as above.
        unsafe { (*self.as_ptr()).xmin = xid.into() }
    }

    /// The transaction under way that a dirty snapshot reports as the inserter of the row.
    pub fn reported_inserter(self) -> Option<u32> {
        if self.kind != SnapshotKind::Dirty {
            return None;
        }
        // SAFETY: the snapshot is live.
        let xid = unsafe { self.raw.as_ref() }.xmin;
        (xid != pg_sys::InvalidTransactionId).then(|| xid.into_inner())
    }

    /// Reports in a dirty snapshot the token of a row that its inserter may yet take back; 0: the row stays.
    pub fn report_token(self, token: u32) {
        // SAFETY: live, and a dirty snapshot belongs to its one user.
        unsafe { (*self.as_ptr()).speculativeToken = token }
    }

    /// Reports in a dirty snapshot that a transaction under way deletes the row.
    pub fn report_deleter(self, xid: u32) {
        // SAFETY: as above.
        unsafe { (*self.as_ptr()).xmax = xid.into() }
    }
}
