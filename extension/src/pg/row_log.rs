//! The resource manager of WAL records that carry rows for logical decoding.
//!
//! PostgreSQL's decoding ignores the generic records that change a lanes table's pages. So a record of this
//! resource manager repeats the rows ([`crate::table::logged_rows`]). Its replay does nothing. Decoding it puts
//! heap tuples into the reorder buffer, where output plugins find them like those of a heap table.
//!
//! PostgreSQL registers a resource manager only while it loads the preloaded libraries, and only under a number
//! that is free. A server that replays such a record without this library stops with an error. So records are
//! written only where `wal_level` is `logical`.

use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;
use std::mem::offset_of;

use pgrx::pg_sys;
use pgrx::pg_sys::ReorderBufferChangeType::{
    REORDER_BUFFER_CHANGE_DELETE, REORDER_BUFFER_CHANGE_INSERT, REORDER_BUFFER_CHANGE_UPDATE,
};
use pgrx::prelude::*;

use super::datum::RowOutlet;
use super::ports::{self, Locator};

/// The number of this library's resource manager. Numbers from 128 on are for extensions.
const MANAGER: u8 = 187;
const NAME: &CStr = c"lanes";

/// The longest record, below PostgreSQL's limit of 1020 MiB.
pub const RECORD_BYTES_MAX: usize = 1000 << 20;

/// A change of rows, as a record's `info` holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Insert,
    Update,
    Delete,
}

impl Action {
    /// The upper bits of the byte are the resource manager's.
    fn info(self) -> u8 {
        match self {
            Action::Insert => 0x10,
            Action::Update => 0x20,
            Action::Delete => 0x30,
        }
    }

    fn of_info(info: u8) -> Option<Action> {
        let all = [Action::Insert, Action::Update, Action::Delete];
        let own = info & !(pg_sys::XLR_INFO_MASK as u8);
        all.into_iter().find(|action| action.info() == own)
    }
}

