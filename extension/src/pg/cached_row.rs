//! Rows of system catalogs in PostgreSQL's caches of them.

use std::ffi::{CStr, CString};

use pgrx::pg_sys::{self, Datum, Oid};

use super::definitions::Definitions;
use super::functions::catalog;
use super::transaction;

/// A row of a catalog, while its tuple is held.
pub struct CachedRow {
    cache: pg_sys::SysCacheIdentifier::Type,
    tuple: pg_sys::HeapTuple,
}

/// Reads the row of a cache with this key. `None` if there is none.
pub fn cached<T, const KEYS: usize>(
    cache: pg_sys::SysCacheIdentifier::Type,
    key: [Datum; KEYS],
    read: impl FnOnce(&CachedRow) -> T,
) -> Option<T> {
    let part = |place: usize| key.get(place).copied().unwrap_or(Datum::null());
    // SAFETY: a look-up; the tuple is released after `read` has copied what it wants.
    unsafe {
        let tuple = pg_sys::SearchSysCache(cache as i32, part(0), part(1), part(2), part(3));
        if tuple.is_null() {
            return None;
        }
        let found = read(&CachedRow { cache, tuple });
        pg_sys::ReleaseSysCache(tuple);
        Some(found)
    }
}

impl CachedRow {
    /// The value of a column that the catalog has, by number; `None` is NULL.
    pub fn value(&self, column: i16) -> Option<Datum> {
        let (cache, mut is_null) = (self.cache as i32, false);
        // SAFETY: the tuple is held.
        let value = unsafe { pg_sys::SysCacheGetAttr(cache, self.tuple, column, &raw mut is_null) };
        (!is_null).then_some(value)
    }

    /// The value of a column of type oid.
    pub fn oid(&self, column: i16) -> Option<Oid> {
        let value = self.value(column)?;
        Some(Oid::from(value.value() as u32))
    }

    /// The value of a column of type text.
    pub fn text(&self, column: i16) -> Option<CString> {
        let value = self.value(column)?;
        // SAFETY: the column is a text; the copy is a string that ends with a NUL.
        unsafe {
            let text = pg_sys::text_to_cstring(value.cast_mut_ptr());
            Some(CStr::from_ptr(text).to_owned())
        }
    }

    /// The parameters in a column that is an array of texts. They are copies in the current memory context.
    pub fn parameters<'p>(&self, column: i16) -> Option<Definitions<'p>> {
        let options = self.value(column)?;
        // SAFETY: the column is such an array.
        Some(unsafe { catalog::untransformRelOptions(options) })
    }

    /// Whether the current transaction has written the row.
    pub fn is_of_this_transaction(&self) -> bool {
        // SAFETY: the tuple is held, and its header is that of a row of a table.
        let writer = unsafe { (*(*self.tuple).t_data).t_choice.t_heap.t_xmin };
        transaction::is_current(writer.into_inner())
    }

    /// The ends of the histogram in a row of `pg_statistic` of a column of dates or times, as numbers.
    pub fn histogram_ends(&self) -> Option<(f64, f64)> {
        let kind = pg_sys::STATISTIC_KIND_HISTOGRAM as i32;
        let (any, wanted) = (pg_sys::InvalidOid, pg_sys::ATTSTATSSLOT_VALUES as i32);
        let mut slot = pg_sys::AttStatsSlot::default();
        // SAFETY: the tuple is held. The slot is a copy that is freed after its ends are read, and has as many values
        // as it says.
        unsafe {
            if !pg_sys::get_attstatsslot(&raw mut slot, self.tuple, kind, any, wanted) {
                return None;
            }
            let end = |index: i32| {
                let datum = *slot.values.add(index as usize);
                match slot.valuetype {
                    pg_sys::DATEOID => Some(f64::from(datum.value() as i32)),
                    pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID => {
                        Some(datum.value() as i64 as f64)
                    }
                    _ => None,
                }
            };
            let ends = match slot.nvalues {
                0 => None,
                count => end(0).zip(end(count - 1)),
            };
            pg_sys::free_attstatsslot(&raw mut slot);
            ends
        }
    }
}
