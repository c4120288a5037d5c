//! The errors of building columns from a batch, encoding and decoding.

use crate::limits::{COLUMNS_MAX, IMAGE_BYTES_MAX, IMAGE_ROWS_MAX, ITEM_BYTES_MAX};

/// The result of an operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Every failure of this crate. The errors of the group "the bytes" mean that an image is damaged
/// or was not written by [`encode`](crate::image::encode). The other errors mean that the caller's
/// values do not fit.
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    // The caller's values.
    /// More rows than one image may hold.
    #[error("{rows} rows are more than the {IMAGE_ROWS_MAX} that one image may hold")]
    TooManyRows {
        /// The requested rows.
        rows: u64,
    },
    /// More columns than a table may have.
    #[error("{columns} columns are more than the {COLUMNS_MAX} that one image may hold")]
    TooManyColumns {
        /// The requested columns.
        columns: u64,
    },
    /// The image would not fit.
    #[error("an image of {bytes} bytes is larger than the {IMAGE_BYTES_MAX} allowed")]
    ImageTooLarge {
        /// Bytes that the image would take.
        bytes: usize,
    },
    /// An item is too long.
    #[error("an item of {bytes} bytes is longer than the {ITEM_BYTES_MAX} allowed")]
    ItemTooLong {
        /// Bytes of the item.
        bytes: usize,
    },
    /// A column does not have the rows that the others have.
    #[error("column {column} has {rows} rows where {expected} were expected")]
    RowsDiffer {
        /// The index of the column, from 0.
        column: usize,
        /// Rows that it has.
        rows: usize,
        /// Rows that it should have.
        expected: usize,
    },
    /// The operation does not apply to a column of this kind, or the stored column is of another.
    #[error("a column of kind {kind:?} does not hold {found}")]
    KindDiffers {
        /// The kind of the column.
        kind: crate::kind::LaneKind,
        /// What was found instead.
        found: &'static str,
    },
    /// A value of fixed width has another number of bytes.
    #[error("a value of {width} bytes was expected, not one of {bytes}")]
    WidthDiffers {
        /// Bytes of each value of the column.
        width: usize,
        /// The number of bytes found for each value.
        bytes: usize,
    },
    /// A code points past the dictionary.
    #[error("code {code} is outside a dictionary of {items} items")]
    CodeOutside {
        /// The code.
        code: u32,
        /// Items in the dictionary.
        items: usize,
    },
    /// A validity bitmap has fewer bits than there are rows.
    #[error("a validity bitmap of {words} words is too short for {rows} rows")]
    ValidityTooShort {
        /// The number of 64-bit words found.
        words: usize,
        /// Rows to be covered.
        rows: usize,
    },

    // The bytes.
    /// The image ends too early.
    #[error("the image is cut short")]
    Truncated,
    /// The checksum does not match.
    #[error("the image's checksum is {found:#010x} where its bytes give {computed:#010x}")]
    Checksum {
        /// Checksum in the image.
        found: u32,
        /// Checksum of its bytes.
        computed: u32,
    },
    /// An encoded lane is damaged, or was not written by
    /// [`encode_lane`](crate::encoding::encode_lane).
    #[error("the encoded lane is malformed: {0}")]
    EncodedLane(&'static str),
    /// The bytes of a place map contradict themselves.
    #[error("the place map is malformed: {0}")]
    PlaceMap(&'static str),
    /// A version that this code does not read.
    #[error("image version {version} is not known")]
    Version {
        /// The version byte.
        version: u8,
    },
    /// An encoding that this code does not read.
    #[error("column encoding {encoding:#04x} is not known")]
    Encoding {
        /// The encoding byte.
        encoding: u8,
    },
    /// Lengths or counts within the image contradict each other.
    #[error("the image is malformed: {0}")]
    Malformed(&'static str),
}
