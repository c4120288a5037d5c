//! The tuple slot of lanes tables: a virtual slot that reads its attributes from lanes when they are asked for, and
//! that knows the system columns of its row.
//!
//! A slot that a scan filled points at the scan's [`RowOutlet`], which lives until the scan moves to other lanes or
//! ends; Postgres clears or overwrites the slot before either, as it must for a heap slot's buffer pin. A slot that is
//! filled by TID is read in full and materialised at once.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::datum::RowOutlet;
use super::ports;

/// System columns of a row.
#[derive(Clone, Copy, Default)]
pub struct RowHeader {
    pub xmin: u32,
    pub cmin: u32,
}

#[repr(C)]
struct LanesSlot {
    base: pg_sys::VirtualTupleTableSlot,
    outlet: *const RowOutlet,
    row: usize,
    header: RowHeader,
}

/// `TTSOpsVirtual` with what we do differently. Written once, in `_PG_init`, before any slot exists.
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
        (&raw mut OPS)
            .cast::<pg_sys::TupleTableSlotOps>()
            .write(ops);
    }
}

/// The routine table.
pub fn ops() -> *const pg_sys::TupleTableSlotOps {
    (&raw const OPS).cast()
}

/// Fills a slot with a row of lanes that stay alive until the slot is cleared or filled again.
///
/// # Safety
/// `slot` is a slot of the relation `table`; `outlet` holds the row.
pub unsafe fn store(
    slot: *mut pg_sys::TupleTableSlot,
    outlet: *const RowOutlet,
    row: usize,
    tid: pg_sys::ItemPointerData,
    table: pg_sys::Oid,
    header: RowHeader,
) {
    // SAFETY: the caller's promise.
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
            // A caller that brought its own kind of slot (COPY … FROM partitions, ANALYZE of old): read it in full.
            let natts = (*(*slot).tts_tupleDescriptor).natts;
            (*outlet).read(
                row,
                0,
                natts as usize,
                (*slot).tts_values,
                (*slot).tts_isnull,
            );
            (*slot).tts_nvalid = natts as i16;
        }
        (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
        (*slot).tts_tid = tid;
        (*slot).tts_tableOid = table;
    }
}

/// Reads all attributes and copies them into the slot's own memory.
///
/// # Safety
/// `slot` is filled and what it points at is alive.
pub unsafe fn detach(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(materialize) = (*(*slot).tts_ops).materialize {
            materialize(slot);
        }
    }
}

unsafe fn read_up_to(slot: *mut pg_sys::TupleTableSlot, natts: i32) {
    // SAFETY: a slot of ours, filled: `outlet` is alive by `store`'s contract while attributes are unread.
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
    // SAFETY: a filled slot of ours; ctid and tableoid are answered by the caller.
    unsafe {
        let header = (*slot.cast::<LanesSlot>()).header;
        *is_null = false;
        match attribute {
            pg_sys::MinTransactionIdAttributeNumber => pg_sys::Datum::from(header.xmin),
            pg_sys::MinCommandIdAttributeNumber => pg_sys::Datum::from(header.cmin),
            // A row that a scan returns has no deletion that counts.
            pg_sys::MaxTransactionIdAttributeNumber | pg_sys::MaxCommandIdAttributeNumber => {
                pg_sys::Datum::from(0u32)
            }
            other => error!("lanes tables have no system column {other}"),
        }
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