/// The reader of records.
pub trait RowDecoder {
    /// Queues the changes that a record tells of.
    ///
    /// # Errors
    /// If the record is not of the reader's form.
    fn decode(record: &[u8], decoding: &Decoding<'_>) -> Result<(), String>;
}

/// Registers the resource manager. Called from `_PG_init`.
pub fn register<D: RowDecoder>() {
    let mut manager = pg_sys::RmgrData {
        rm_name: NAME.as_ptr(),
        rm_redo: Some(redo),
        rm_desc: Some(describe),
        rm_identify: Some(identify),
        rm_startup: None,
        rm_cleanup: None,
        rm_mask: None,
        rm_decode: Some(decode::<D>),
    };
    // SAFETY: PostgreSQL copies the structure; the name and the functions stay.
    unsafe { pg_sys::RegisterCustomRmgr(MANAGER, &raw mut manager) }
}

/// Writes a record that consists of some parts, as work of the current transaction.
pub fn write(action: Action, parts: &[&[u8]]) {
    // SAFETY: the parts live until XLogInsert has copied them.
    unsafe {
        pg_sys::XLogBeginInsert();
        pg_sys::XLogSetRecordFlags(pg_sys::XLOG_INCLUDE_ORIGIN as u8);
        for part in parts.iter().filter(|part| !part.is_empty()) {
            pg_sys::XLogRegisterData(part.as_ptr().cast_mut().cast(), part.len() as _);
        }
        pg_sys::XLogInsert(MANAGER, action.info());
    }
}

/// The rows are in the table's pages, which other records change.
unsafe extern "C-unwind" fn redo(_record: *mut pg_sys::XLogReaderState) {}

#[pg_guard]
unsafe extern "C-unwind" fn describe(
    text: pg_sys::StringInfo,
    record: *mut pg_sys::XLogReaderState,
) {
    // SAFETY: PostgreSQL passes a decoded record and a buffer.
    unsafe {
        let bytes = (*(*record).record).main_data_len;
        let line = std::ffi::CString::new(format!("rows for logical decoding, {bytes} bytes"));
        pg_sys::appendStringInfoString(text, line.unwrap_or_default().as_ptr());
    }
}

unsafe extern "C-unwind" fn identify(info: u8) -> *const c_char {
    match Action::of_info(info) {
        Some(Action::Insert) => c"INSERT".as_ptr(),
        Some(Action::Update) => c"UPDATE".as_ptr(),
        Some(Action::Delete) => c"DELETE".as_ptr(),
        None => std::ptr::null(),
    }
}

/// `XLogRecordBuffer`, of which the bindings know nothing.
#[repr(C)]
struct RecordBuffer {
    start: pg_sys::XLogRecPtr,
    end: pg_sys::XLogRecPtr,
    record: *mut pg_sys::XLogReaderState,
}

/// `SNAPBUILD_FULL_SNAPSHOT`: from this state on, transactions that began later can be decoded.
const FULL_SNAPSHOT: c_int = 1;

unsafe extern "C-unwind" {
    #[link_name = "SnapBuildCurrentState"]
    fn snapshot_state(builder: *mut pg_sys::SnapBuild) -> c_int;
    #[link_name = "SnapBuildProcessChange"]
    fn snapshot_for_change(
        builder: *mut pg_sys::SnapBuild,
        xid: pg_sys::TransactionId,
        lsn: pg_sys::XLogRecPtr,
    ) -> bool;
}

#[pg_guard]
unsafe extern "C-unwind" fn decode<D: RowDecoder>(
    context: *mut pg_sys::LogicalDecodingContext,
    buffer: *mut pg_sys::XLogRecordBuffer,
) {
    // SAFETY: PostgreSQL passes its decoding context, and a record of this manager that it has read.
    unsafe {
        let buffer = buffer.cast::<RecordBuffer>();
        let record = (*(*buffer).record).record;
        let lsn = (*buffer).start;
        pg_sys::ReorderBufferProcessXid((*context).reorder, (*record).header.xl_xid, lsn);
        let data = match (*record).main_data_len as usize {
            0 => &[],
            bytes => std::slice::from_raw_parts((*record).main_data.cast::<u8>(), bytes),
        };
        let decoded = match Action::of_info((*record).header.xl_info) {
            Some(action) => D::decode(
                data,
                &Decoding {
                    context,
                    lsn,
                    origin: (*record).record_origin,
                    action,
                    lives: PhantomData,
                },
            ),
            None => Err("its type is unknown".to_owned()),
        };
        if let Err(failure) = decoded {
            crate::error::raise(
                PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                format!("cannot decode a WAL record of lanes: {failure}"),
                "The record is damaged, or a newer version of the library has written it. \
                 A new replication slot does not read it.",
            );
        }
    }
}

/// A record under decoding.
pub struct Decoding<'a> {
    context: *mut pg_sys::LogicalDecodingContext,
    lsn: pg_sys::XLogRecPtr,
    origin: pg_sys::RepOriginId,
    action: Action,
    lives: PhantomData<&'a pg_sys::LogicalDecodingContext>,
}

/// Whose work a record's rows are, and where they belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belonging {
    /// The transaction or subtransaction. It may be a parent of the one that wrote the record.
    pub xid: u32,
    /// Its top-level transaction.
    pub top_xid: u32,
    /// The table's file.
    pub file: Locator,
}

/// A row of lanes.
pub type LaneRow<'a> = (&'a RowOutlet, usize);

impl Decoding<'_> {
    /// Notes the transaction that rows belong to. Returns the queue for its changes, if the replication slot wants
    /// them.
    pub fn accept(&self, rows: Belonging) -> Option<ChangeQueue<'_>> {
        let (xid, top_xid) = (rows.xid.into(), rows.top_xid.into());
        // SAFETY: PostgreSQL's context lives as long as this value; the boundary turns an ERROR into a panic.
        let is_wanted = unsafe {
            let context = &*self.context;
            let builder = context.snapshot_builder;
            if top_xid != xid {
                pg_sys::ReorderBufferAssignChild(context.reorder, top_xid, xid, self.lsn);
            }
            pg_sys::ReorderBufferProcessXid(context.reorder, xid, self.lsn);
            // The snapshot is needed in fast-forward mode too: its xmin limits that of the slot.
            let has_snapshot = pg_sys::ffi::pg_guard_ffi_boundary(|| {
                snapshot_state(builder) >= FULL_SNAPSHOT
                    && snapshot_for_change(builder, xid, self.lsn)
            });
            has_snapshot
                && !context.fast_forward
                && (*context.slot).data.database.to_u32() == rows.file.1
                && !self.is_filtered()
        };
        is_wanted.then_some(ChangeQueue {
            decoding: self,
            rows,
        })
    }

    /// Whether the output plugin leaves out changes of the record's origin.
    fn is_filtered(&self) -> bool {
        // SAFETY: PostgreSQL's context lives as long as this value.
        unsafe {
            (*self.context).callbacks.filter_by_origin_cb.is_some()
                && pg_sys::filter_by_origin_cb_wrapper(self.context, self.origin)
        }
    }
}

