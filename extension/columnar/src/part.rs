//! A sealed *part*: the rows of one range, sorted and encoded as segments. Its index says what they
//! are, where they lie and what their zones are, so that a scan may leave a segment without reading
//! it.
//!
//! All integers are little-endian, nothing is aligned.
//!
//! | bytes | index |
//! |---|---|
//! | 1 | version: 5 with digests of images, 4 without; 2 and 3 are read |
//! | 4 | checksum: low half of XXH3-64 of all bytes after it |
//! | 4 | segments |
//! | 2 | columns, at most 1,600 |
//! | for each segment | first row 8, rows 4, first block 4 ([`REMOTE_BLOCK`]: it is in object storage), bytes 4, then a zone for each column, then what was stored of each column (not in version 2), then the digest of its image 32 (from version 5 on) |
//!
//! | bytes | zone |
//! |---|---|
//! | 1 | bits 0-1: 0 nothing known, 1 signed, 2 float; bit 2 sorted, 3 has NaN, 4 has an infinity, 5 has a sum (not before version 4) |
//! | 4 | rows that are not NULL |
//! | 8, 8 | minimum and maximum, of signed and float; of a column of [16 bytes](crate::bytes16) those of the prefixes, as signed (absent in parts that older versions wrote) |
//! | 16 | the sum, if there is one; that of no values is not written |
//!
//! | bytes | stored column |
//! |---|---|
//! | 8 | bytes of its values; 0 with encoding 0: nothing was noted |
//! | 4 | bytes of its lane |
//! | 1 | [`MainEncoding`] |
//!
//! A segment in object storage has the digest of the image that was taken there, so that what comes
//! back can be compared. Those that were taken there before there were digests have none, and those
//! that are here need none.

use crate::digest::{DIGEST_BYTES, Digest};
use crate::encoding::MainEncoding;
use crate::error::{Error, Result};
use crate::limits::{COLUMNS_MAX, SEGMENT_ROWS};
use crate::zone_map::Zone;

mod zone;

use zone::{read_zone, write_zone};

/// The version that has digests.
const VERSION_WITH_DIGESTS: u8 = 5;
const VERSION: u8 = 4;
/// The version that has no sums.
const VERSION_WITHOUT_SUMS: u8 = 3;
/// The version that knows nothing of stored columns.
const VERSION_BARE: u8 = 2;
/// Stands for the block of a segment whose image is in object storage only.
pub const REMOTE_BLOCK: u32 = u32::MAX;
const CHECKED_OFFSET: usize = 5;
const SEGMENT_BYTES_MIN: usize = 20;

/// The stored form of a column of a segment, for people to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredColumn {
    /// The bytes of its values, each value by itself. NULLs have no bytes.
    pub raw: u64,
    /// Bytes of its lane.
    pub bytes: u32,
    /// The encoding of most of its rows.
    pub encoding: MainEncoding,
}

/// One segment of a part.
#[derive(Clone, Debug)]
pub struct SealedSegment {
    /// Number of the first row.
    pub first_row: u64,
    /// The number of rows, at most [`SEGMENT_ROWS`].
    pub rows: u32,
    /// The block at which the image begins; 0 if no part of it has a page of its own;
    /// [`REMOTE_BLOCK`] if the image is in object storage.
    pub block: u32,
    /// Bytes of the image.
    pub bytes: u32,
    /// A zone for each column. The zones are never exact, because rows may have been deleted since.
    /// Over all rows that were sealed, the bounds are tight, and the counts, flags and sums are
    /// right. Queries are answered from the zones, so this must stay true.
    pub zones: Vec<Zone>,
    /// A description for each zone; the default where none was recorded.
    pub columns: Vec<StoredColumn>,
    /// The digest of the image if the image is in object storage. Either all segments of a part
    /// have a digest or none has one.
    pub digest: Option<Digest>,
}

impl SealedSegment {
    /// The row after the last one.
    pub fn end_row(&self) -> u64 {
        self.first_row + u64::from(self.rows)
    }
}

