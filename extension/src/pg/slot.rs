//! Tuple slots. The slot of lanes tables is a virtual slot that reads attributes from lanes when
//! they are requested, and that knows the system columns of its row.
//!
//! A slot that a scan filled points at the scan's [`RowOutlet`], which lives until the scan moves
//! to other lanes or ends. PostgreSQL clears or overwrites the slot before either, as it must for
//! the buffer pin of a heap slot. A slot that is filled by TID is read in full and materialised at
//! once.

use std::marker::PhantomData;
use std::ptr::NonNull;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::datum::RowOutlet;
use super::descriptor::Descriptor;
use super::tree::View;
use super::{exec, ports};

/// System columns of a row.
#[derive(Clone, Copy, Default)]
pub struct RowHeader {
    pub xmin: u32,
    pub cmin: u32,
    /// The transaction that deleted the row, or locked it before it updated it; 0: none. Only RETURNING tells.
    pub xmax: u32,
}

impl RowHeader {
    /// The header of a row that this transaction and command inserted.
    pub fn new(xmin: u32, cmin: u32) -> RowHeader {
        RowHeader {
            xmin,
            cmin,
            xmax: 0,
        }
    }
}

#[repr(C)]
struct LanesSlot {
    base: pg_sys::VirtualTupleTableSlot,
    outlet: *const RowOutlet,
    row: usize,
    header: RowHeader,
    /// Nobody reads values from the slot: who fills it says only that the row exists.
    leaves_out_values: bool,
}

/// `TTSOpsVirtual` with some callbacks replaced. Written once, in `_PG_init`, before any slot exists.
static mut OPS: std::mem::MaybeUninit<pg_sys::TupleTableSlotOps> = std::mem::MaybeUninit::uninit();

/// Builds the slot's routine table. Called from `_PG_init`.
pub fn register() {
    // SAFETY: single-threaded; runs once a process, before any use of `ops`.
    unsafe {
        let mut ops = pg_sys::TTSOpsVirtual;
        ops.base_slot_size = size_of::<LanesSlot>();
        ops.getsomeattrs = Some(get_some_attributes);
        ops.getsysattr = Some(get_system_attribute);
        ops.materialize = Some(materialize);
        ops.copyslot = Some(copy_slot);
        ops.copy_heap_tuple = Some(copy_heap_tuple);
        ops.copy_minimal_tuple = Some(copy_minimal_tuple);
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        {
            ops.is_current_xact_tuple = Some(is_current_xact_tuple);
        }
        (&raw mut OPS)
            .cast::<pg_sys::TupleTableSlotOps>()
            .write(ops);
    }
}

/// The routine table.
pub fn ops() -> *const pg_sys::TupleTableSlotOps {
    (&raw const OPS).cast()
}

/// Notes that nobody reads values from a slot, so that none need be decoded for it.
pub fn leave_out_values(slot: exec::slot::Slot) {
    let slot = slot.as_raw();
    // SAFETY: the slot is live; only slots of ours have the mark.
    unsafe {
        if (*slot).tts_ops == ops() {
            (*slot.cast::<LanesSlot>()).leaves_out_values = true;
        }
    }
}

/// A slot that lives for `'a`. It is of some table's row type.
#[derive(Clone, Copy)]
pub struct Slot<'a> {
    raw: NonNull<pg_sys::TupleTableSlot>,
    lives: PhantomData<&'a pg_sys::TupleTableSlot>,
}