/// The reorder buffer's queue for the changes of one transaction.
pub struct ChangeQueue<'a> {
    decoding: &'a Decoding<'a>,
    rows: Belonging,
}

impl ChangeQueue<'_> {
    /// Queues the change of one row: the values by which a subscriber finds the old one, and the new ones.
    pub fn push(
        &self,
        layout: &mut TupleLayout,
        old: Option<LaneRow<'_>>,
        new: Option<LaneRow<'_>>,
    ) {
        let decoding = self.decoding;
        // SAFETY: the context lives as long as the borrow. The reorder buffer owns the change and its tuples.
        unsafe {
            let reorder = (*decoding.context).reorder;
            let old = old.map(|row| layout.form(reorder, row));
            let new = new.map(|row| layout.form(reorder, row));
            let change = new_change(reorder);
            (*change).action = match decoding.action {
                Action::Insert => REORDER_BUFFER_CHANGE_INSERT,
                Action::Update => REORDER_BUFFER_CHANGE_UPDATE,
                Action::Delete => REORDER_BUFFER_CHANGE_DELETE,
            };
            (*change).origin_id = decoding.origin;
            set_tuples(change, self.rows.file, old, new);
            let (xid, lsn) = (self.rows.xid.into(), decoding.lsn);
            pg_sys::ReorderBufferQueueChange(reorder, xid, lsn, change, false);
        }
    }
}

/// The form of an attribute in a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TupleAttribute {
    pub length: i16,
    /// `attalign`.
    pub align: u8,
    pub by_value: bool,
    /// Whether short values of variable length take a short header.
    pub packed: bool,
}

/// The layout of heap tuples.
pub struct TupleLayout {
    descriptor: pg_sys::TupleDesc,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl TupleLayout {
    /// The layout of tuples with such attributes.
    pub fn new(attributes: impl ExactSizeIterator<Item = TupleAttribute>) -> TupleLayout {
        let count = attributes.len();
        // SAFETY: the descriptor has so many attributes, which are zeroed and then filled.
        unsafe {
            let descriptor = pg_sys::CreateTemplateTupleDesc(count as c_int);
            for (index, attribute) in attributes.enumerate() {
                let storage = match attribute.packed {
                    true => pg_sys::TYPSTORAGE_EXTENDED,
                    false => pg_sys::TYPSTORAGE_PLAIN,
                };
                let form = pg_sys::FormData_pg_attribute {
                    attlen: attribute.length,
                    attbyval: attribute.by_value,
                    attalign: attribute.align as c_char,
                    attstorage: storage as c_char,
                    ..Default::default()
                };
                ports::set_attribute(descriptor, index, form);
            }
            TupleLayout {
                descriptor,
                values: vec![pg_sys::Datum::null(); count],
                nulls: vec![true; count],
            }
        }
    }

    /// Forms a tuple in memory of the reorder buffer.
    ///
    /// # Safety
    /// `reorder` is live. The row's lanes are of this layout.
    unsafe fn form(
        &mut self,
        reorder: *mut pg_sys::ReorderBuffer,
        row: LaneRow<'_>,
    ) -> DecodedTuple {
        const FIXED_BYTES: usize = offset_of!(pg_sys::HeapTupleHeaderData, t_bits);
        let (outlet, row) = row;
        let count = self.values.len();
        let (values, nulls) = (self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
        // SAFETY: the arrays have an element for each attribute. The tuple's memory has room for its header, its
        // marks of NULLs and as many bytes of data as were computed for it.
        unsafe {
            outlet.read(row, 0, count, values, nulls);
            let has_nulls = self.nulls.contains(&true);
            let marks = if has_nulls { count.div_ceil(8) } else { 0 };
            let data_at = (FIXED_BYTES + marks).next_multiple_of(pg_sys::MAXIMUM_ALIGNOF as usize);
            let data_bytes = pg_sys::heap_compute_data_size(self.descriptor, values, nulls);
            let bytes = data_at + data_bytes;
            let (decoded, tuple) = new_tuple(reorder, bytes - FIXED_BYTES);
            (*tuple).t_len = bytes as u32;
            (*tuple).t_tableOid = pg_sys::InvalidOid;
            (*tuple).t_self = pg_sys::ItemPointerData {
                ip_blkid: pg_sys::BlockIdData {
                    bi_hi: u16::MAX,
                    bi_lo: u16::MAX,
                },
                ip_posid: 0,
            };
            let header = (*tuple).t_data;
            header.cast::<u8>().write_bytes(0, data_at);
            (*header).t_infomask2 = count as u16;
            (*header).t_hoff = data_at as u8;
            let bits = match has_nulls {
                true => (&raw mut (*header).t_bits).cast::<u8>(),
                false => std::ptr::null_mut(),
            };
            pg_sys::heap_fill_tuple(
                self.descriptor,
                values,
                nulls,
                header.cast::<c_char>().add(data_at),
                data_bytes,
                &raw mut (*header).t_infomask,
                bits,
            );
            decoded
        }
    }
}

impl Drop for TupleLayout {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: this value has made the descriptor, and nobody else refers to it.
            unsafe { pg_sys::FreeTupleDesc(self.descriptor) }
        }
    }
}