/// The description of a part that can be used without reading its segments.
#[derive(Clone, Debug, Default)]
pub struct PartIndex {
    /// Ascending by row, without overlap.
    pub segments: Vec<SealedSegment>,
}

impl PartIndex {
    /// Rows of all segments.
    pub fn rows(&self) -> u64 {
        self.segments.iter().map(|s| u64::from(s.rows)).sum()
    }

    /// The index of a part whose images went to object storage: its segments, each with the digest
    /// of its image.
    ///
    /// # Panics
    /// If there are more or fewer digests than segments.
    pub fn to_remote(&self, digests: &[Digest]) -> PartIndex {
        assert_eq!(digests.len(), self.segments.len());
        let remote = |(segment, digest): (&SealedSegment, &Digest)| SealedSegment {
            block: REMOTE_BLOCK,
            digest: Some(*digest),
            ..segment.clone()
        };
        PartIndex {
            segments: self.segments.iter().zip(digests).map(remote).collect(),
        }
    }

    /// The index as bytes. All segments have the same number of zones, and either all or none have
    /// digests.
    pub fn encode(&self) -> Vec<u8> {
        let columns = self.segments.first().map_or(0, |s| s.zones.len());
        let has_digests = self.segments.iter().any(|s| s.digest.is_some());
        let version = match has_digests {
            true => VERSION_WITH_DIGESTS,
            false => VERSION,
        };
        let mut out = vec![version, 0, 0, 0, 0];
        out.extend_from_slice(&(self.segments.len() as u32).to_le_bytes());
        out.extend_from_slice(&(columns as u16).to_le_bytes());
        for segment in &self.segments {
            debug_assert_eq!(segment.zones.len(), columns);
            out.extend_from_slice(&segment.first_row.to_le_bytes());
            for word in [segment.rows, segment.block, segment.bytes] {
                out.extend_from_slice(&word.to_le_bytes());
            }
            for zone in &segment.zones {
                write_zone(zone, &mut out);
            }
            debug_assert_eq!(segment.columns.len(), columns);
            for column in &segment.columns {
                out.extend_from_slice(&column.raw.to_le_bytes());
                out.extend_from_slice(&column.bytes.to_le_bytes());
                out.push(column.encoding.byte());
            }
            debug_assert_eq!(segment.digest.is_some(), has_digests);
            if let Some(digest) = segment.digest {
                out.extend_from_slice(&digest.0);
            }
        }
        let checksum = xxhash_rust::xxh3::xxh3_64(&out[CHECKED_OFFSET..]) as u32;
        out[1..CHECKED_OFFSET].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// If the bytes are not an index, are damaged, or are of another version.
    pub fn decode(bytes: &[u8]) -> Result<PartIndex> {
        let mut left = bytes;
        let [version] = take(&mut left)?;
        if !(VERSION_BARE..=VERSION_WITH_DIGESTS).contains(&version) {
            return Err(Error::Version { version });
        }
        let found = u32::from_le_bytes(take(&mut left)?);
        let computed = xxhash_rust::xxh3::xxh3_64(left) as u32;
        if found != computed {
            return Err(Error::Checksum { found, computed });
        }
        let count = u32::from_le_bytes(take(&mut left)?) as usize;
        let columns = usize::from(u16::from_le_bytes(take(&mut left)?));
        if columns > COLUMNS_MAX {
            return Err(Error::TooManyColumns {
                columns: columns as u64,
            });
        }
        if left.len() / SEGMENT_BYTES_MIN < count {
            return Err(Error::Truncated);
        }
        let mut segments: Vec<SealedSegment> = Vec::with_capacity(count);
        let mut next_row = 0;
        for _ in 0..count {
            let first_row = u64::from_le_bytes(take(&mut left)?);
            let rows = u32::from_le_bytes(take(&mut left)?);
            let block = u32::from_le_bytes(take(&mut left)?);
            let bytes = u32::from_le_bytes(take(&mut left)?);
            if first_row < next_row || rows == 0 || rows > SEGMENT_ROWS {
                return Err(Error::Malformed("the segments of a part do not ascend"));
            }
            next_row = first_row
                .checked_add(rows.into())
                .ok_or(Error::Malformed("a row number is too large"))?;
            let zones = (0..columns).map(|_| read_zone(&mut left, version));
            let zones = zones.collect::<Result<_>>()?;
            let stored = (0..columns).map(|_| match version {
                VERSION_BARE => Ok(StoredColumn::default()),
                _ => read_stored(&mut left),
            });
            let columns = stored.collect::<Result<_>>()?;
            let digest = match version {
                VERSION_WITH_DIGESTS => Some(Digest(take::<DIGEST_BYTES>(&mut left)?)),
                _ => None,
            };
            segments.push(SealedSegment {
                first_row,
                rows,
                block,
                bytes,
                zones,
                columns,
                digest,
            });
        }
        if !left.is_empty() {
            return Err(Error::Malformed("bytes after the last segment of a part"));
        }
        Ok(PartIndex { segments })
    }
}

fn read_stored(left: &mut &[u8]) -> Result<StoredColumn> {
    let raw = u64::from_le_bytes(take(left)?);
    let bytes = u32::from_le_bytes(take(left)?);
    let [encoding] = take(left)?;
    Ok(StoredColumn {
        raw,
        bytes,
        encoding: MainEncoding::of_byte(encoding),
    })
}

fn take<const N: usize>(left: &mut &[u8]) -> Result<[u8; N]> {
    let (bytes, rest) = left.split_first_chunk().ok_or(Error::Truncated)?;
    *left = rest;
    Ok(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone_map::Bound;

    fn zone(minimum: Bound, maximum: Bound) -> Zone {
        Zone {
            codes: None,
            minimum,
            maximum,
            non_null: 7,
            sum: 0,
            has_sum: false,
            sorted: true,
            has_nan: false,
            has_infinite: true,
            exact: false,
        }
    }

    fn sample() -> PartIndex {
        let segment = |first_row, rows| SealedSegment {
            first_row,
            rows,
            block: 12,
            bytes: 345,
            zones: vec![
                zone(Bound::Signed(i64::MIN), Bound::Signed(-3)),
                zone(Bound::Unknown, Bound::Unknown),
                zone(Bound::Float(-0.5), Bound::Float(f64::INFINITY)),
            ],
            columns: (1..=3)
                .map(|number| StoredColumn {
                    raw: u64::from(number) << 33,
                    bytes: 1000 + u32::from(number),
                    encoding: MainEncoding::of_byte(number),
                })
                .collect(),
            digest: None,
        };
        PartIndex {
            segments: vec![segment(10, 5), segment(65_536, SEGMENT_ROWS)],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let index = summed();
        let read = PartIndex::decode(&index.encode()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{index:?}"));
        assert_eq!(read.rows(), 5 + u64::from(SEGMENT_ROWS));
        assert!(
            PartIndex::decode(&PartIndex::default().encode())
                .unwrap()
                .segments
                .is_empty()
        );
    }

    /// With sums of integers and of bools.
    fn summed() -> PartIndex {
        let mut index = sample();
        let sums = [i128::from(i64::MIN) * 3, 7, i128::MAX];
        for (segment, sum) in index.segments.iter_mut().zip(sums) {
            for zone in &mut segment.zones[..2] {
                (zone.sum, zone.has_sum) = (sum, true);
            }
        }
        index
    }

    #[cfg(not(miri))]
    #[test]
    fn an_index_that_was_written_once_is_read_as_ever() {
        let kept = crate::test_support::golden("golden/part_index_summed", &summed().encode());
        let read = PartIndex::decode(&kept).unwrap();
        assert_eq!(format!("{read:?}"), format!("{:?}", summed()));
    }

    #[cfg(not(miri))]
    #[test]
    fn an_index_of_the_version_without_sums_is_read_as_ever() {
        let mut before = sample().encode();
        before[0] = VERSION_WITHOUT_SUMS;
        let kept = crate::test_support::golden("golden/part_index", &before);
        let read = PartIndex::decode(&kept).unwrap();
        assert_eq!(format!("{read:?}"), format!("{:?}", sample()));
    }

    /// In object storage.
    fn remote() -> PartIndex {
        summed().to_remote(&[Digest::of(b"one"), Digest::of(b"two")])
    }

    #[cfg(not(miri))]
    #[test]
    fn an_index_of_the_version_with_digests_is_read_as_ever() {
        let kept = crate::test_support::golden("golden/part_index_remote", &remote().encode());
        assert_eq!(kept[0], VERSION_WITH_DIGESTS);
        let read = PartIndex::decode(&kept).unwrap();
        assert_eq!(format!("{read:?}"), format!("{:?}", remote()));
    }

    #[test]
    fn remote_segments_have_no_block_and_the_same_zones() {
        let local = summed();
        let read = PartIndex::decode(&remote().encode()).unwrap();
        let images: [&[u8]; 2] = [b"one", b"two"];
        for ((local, remote), image) in local.segments.iter().zip(&read.segments).zip(images) {
            assert_eq!(remote.block, REMOTE_BLOCK);
            assert_eq!(remote.digest, Some(Digest::of(image)));
            let back = SealedSegment {
                block: local.block,
                digest: None,
                ..remote.clone()
            };
            assert_eq!(format!("{back:?}"), format!("{local:?}"));
        }
    }

    #[test]
    fn remote_segments_without_digests_are_carried_on_as_they_are() {
        let mut before = remote();
        for segment in &mut before.segments {
            segment.digest = None;
        }
        let bytes = before.encode();
        assert_eq!(bytes[0], VERSION);
        let read = PartIndex::decode(&bytes).unwrap();
        assert_eq!(format!("{read:?}"), format!("{before:?}"));
    }

    #[test]
    fn what_the_version_without_stored_columns_wrote_is_read() {
        let mut index = sample();
        let bytes = index.encode();
        let segment_bytes = (bytes.len() - 11) / 2;
        let stored_bytes = 3 * 13;
        let mut before = vec![VERSION_BARE];
        before.extend_from_slice(&bytes[1..11]);
        for segment in bytes[11..].chunks(segment_bytes) {
            before.extend_from_slice(&segment[..segment_bytes - stored_bytes]);
        }
        let checksum = xxhash_rust::xxh3::xxh3_64(&before[CHECKED_OFFSET..]) as u32;
        before[1..CHECKED_OFFSET].copy_from_slice(&checksum.to_le_bytes());
        let read = PartIndex::decode(&before).unwrap();
        for segment in &mut index.segments {
            segment.columns = vec![StoredColumn::default(); 3];
        }
        assert_eq!(format!("{read:?}"), format!("{index:?}"));
        // It is carried on as it is.
        let again = PartIndex::decode(&read.encode()).unwrap();
        assert_eq!(format!("{again:?}"), format!("{index:?}"));
    }

    #[test]
    fn damage_is_found() {
        for index in [summed(), remote()] {
            assert_damage_is_found(&index.encode());
        }
    }

    fn assert_damage_is_found(bytes: &[u8]) {
        for length in 0..bytes.len() {
            assert!(PartIndex::decode(&bytes[..length]).is_err());
        }
        for place in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[place] ^= 1;
            assert!(PartIndex::decode(&damaged).is_err(), "byte {place}");
        }
    }

    #[test]
    fn lies_with_a_right_checksum_are_refused() {
        let reseal = |mut bytes: Vec<u8>| {
            let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[CHECKED_OFFSET..]) as u32;
            bytes[1..CHECKED_OFFSET].copy_from_slice(&checksum.to_le_bytes());
            bytes
        };
        let bytes = sample().encode();
        for (place, value) in [(5, 0xff), (8, 0x7f), (9, 0xff), (19, 0), (31, 3)] {
            let mut changed = bytes.clone();
            changed[place] = value;
            assert!(PartIndex::decode(&reseal(changed)).is_err(), "byte {place}");
        }
        let mut backwards = sample();
        backwards.segments.swap(0, 1);
        assert!(PartIndex::decode(&backwards.encode()).is_err());
    }
}
