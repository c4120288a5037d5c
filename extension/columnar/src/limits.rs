//! Sizes that the storage format and the cache agree on, and the map from row numbers to segments.
//!
//! Row numbers are dense, start at 0 and count up for the life of a table. Segments are windows of
//! row numbers: small at first, so that a table of a few rows costs little memory, then of one
//! fixed size.
//!
//! | rows | segments | rows a segment |
//! |---|---|---|
//! | 0 .. 65,536 | 0 .. 32 | 2,048 |
//! | 65,536 .. | 32 .. | 65,536 |

/// Rows in one vector, the unit in which a scan works and in which a small segment is sized.
pub const VECTOR_ROWS: usize = 2_048;

/// Rows in one segment of full size.
pub const SEGMENT_ROWS: u32 = 65_536;

/// Segments of [`VECTOR_ROWS`] rows that precede the first one of full size.
pub const SMALL_SEGMENTS: u32 = 32;

/// Rows that one image may hold. It bounds what a constant column may expand to.
pub const IMAGE_ROWS_MAX: usize = 65_536;

/// Bytes that one image may take.
pub const IMAGE_BYTES_MAX: usize = 1 << 30;

/// Bytes that one item (one value of variable length) may take.
pub const ITEM_BYTES_MAX: usize = 1 << 30;

/// Columns of one table, dropped ones included: the limit of PostgreSQL.
pub const COLUMNS_MAX: usize = 1_600;

/// Rows that one table may number in its life: 2^32 virtual blocks of 2,048 rows.
pub const ROWS_MAX: u64 = 1 << 43;

/// Lanes begin at multiples of this many bytes.
pub const LANE_ALIGN: usize = 64;

const SMALL_ROWS: u64 = SMALL_SEGMENTS as u64 * VECTOR_ROWS as u64;
const _: () = assert!(
    SMALL_ROWS == SEGMENT_ROWS as u64,
    "the small segments fill one full one"
);
const _: () = assert!(SEGMENT_ROWS as usize <= IMAGE_ROWS_MAX);
const _: () = assert!(ROWS_MAX / (SEGMENT_ROWS as u64) < (u32::MAX - SMALL_SEGMENTS) as u64);

/// The segment that holds `row`. Rows at [`ROWS_MAX`] and above belong to none and answer
/// `u32::MAX`.
#[inline]
pub const fn segment_of(row: u64) -> u32 {
    if row < SMALL_ROWS {
        (row / VECTOR_ROWS as u64) as u32
    } else if row < ROWS_MAX {
        (row / SEGMENT_ROWS as u64) as u32 + (SMALL_SEGMENTS - 1)
    } else {
        u32::MAX
    }
}

/// The number of the first row of `segment`.
#[inline]
pub const fn segment_first_row(segment: u32) -> u64 {
    if segment < SMALL_SEGMENTS {
        segment as u64 * VECTOR_ROWS as u64
    } else {
        (segment - (SMALL_SEGMENTS - 1)) as u64 * SEGMENT_ROWS as u64
    }
}

/// The number of rows that `segment` can contain.
#[inline]
pub const fn segment_rows_max(segment: u32) -> u32 {
    if segment < SMALL_SEGMENTS {
        VECTOR_ROWS as u32
    } else {
        SEGMENT_ROWS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_tile_the_rows_without_gap_or_overlap() {
        for segment in 0..200 {
            let first = segment_first_row(segment);
            let rows = u64::from(segment_rows_max(segment));
            assert_eq!(segment_of(first), segment);
            assert_eq!(segment_of(first + rows - 1), segment);
            assert_eq!(segment_first_row(segment + 1), first + rows);
        }
    }

    #[test]
    fn the_geometry_is_the_documented_one() {
        assert_eq!(segment_of(2_047), 0);
        assert_eq!(segment_of(2_048), 1);
        assert_eq!(segment_of(65_535), 31);
        assert_eq!(segment_of(65_536), 32);
        assert_eq!(segment_of(131_072), 33);
        assert_eq!(segment_rows_max(31), 2_048);
        assert_eq!(segment_rows_max(32), 65_536);
    }

    #[test]
    fn rows_past_the_limit_have_no_segment() {
        assert_ne!(segment_of(ROWS_MAX - 1), u32::MAX);
        assert_eq!(segment_of(ROWS_MAX), u32::MAX);
        assert_eq!(segment_of(u64::MAX), u32::MAX);
    }
}