/// A tuple of the reorder buffer.
#[cfg(any(feature = "pg15", feature = "pg16"))]
type DecodedTuple = *mut pg_sys::ReorderBufferTupleBuf;
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
type DecodedTuple = pg_sys::HeapTuple;

/// Allocates a tuple with so many bytes after the fixed part of its header.
///
/// # Safety
/// `reorder` is live, and owns the tuple.
unsafe fn new_tuple(
    reorder: *mut pg_sys::ReorderBuffer,
    bytes: usize,
) -> (DecodedTuple, pg_sys::HeapTuple) {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        {
            let decoded = pg_sys::ReorderBufferGetTupleBuf(reorder, bytes);
            (decoded, &raw mut (*decoded).tuple)
        }
        #[cfg(feature = "pg17")]
        {
            let tuple = pg_sys::ReorderBufferGetTupleBuf(reorder, bytes);
            (tuple, tuple)
        }
        #[cfg(feature = "pg18")]
        {
            let tuple = pg_sys::ReorderBufferAllocTupleBuf(reorder, bytes);
            (tuple, tuple)
        }
    }
}

/// Allocates a change.
///
/// # Safety
/// `reorder` is live, and owns the change.
unsafe fn new_change(reorder: *mut pg_sys::ReorderBuffer) -> *mut pg_sys::ReorderBufferChange {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return pg_sys::ReorderBufferGetChange(reorder);
        #[cfg(feature = "pg18")]
        return pg_sys::ReorderBufferAllocChange(reorder);
    }
}

/// Makes a change one of a row of the table in `file`. Its tuples need no toasted values.
///
/// # Safety
/// `change` is live, and the tuples are of its reorder buffer.
unsafe fn set_tuples(
    change: *mut pg_sys::ReorderBufferChange,
    file: Locator,
    old: Option<DecodedTuple>,
    new: Option<DecodedTuple>,
) {
    let (space, database, number) = file;
    // SAFETY: the caller's promise; this part of the union is the one of rows.
    unsafe {
        let row = &mut (*change).data.tp;
        #[cfg(feature = "pg15")]
        {
            row.relnode = pg_sys::RelFileNode {
                spcNode: space.into(),
                dbNode: database.into(),
                relNode: number.into(),
            };
        }
        #[cfg(not(feature = "pg15"))]
        {
            row.rlocator = pg_sys::RelFileLocator {
                spcOid: space.into(),
                dbOid: database.into(),
                relNumber: number.into(),
            };
        }
        row.clear_toast_afterwards = true;
        row.oldtuple = old.unwrap_or(std::ptr::null_mut());
        row.newtuple = new.unwrap_or(std::ptr::null_mut());
    }
}
