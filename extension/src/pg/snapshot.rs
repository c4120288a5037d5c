//! Snapshots: what a statement sees.

use pgrx::pg_sys;

use super::functions::process;
use super::tree::view::views;
use super::tree::{View, plan_field};

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

views! {
    /// The structure of a snapshot.
    SnapshotFields of SnapshotData {
        snapshot_type: pg_sys::SnapshotType::Type;
        curcid: pg_sys::CommandId;
        xmin: pg_sys::TransactionId;
    } {
        /// The horizon of a non-vacuumable snapshot.
        vistest: Option<VisibilityHorizon<'p>>;
    } {
        set_xmin = xmin: pg_sys::TransactionId;
        set_xmax = xmax: pg_sys::TransactionId;
        set_token = speculativeToken: u32;
    }

    /// The horizons that tell whether every snapshot sees that a row is gone.
    VisibilityHorizon of GlobalVisState {} {} {}
}

/// A snapshot that lives for `'a`, with its kind at hand.
#[derive(Clone, Copy)]
pub struct Snapshot<'a> {
    fields: SnapshotFields<'a>,
    kind: SnapshotKind,
}

impl<'a> Snapshot<'a> {
    /// A snapshot that a callback or PostgreSQL's functions pass, and that lives for `'a`; `None` if it is null.
    pub(in crate::pg) fn new(raw: pg_sys::Snapshot) -> Option<Snapshot<'a>> {
        let fields: SnapshotFields<'a> = plan_field::<Option<_>>(raw)?;
        let kind = match fields.snapshot_type() {
            pg_sys::SnapshotType::SNAPSHOT_MVCC => SnapshotKind::Mvcc,
            pg_sys::SnapshotType::SNAPSHOT_ANY => SnapshotKind::Any,
            pg_sys::SnapshotType::SNAPSHOT_SELF | pg_sys::SnapshotType::SNAPSHOT_TOAST => {
                SnapshotKind::Current
            }
            pg_sys::SnapshotType::SNAPSHOT_DIRTY => SnapshotKind::Dirty,
            pg_sys::SnapshotType::SNAPSHOT_NON_VACUUMABLE => SnapshotKind::NonVacuumable,
            _ => SnapshotKind::Historic,
        };
        Some(Snapshot { fields, kind })
    }

    /// Whether there is an active snapshot, without which no query of this library can run.
    pub fn is_any_active() -> bool {
        process::ActiveSnapshotSet()
    }

    /// Runs `work` with the snapshot that is active, as that of a query is while one of its functions runs. It stays so
    /// as long as `work` pops none.
    pub fn with_active<R>(work: impl FnOnce(Option<Snapshot<'_>>) -> R) -> R {
        work(process::GetActiveSnapshot())
    }

    /// The C snapshot, for PostgreSQL's functions.
    #[inline]
    pub fn as_ptr(self) -> pg_sys::Snapshot {
        self.fields.as_ptr()
    }

    /// The kind of the snapshot.
    #[inline]
    pub fn kind(self) -> SnapshotKind {
        self.kind
    }

    /// The command of its own transaction from which on an MVCC snapshot does not see changes.
    #[inline]
    pub fn command(self) -> pg_sys::CommandId {
        self.fields.curcid()
    }

    /// Whether a transaction was under way when an MVCC snapshot was taken, or began later.
    #[inline]
    pub fn was_under_way(self, xid: u32) -> bool {
        process::XidInMVCCSnapshot(xid.into(), self)
    }

    /// Whether VACUUM may remove what a transaction deleted, by a non-vacuumable snapshot.
    pub fn is_removable(self, xid: u32) -> bool {
        let horizon = self.fields.vistest();
        let horizon = horizon.expect("a non-vacuumable snapshot has a horizon");
        process::GlobalVisTestIsRemovableXid(horizon, xid.into())
    }

    /// Makes a dirty snapshot forget the transactions that it reported for an earlier row.
    pub fn forget_writers(self) {
        if self.kind == SnapshotKind::Dirty {
            // A dirty snapshot belongs to its one user, who reads these fields afterwards.
            self.fields.set_xmin(pg_sys::InvalidTransactionId);
            self.fields.set_xmax(pg_sys::InvalidTransactionId);
            self.fields.set_token(0);
        }
    }

    /// Reports in a dirty snapshot that a transaction under way inserted the row.
    pub fn report_inserter(self, xid: u32) {
        self.fields.set_xmin(xid.into());
    }

    /// The transaction under way that a dirty snapshot reports as the inserter of the row.
    pub fn reported_inserter(self) -> Option<u32> {
        if self.kind != SnapshotKind::Dirty {
            return None;
        }
        let xid = self.fields.xmin();
        (xid != pg_sys::InvalidTransactionId).then(|| xid.into_inner())
    }

    /// Reports in a dirty snapshot the token of a row that its inserter may yet take back; 0: the row stays.
    pub fn report_token(self, token: u32) {
        self.fields.set_token(token);
    }

    /// Reports in a dirty snapshot that a transaction under way deletes the row.
    pub fn report_deleter(self, xid: u32) {
        self.fields.set_xmax(xid.into());
    }
}
