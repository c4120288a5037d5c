//! Rows of a lanes table sorted by a btree index, for CLUSTER.
//!
//! PostgreSQL's own sort for CLUSTER takes heap tuples, knows the keys of an index, its expressions included, and goes
//! to disk past `maintenance_work_mem`. A tuple's header carries who wrote the row and which number it had.

use lanes_columnar::column::Column;
use pgrx::pg_sys;

use super::datum::{RowIntake, RowOutlet};
use super::table::OpenTable;

/// The transaction that wrote a row, and the number that the row had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowOrigin {
    pub xmin: u32,
    pub cmin: u32,
    pub is_frozen: bool,
    pub row: u64,
}

/// An open index in whose order rows of its table are to be sorted.
pub struct ClusterIndex<'a> {
    table: OpenTable<'a>,
    index: pg_sys::Relation,
}

impl<'a> ClusterIndex<'a> {
    /// # Safety
    /// `index` is an index of the table, and open for `'a`.
    pub unsafe fn new(table: OpenTable<'a>, index: pg_sys::Relation) -> ClusterIndex<'a> {
        ClusterIndex { table, index }
    }
}

/// Rows that are being sorted.
pub struct ClusterSort<'a> {
    table: OpenTable<'a>,
    state: *mut pg_sys::Tuplesortstate,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl<'a> ClusterSort<'a> {
    /// Begins to sort rows of a table by an index; `None`: the index is no btree.
    pub fn begin(order: ClusterIndex<'a>) -> Option<ClusterSort<'a>> {
        let ClusterIndex { table, index } = order;
        // SAFETY: the index is one of the table and open; the sort lives in the current memory context.
        unsafe {
            if (*(*index).rd_rel).relam != pg_sys::BTREE_AM_OID {
                return None;
            }
            let descriptor = (*table.as_ptr()).rd_att;
            let count = (*descriptor).natts as usize;
            let state = pg_sys::tuplesort_begin_cluster(
                descriptor,
                index,
                pg_sys::maintenance_work_mem,
                std::ptr::null_mut(),
                pg_sys::TUPLESORT_NONE as i32,
            );
            Some(ClusterSort {
                table,
                state,
                values: vec![pg_sys::Datum::null(); count],
                nulls: vec![true; count],
            })
        }
    }

    /// Adds a row of lanes of the table's row type.
    pub fn put(&mut self, outlet: &RowOutlet, place: usize, origin: RowOrigin) {
        // SAFETY: the arrays have an element for each attribute; the lanes hold the row while it is copied, and the
        // sort copies the tuple.
        unsafe {
            let (values, nulls) = (self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
            outlet.read(place, 0, self.values.len(), values, nulls);
            let tuple = pg_sys::heap_form_tuple((*self.table.as_ptr()).rd_att, values, nulls);
            let header = &mut *(*tuple).t_data;
            // A new tuple is a value of a row type. It becomes a tuple of a table, as heap makes it before it inserts
            // it.
            header.t_infomask &= !(pg_sys::HEAP_XACT_MASK as u16);
            header.t_infomask2 &= !(pg_sys::HEAP2_XACT_MASK as u16);
            header.t_infomask |= pg_sys::HEAP_XMAX_INVALID as u16;
            if origin.is_frozen {
                header.t_infomask |= pg_sys::HEAP_XMIN_FROZEN as u16;
            }
            let fields = &mut header.t_choice.t_heap;
            fields.t_xmin = origin.xmin.into();
            fields.t_xmax = pg_sys::InvalidTransactionId;
            fields.t_field3.t_cid = origin.cmin;
            (*tuple).t_tableOid = self.table.oid();
            (*tuple).t_self = pg_sys::ItemPointerData {
                ip_blkid: pg_sys::BlockIdData {
                    bi_hi: (origin.row >> 32) as u16,
                    bi_lo: (origin.row >> 16) as u16,
                },
                ip_posid: origin.row as u16,
            };
            pg_sys::tuplesort_putheaptuple(self.state, tuple);
            pg_sys::heap_freetuple(tuple);
        }
    }

    /// Sorts the rows that were added.
    pub fn sort(&mut self) {
        // SAFETY: a sort to which rows were added.
        unsafe { pg_sys::tuplesort_performsort(self.state) }
    }

    /// Moves to the next row in order.
    pub fn advance(&mut self) -> Option<RowOrigin> {
        // SAFETY: the sort is done, and the tuple lives until the next call.
        unsafe {
            let tuple = pg_sys::tuplesort_getheaptuple(self.state, true);
            if tuple.is_null() {
                return None;
            }
            let (values, nulls) = (self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
            pg_sys::heap_deform_tuple(tuple, (*self.table.as_ptr()).rd_att, values, nulls);
            let header = &*(*tuple).t_data;
            let fields = header.t_choice.t_heap;
            let id = (*tuple).t_self;
            let frozen = pg_sys::HEAP_XMIN_FROZEN as u16;
            Some(RowOrigin {
                xmin: fields.t_xmin.into_inner(),
                cmin: fields.t_field3.t_cid,
                is_frozen: header.t_infomask & frozen == frozen,
                row: u64::from(id.ip_blkid.bi_hi) << 32
                    | u64::from(id.ip_blkid.bi_lo) << 16
                    | u64::from(id.ip_posid),
            })
        }
    }
}

impl ClusterSort<'_> {
    /// Appends the row that the sort moved to last to columns of the intake's kinds.
    pub fn push_current(&self, intake: &mut RowIntake, columns: &mut [Column]) {
        // The values are of the table's row type, and live until the sort moves on.
        intake.push_values(columns, &self.values, &self.nulls);
    }
}

impl Drop for ClusterSort<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: made in `begin`; after an ERROR the memory context frees it, and its files go with the
            // transaction.
            unsafe { pg_sys::tuplesort_end(self.state) }
        }
    }
}