impl<'a> Slot<'a> {
    /// # Safety
    /// `raw` is a slot that lives for `'a`. Where [`Slot::store`] fills it, its row type is that of the lanes.
    #[inline]
    pub unsafe fn new(raw: *mut pg_sys::TupleTableSlot) -> Slot<'a> {
        Slot {
            // SAFETY: the caller passes a live slot.
            raw: unsafe { NonNull::new_unchecked(raw) },
            lives: PhantomData,
        }
    }

    #[inline]
    pub(in crate::pg) fn as_ptr(self) -> *mut pg_sys::TupleTableSlot {
        self.raw.as_ptr()
    }

    /// The descriptor of the slot's rows.
    #[inline]
    pub fn descriptor(self) -> Descriptor<'a> {
        // SAFETY: a live slot keeps its descriptor.
        unsafe { Descriptor::at((*self.as_ptr()).tts_tupleDescriptor) }
    }

    /// Whether the slot's rows are described by this very descriptor.
    #[inline]
    pub fn is_described_by(self, descriptor: Descriptor<'_>) -> bool {
        self.descriptor() == descriptor
    }

    /// Empties the slot.
    pub fn clear(self) {
        // SAFETY: the slot is live.
        unsafe { ports::ExecClearTuple(self.as_ptr()) }
    }

    /// Fills the slot with a row of lanes. The slot reads attributes later, from the outlet that it points at. So the
    /// outlet and its lanes stay until the slot is [detached](Slot::detach), cleared or filled again: a scan clears or
    /// fills its slot before it moves to other lanes or ends.
    #[inline]
    pub fn store(
        self,
        outlet: &RowOutlet,
        row: usize,
        tid: pg_sys::ItemPointerData,
        table: pg_sys::Oid,
        header: RowHeader,
    ) {
        let slot = self.as_ptr();
        // SAFETY: the slot is live and of the row type of the lanes, which hold the row.
        unsafe {
            if (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 == 0 {
                ports::ExecClearTuple(slot);
            }
            if (*slot).tts_ops == ops() {
                let ours = slot.cast::<LanesSlot>();
                (*ours).outlet = outlet;
                (*ours).row = row;
                (*ours).header = header;
                (*slot).tts_nvalid = 0;
            } else {
                // A caller that brought another kind of slot, such as COPY … FROM partitions: all attributes are read.
                let natts = (*(*slot).tts_tupleDescriptor).natts;
                let (values, nulls) = ((*slot).tts_values, (*slot).tts_isnull);
                outlet.read(row, 0, natts as usize, values, nulls);
                (*slot).tts_nvalid = natts as i16;
            }
            (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
            (*slot).tts_tid = tid;
            (*slot).tts_tableOid = table;
        }
    }

    /// Whether nobody reads values from the slot.
    #[inline]
    pub fn leaves_out_values(self) -> bool {
        let slot = self.as_ptr();
        // SAFETY: the slot is live, and only slots of ours have the mark.
        unsafe { (*slot).tts_ops == ops() && (*slot.cast::<LanesSlot>()).leaves_out_values }
    }

    /// Fills a slot from which nobody reads values.
    pub fn store_without_values(
        self,
        tid: pg_sys::ItemPointerData,
        table: pg_sys::Oid,
        header: RowHeader,
    ) {
        let slot = self.as_ptr();
        // SAFETY: the slot is live; its array has an element for each attribute.
        unsafe {
            ports::ExecClearTuple(slot);
            let natts = (*(*slot).tts_tupleDescriptor).natts;
            std::slice::from_raw_parts_mut((*slot).tts_isnull, natts as usize).fill(true);
            (*slot).tts_nvalid = natts as i16;
            (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
        }
        self.set_written(tid, table, header);
    }

    /// Reads all attributes of a filled slot and copies them into the slot's own memory.
    pub fn detach(self) {
        // SAFETY: the slot is filled, and what it points at is alive.
        unsafe {
            if let Some(materialize) = (*(*self.as_ptr()).tts_ops).materialize {
                materialize(self.as_ptr());
            }
        }
    }

    /// Reads all attributes of a filled slot: the values, and which of them are NULL.
    #[inline]
    pub fn read_all(self) -> (&'a [pg_sys::Datum], &'a [bool]) {
        let slot = self.as_ptr();
        // SAFETY: the slot is live, and its arrays have an element for each attribute.
        unsafe {
            ports::slot_getallattrs(slot);
            let natts = (*(*slot).tts_tupleDescriptor).natts as usize;
            (
                std::slice::from_raw_parts((*slot).tts_values, natts),
                std::slice::from_raw_parts((*slot).tts_isnull, natts),
            )
        }
    }

    /// The id of the slot's row.
    pub fn tid(self) -> pg_sys::ItemPointerData {
        // SAFETY: the slot is live.
        unsafe { (*self.as_ptr()).tts_tid }
    }

    /// Notes which row of which table the slot's values have become, and who has written it.
    pub fn set_written(self, tid: pg_sys::ItemPointerData, table: pg_sys::Oid, header: RowHeader) {
        self.set_tid(tid, table);
        // SAFETY: the slot is live, and only slots of ours have a header.
        unsafe {
            if (*self.as_ptr()).tts_ops == ops() {
                (*self.as_ptr().cast::<LanesSlot>()).header = header;
            }
        }
    }

    /// Notes which row of which table the slot holds.
    fn set_tid(self, tid: pg_sys::ItemPointerData, table: pg_sys::Oid) {
        self.set_table(table);
        // SAFETY: the slot is live.
        unsafe { (*self.as_ptr()).tts_tid = tid }
    }

    /// Notes which table the slot's row belongs to.
    pub fn set_table(self, table: pg_sys::Oid) {
        // SAFETY: the slot is live.
        unsafe { (*self.as_ptr()).tts_tableOid = table }
    }
}

unsafe fn read_up_to(slot: *mut pg_sys::TupleTableSlot, natts: i32) {
    // SAFETY: a slot of ours, filled: `outlet` is alive while attributes are unread, as `Slot::store` demands.
    unsafe {
        let valid = (*slot).tts_nvalid as i32;
        if natts > valid {
            let ours = slot.cast::<LanesSlot>();
            (*(*ours).outlet).read(
                (*ours).row,
                valid as usize,
                natts as usize,
                (*slot).tts_values,
                (*slot).tts_isnull,
            );
            (*slot).tts_nvalid = natts as i16;
        }
    }
}

unsafe fn read_all(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: a filled slot of ours.
    unsafe { read_up_to(slot, (*(*slot).tts_tupleDescriptor).natts) }
}

unsafe extern "C-unwind" fn get_some_attributes(slot: *mut pg_sys::TupleTableSlot, natts: i32) {
    // SAFETY: the executor calls this on filled slots of ours. Nothing here raises, so no guard is needed.
    unsafe { read_up_to(slot, natts) }
}

#[pg_guard]
unsafe extern "C-unwind" fn get_system_attribute(
    slot: *mut pg_sys::TupleTableSlot,
    attribute: i32,
    is_null: *mut bool,
) -> pg_sys::Datum {
    // SAFETY: a filled slot of ours; the caller itself returns ctid and tableoid.
    unsafe {
        let header = (*slot.cast::<LanesSlot>()).header;
        *is_null = false;
        match attribute {
            pg_sys::MinTransactionIdAttributeNumber => pg_sys::Datum::from(header.xmin),
            pg_sys::MinCommandIdAttributeNumber => pg_sys::Datum::from(header.cmin),
            pg_sys::MaxTransactionIdAttributeNumber => pg_sys::Datum::from(header.xmax),
            // A row that a scan returns has no deletion that counts.
            pg_sys::MaxCommandIdAttributeNumber => pg_sys::Datum::from(0u32),
            other => error!("lanes tables have no system column {other}"),
        }
    }
}

/// Whether the current transaction wrote the slot's row. Older versions ask for `xmin`.
#[cfg(any(feature = "pg17", feature = "pg18"))]
#[pg_guard]
unsafe extern "C-unwind" fn is_current_xact_tuple(slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: a filled slot of ours.
    unsafe {
        let header = (*slot.cast::<LanesSlot>()).header;
        pg_sys::TransactionIdIsCurrentTransactionId(header.xmin.into())
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn materialize(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: a filled slot of ours, whose start is a virtual slot.
    unsafe {
        read_all(slot);
        pg_sys::TTSOpsVirtual
            .materialize
            .expect("virtual slots materialise")(slot);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn copy_slot(
    target: *mut pg_sys::TupleTableSlot,
    source: *mut pg_sys::TupleTableSlot,
) {
    // SAFETY: the target is a slot of ours; the source is any filled slot.
    unsafe {
        let header = if (*source).tts_ops == ops() {
            (*source.cast::<LanesSlot>()).header
        } else {
            RowHeader::default()
        };
        pg_sys::TTSOpsVirtual.copyslot.expect("virtual slots copy")(target, source);
        let ours = target.cast::<LanesSlot>();
        (*ours).outlet = std::ptr::null();
        (*ours).header = header;
        // Virtual slots leave out the id. A worker of logical replication locks the row of a slot that it has copied.
        (*target).tts_tid = (*source).tts_tid;
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn copy_heap_tuple(
    slot: *mut pg_sys::TupleTableSlot,
) -> pg_sys::HeapTuple {
    // SAFETY: a filled slot of ours.
    unsafe {
        read_all(slot);
        let tuple = pg_sys::TTSOpsVirtual
            .copy_heap_tuple
            .expect("virtual slots copy")(slot);
        (*tuple).t_self = (*slot).tts_tid;
        (*tuple).t_tableOid = (*slot).tts_tableOid;
        tuple
    }
}

#[cfg(not(feature = "pg18"))]
#[pg_guard]
unsafe extern "C-unwind" fn copy_minimal_tuple(
    slot: *mut pg_sys::TupleTableSlot,
) -> pg_sys::MinimalTuple {
    // SAFETY: a filled slot of ours.
    unsafe {
        read_all(slot);
        pg_sys::TTSOpsVirtual
            .copy_minimal_tuple
            .expect("virtual slots copy")(slot)
    }
}

#[cfg(feature = "pg18")]
#[pg_guard]
unsafe extern "C-unwind" fn copy_minimal_tuple(
    slot: *mut pg_sys::TupleTableSlot,
    extra: usize,
) -> pg_sys::MinimalTuple {
    // SAFETY: a filled slot of ours.
    unsafe {
        read_all(slot);
        pg_sys::TTSOpsVirtual
            .copy_minimal_tuple
            .expect("virtual slots copy")(slot, extra)
    }
}
