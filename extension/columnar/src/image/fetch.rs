//! Fetches the bytes of a sealed image that decoding some of its rows needs, from where the image is stored.

use std::ops::Range;

use super::{CHECKED_OFFSET, Image};
use crate::encoding::{EncodedLane, Fetch};
use crate::error::{Error, Result};
use crate::kind::LaneKind;
use crate::limits::COLUMNS_MAX;

/// Bytes of the head of an image with few columns.
const HEAD_BYTES: usize = 256;
/// The most bytes of a varint.
const VARINT_BYTES: usize = 5;

impl Image<'_> {
    /// Fetches the bytes that [`Image::decode_range`] reads for these rows, into a buffer of the image's length. The
    /// columns are of these kinds. The checksum of the image is not verified, since that needs all bytes. Damaged bytes
    /// decode to an error or to wrong values.
    ///
    /// # Errors
    /// The errors of `fetch`; also if the head of the image or of a lane is malformed.
    pub fn fetch(
        buffer: &mut [u8],
        kinds: &[LaneKind],
        rows: Range<usize>,
        fetch: Fetch<'_>,
    ) -> Result<()> {
        let columns = kinds.len().min(COLUMNS_MAX);
        let head = CHECKED_OFFSET + 2 * VARINT_BYTES + columns * (1 + VARINT_BYTES);
        let head = head.max(HEAD_BYTES).min(buffer.len());
        fetch(buffer, 0..head)?;
        let image = Image::reparse(buffer)?;
        if image.columns() > columns {
            return Err(Error::Malformed("an image has more columns than its table"));
        }
        let lanes: Vec<_> = (0..image.columns())
            .map(|column| image.sealed_lane(column))
            .collect();
        for (lane, &kind) in lanes.into_iter().zip(kinds) {
            if let Some(place) = lane
                && kind != LaneKind::Absent
            {
                EncodedLane::fetch(buffer, place, kind, rows.clone(), fetch)?;
            }
        }
        Ok(())
    }
}
