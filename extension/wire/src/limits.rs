//! The limits of a batch. A reader refuses a batch that exceeds them, and a writer never makes one.

/// Rows in one batch.
pub const ROWS_MAX: usize = 16_777_216;

/// Columns in one batch: PostgreSQL's `MaxHeapAttributeNumber`.
pub const COLUMNS_MAX: usize = 1_600;

/// Bytes of a column name: PostgreSQL's `NAMEDATALEN` - 1.
pub const NAME_BYTES_MAX: usize = 63;

/// Bytes of one encoded batch: a `bytea` datum, header included, stays below 1 GiB.
pub const BATCH_BYTES_MAX: usize = (1 << 30) - 64;

/// Items that a dictionary may hold in a batch of few rows; a batch of more rows may have as many
/// items as rows. Without this bound a list of empty items would make a reader allocate a multiple
/// of the body.
pub const DICTIONARY_ITEMS_FLOOR: usize = 65_536;

/// The most items of a dictionary in a batch of `rows` rows.
pub const fn dictionary_items_max(rows: usize) -> usize {
    if rows > DICTIONARY_ITEMS_FLOOR {
        rows
    } else {
        DICTIONARY_ITEMS_FLOOR
    }
}

/// The earliest finite timestamp in microseconds since the Unix epoch: 4714-11-24 00:00 BC, where
/// PostgreSQL's range begins. The end of the range, in the year 294276, is beyond an `i64` counted
/// from 1970, so only the beginning is checked.
pub const TIMESTAMP_MICROSECONDS_MIN: i64 = -210_866_803_200_000_000;

/// The earliest finite date, days since the Unix epoch: 4714-11-24 BC.
pub const DATE_DAYS_MIN: i32 = -2_440_588;

/// The latest finite date, days since the Unix epoch: 5874897-12-31.
pub const DATE_DAYS_MAX: i32 = 2_145_042_905;

/// `-infinity` as a timestamp.
pub const TIMESTAMP_NEGATIVE_INFINITY: i64 = i64::MIN;
/// `infinity` as a timestamp.
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;
/// `-infinity` as a date.
pub const DATE_NEGATIVE_INFINITY: i32 = i32::MIN;
/// `infinity` as a date.
pub const DATE_INFINITY: i32 = i32::MAX;

/// Whether PostgreSQL can hold a timestamp, in microseconds since the Unix epoch: a finite one of
/// its range, or an infinity.
pub const fn is_storable_timestamp(microseconds: i64) -> bool {
    // Beyond the greatest finite timestamp, there is only `infinity`.
    microseconds >= TIMESTAMP_MICROSECONDS_MIN || microseconds == TIMESTAMP_NEGATIVE_INFINITY
}

/// Whether PostgreSQL can hold a date, in days since the Unix epoch: a finite one of its range, or
/// an infinity.
pub const fn is_storable_date(days: i32) -> bool {
    DATE_DAYS_MIN <= days && days <= DATE_DAYS_MAX
        || days == DATE_NEGATIVE_INFINITY
        || days == DATE_INFINITY
}

// A code is at most four bytes and an end offset is a u32, so neither can overflow within these
// bounds.
const _: () = assert!(ROWS_MAX < u32::MAX as usize);
const _: () = assert!(BATCH_BYTES_MAX < u32::MAX as usize);
