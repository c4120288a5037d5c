//! Where the bytes of a part lie: the images of its segments, and its index.
//!
//! ```text
//! image 0   page page page ─┐ rest
//! image 1   page page ──────┤ rest       whole pages lie over consecutive blocks from the segment's block on
//! image 2   ────────────────┤ rest       an image of less than a page is a rest alone, and has no block
//!                           ▼
//! stream    4 bytes: length of the index │ index │ rest of image 0 │ rest of image 1 │ … │ place map
//! ```
//! The *rest* of an image is its last bytes, which do not fill a page. The stream also lies over
//! consecutive blocks, and the part's entry names it. So only one page of a part is not full. With
//! a last page for each image, images of some 50 kB would waste a twelfth of their space.
//!
//! A part with this form is *packed*. In a part that is not packed, all bytes of an image lie on pages
//! of its own, and the stream is the index alone. This is the form of parts whose images are in object
//! storage, and of parts that were sealed before packed parts existed.
//!
//! The stream of a mapped part ends with its place map ([`lanes_columnar::place_map`]), whether the
//! part is packed or not.

use std::ops::Range;
use std::rc::Rc;

use crate::pg::table::OpenTable;
use lanes_columnar::arena::RunEntry;
use lanes_columnar::digest::Digest;
use lanes_columnar::part::PartIndex;
use lanes_columnar::place_map::{PlaceIndex, TRAILER_BYTES};

use super::part::PartEntry;
use super::{data_page, extent, part};
use crate::error;

/// Bytes of the length before the index.
const LENGTH_BYTES: usize = size_of::<u32>();

/// The number of bytes of an image that lie on pages of its own.
pub fn own_bytes(part: &PartEntry, image: u32) -> usize {
    let image = image as usize;
    match part.is_packed() {
        true => image - image % data_page::STREAM_BYTES,
        false => image,
    }
}

/// Writes the whole pages of an image and appends its last bytes to `rests`. Returns the first
/// block, or 0 if there are no whole pages.
pub fn write_image(table: OpenTable<'_>, image: &[u8], rests: &mut Vec<u8>) -> u32 {
    let (pages, rest) = image.split_at(image.len() - image.len() % data_page::STREAM_BYTES);
    rests.extend_from_slice(rest);
    if pages.is_empty() {
        return 0;
    }
    let blocks = extent::allocate(table, data_page::blocks_for(pages.len()));
    data_page::write(table, blocks, pages);
    blocks.first
}

/// The bytes after the index in the stream of a part.
#[derive(Default)]
pub struct BehindIndex {
    /// The last bytes of a packed part's images; `None`: the part is not packed.
    pub rests: Option<Vec<u8>>,
    /// The place map of a mapped part.
    pub map: Option<Vec<u8>>,
}

/// The stream of a part. It is empty for a part without segments.
pub fn stream(index: &PartIndex, behind: &BehindIndex) -> Vec<u8> {
    if index.segments.is_empty() {
        return Vec::new();
    }
    let index = index.encode();
    let map = behind.map.as_deref().unwrap_or_default();
    match &behind.rests {
        None => [&index, map].concat(),
        Some(rests) => {
            let length = (index.len() as u32).to_le_bytes();
            [&length[..], &index, rests, map].concat()
        }
    }
}

/// Writes a stream. Returns its first block and its bytes, 0 and 0 for an empty stream.
pub fn write_stream(table: OpenTable<'_>, stream: &[u8]) -> (u32, u32) {
    if stream.is_empty() {
        return (0, 0);
    }
    let blocks = extent::allocate(table, data_page::blocks_for(stream.len()));
    data_page::write(table, blocks, stream);
    (blocks.first, stream.len() as u32)
}

/// Reads a part's index. A part without one has no segments.
pub fn read_index(table: OpenTable<'_>, part: &PartEntry) -> PartIndex {
    match try_read_index(table, part) {
        Ok(index) => index,
        Err(failure) => error::corrupt(&format!(
            "the index of the part at row {}: {failure}",
            part.first_row
        )),
    }
}

fn try_read_index(table: OpenTable<'_>, part: &PartEntry) -> Result<PartIndex, String> {
    if part.bytes == 0 {
        return Ok(PartIndex::default());
    }
    let mut bytes = Vec::new();
    {
        let place = within_stream(table, part)?;
        data_page::read(table, part.block, place, &mut bytes)?;
    }
    PartIndex::decode(&bytes).map_err(|failure| failure.to_string())
}

/// The place of the index in a part's stream. The last bytes of images begin at its end.
fn within_stream(table: OpenTable<'_>, part: &PartEntry) -> Result<Range<usize>, String> {
    let total = part.bytes as usize;
    if !part.is_packed() {
        return Ok(0..total - map_bytes(table, part)?);
    }
    let mut length = Vec::with_capacity(LENGTH_BYTES);
    data_page::read(table, part.block, 0..LENGTH_BYTES.min(total), &mut length)?;
    length
        .first_chunk()
        .and_then(|length| LENGTH_BYTES.checked_add(u32::from_le_bytes(*length) as usize))
        .filter(|&end| end <= total)
        .map(|end| LENGTH_BYTES..end)
        .ok_or_else(|| "it is longer than what holds it".to_owned())
}

/// Reads the bytes after the index in the stream of a part.
pub fn read_behind_index(table: OpenTable<'_>, part: &PartEntry) -> BehindIndex {
    try_read_behind_index(table, part).unwrap_or_else(|failure| {
        error::corrupt(&format!("the part at row {}: {failure}", part.first_row))
    })
}

fn try_read_behind_index(table: OpenTable<'_>, part: &PartEntry) -> Result<BehindIndex, String> {
    let mut behind = BehindIndex::default();
    let map_from = part.bytes as usize - map_bytes(table, part)?;
    if part.is_packed() {
        let from = within_stream(table, part)?.end;
        let mut rests = Vec::new();
        data_page::read(table, part.block, from..map_from, &mut rests)?;
        behind.rests = Some(rests);
    }
    if part.is_mapped() {
        behind.map = Some(read_place_map(table, part)?);
    }
    Ok(behind)
}

/// The bytes of a part's place map; 0: it has none.
fn map_bytes(table: OpenTable<'_>, part: &PartEntry) -> Result<usize, String> {
    match part.is_mapped() {
        true => Ok(try_read_place_index(table, part)?.map_bytes()),
        false => Ok(0),
    }
}

/// Reads the index of a mapped part's place map.
pub fn read_place_index(table: OpenTable<'_>, part: &PartEntry) -> PlaceIndex {
    try_read_place_index(table, part).unwrap_or_else(|failure| damaged_map(part, &failure))
}

fn damaged_map(part: &PartEntry, failure: &str) -> ! {
    error::corrupt(&format!(
        "the place map of the part at row {}: {failure}",
        part.first_row
    ))
}

fn try_read_place_index(table: OpenTable<'_>, part: &PartEntry) -> Result<PlaceIndex, String> {
    let total = part.bytes as usize;
    let from_end = |bytes: usize| {
        let from = total.checked_sub(bytes).ok_or("it is cut short")?;
        let mut read = Vec::with_capacity(bytes);
        data_page::read(table, part.block, from..total, &mut read).map(|()| read)
    };
    let trailer = from_end(TRAILER_BYTES)?;
    let trailer = trailer.last_chunk().ok_or("it is cut short")?;
    let index = PlaceIndex::decode(&from_end(PlaceIndex::bytes_needed(*trailer))?)
        .map_err(|failure| failure.to_string())?;
    match index.map_bytes() <= total {
        true => Ok(index),
        false => Err("it is cut short".to_owned()),
    }
}

fn read_place_map(table: OpenTable<'_>, part: &PartEntry) -> Result<Vec<u8>, String> {
    let total = part.bytes as usize;
    let mut map = Vec::new();
    data_page::read(
        table,
        part.block,
        total - map_bytes(table, part)?..total,
        &mut map,
    )?;
    Ok(map)
}

/// The places of all rows of a mapped part, by entry number. Both count from the part's first row.
pub fn read_places(table: OpenTable<'_>, part: &PartEntry) -> Vec<u32> {
    let places = read_place_map(table, part).and_then(|map| {
        let index = try_read_place_index(table, part)?;
        index.places(&map).map_err(|failure| failure.to_string())
    });
    places.unwrap_or_else(|failure| damaged_map(part, &failure))
}

/// The place of one row of a mapped part, by its entry number; `None`: the row is gone. Both are
/// counted from the part's first row.
pub fn read_place(
    table: OpenTable<'_>,
    part: &PartEntry,
    index: &PlaceIndex,
    number: u32,
) -> Option<u32> {
    let located = index.locate(number)?;
    let map_from = part.bytes as usize - index.map_bytes();
    let mut bytes = [0; 8];
    let from = map_from + located.first_byte();
    if let Err(failure) = data_page::copy(table, part.block, from, &mut bytes) {
        damaged_map(part, &failure);
    }
    located.place(bytes)
}

/// Appends the image of a local sealed segment to `image`. The segment is named by its place in its
/// part's index.
pub fn read_image(
    table: OpenTable<'_>,
    part: &PartEntry,
    index: &PartIndex,
    place: usize,
    image: &mut Vec<u8>,
) -> Result<(), String> {
    let segment = &index.segments[place];
    let own = own_bytes(part, segment.bytes);
    if own > 0 {
        data_page::read(table, segment.block, 0..own, image)?;
    }
    let rest = segment.bytes as usize - own;
    if rest == 0 {
        return Ok(());
    }
    let at = rest_at(table, part, index, place)?;
    if at + rest > part.bytes as usize {
        return Err("its part is cut short".to_owned());
    }
    data_page::read(table, part.block, at..at + rest, image)
}

/// Where the bytes of an image of a packed part lie.
pub struct ImagePlace {
    /// The first of the blocks with its whole pages, and their bytes.
    block: u32,
    own: usize,
    /// The first block of the stream with its last bytes, and where these begin there.
    stream: u32,
    rest_at: usize,
}

impl ImagePlace {
    /// The place of the image of a run that is a segment of a packed part.
    ///
    /// # Errors
    /// If the part is gone or damaged.
    pub fn of_run(table: OpenTable<'_>, run: &RunEntry) -> Result<ImagePlace, String> {
        let (part, index) = part_of_run(table, run)?;
        let place = place_of(&index, run)?;
        let segment = &index.segments[place];
        Ok(ImagePlace {
            block: segment.block,
            own: own_bytes(&part, segment.bytes),
            stream: part.block,
            rest_at: rest_at(table, &part, &index, place)?,
        })
    }

    /// Copies a range of the image's bytes. The pages stay in shared buffers.
    ///
    /// # Errors
    /// If a page is one of another run by now.
    pub fn copy(
        &self,
        table: OpenTable<'_>,
        range: Range<usize>,
        into: &mut [u8],
    ) -> Result<(), String> {
        let in_pages = range.end.min(self.own).saturating_sub(range.start);
        let (pages, rest) = into.split_at_mut(in_pages);
        if !pages.is_empty() {
            data_page::copy(table, self.block, range.start, pages)?;
        }
        let from = self.rest_at + (range.start + in_pages).saturating_sub(self.own);
        data_page::copy(table, self.stream, from, rest)
    }
}

/// The part of a run that is a segment of it, and the part's index.
fn part_of_run(table: OpenTable<'_>, run: &RunEntry) -> Result<(PartEntry, Rc<PartIndex>), String> {
    let part = part::of_run(table, run).ok_or("its part is not there any more")?;
    let index = match part::known_index(table, run) {
        Some(index) => index,
        None => Rc::new(try_read_index(table, &part)?),
    };
    Ok((part, index))
}

/// Where the last bytes of an image begin in the stream of its packed part.
fn rest_at(
    table: OpenTable<'_>,
    part: &PartEntry,
    index: &PartIndex,
    place: usize,
) -> Result<usize, String> {
    let before = index.segments[..place].iter();
    let before = before.map(|other| other.bytes as usize - own_bytes(part, other.bytes));
    Ok(within_stream(table, part)?.end + before.sum::<usize>())
}

/// Appends the image of a run that is a segment of a packed part.
pub fn read_image_of_run(
    table: OpenTable<'_>,
    run: &RunEntry,
    image: &mut Vec<u8>,
) -> Result<(), String> {
    let (part, index) = part_of_run(table, run)?;
    let place = place_of(&index, run)?;
    read_image(table, &part, &index, place, image)
}

/// The digest of the image of a run that is a segment of a remote part. There is none if the part
/// was moved to object storage before digests existed.
pub fn digest_of_run(table: OpenTable<'_>, run: &RunEntry) -> Result<Option<Digest>, String> {
    let index = match part::known_index(table, run) {
        Some(index) => index,
        None => {
            let part = part::of_run(table, run).ok_or("its part is not there any more")?;
            Rc::new(try_read_index(table, &part)?)
        }
    };
    Ok(index.segments[place_of(&index, run)?].digest)
}

/// The place of a run among the segments of its part.
fn place_of(index: &PartIndex, run: &RunEntry) -> Result<usize, String> {
    index
        .segments
        .binary_search_by_key(&run.first_row, |segment| segment.first_row)
        .map_err(|_| "its part does not have it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::part::FLAG_PACKED;
    use lanes_columnar::part::SealedSegment;

    fn part(flags: u32) -> PartEntry {
        PartEntry {
            first_row: 0,
            end_row: 10,
            rows: 10,
            next_tombstone: 0,
            origin: 1,
            number: 1,
            block: 7,
            bytes: 100,
            xid: 0,
            flags,
        }
    }

    fn index(bytes: &[u32]) -> PartIndex {
        let segment = |(place, &bytes): (usize, &u32)| SealedSegment {
            first_row: 10 * place as u64,
            rows: 10,
            block: 0,
            bytes,
            zones: Vec::new(),
            columns: Vec::new(),
            digest: None,
        };
        PartIndex {
            segments: bytes.iter().enumerate().map(segment).collect(),
        }
    }

    #[test]
    fn images_of_packed_parts_have_whole_pages_of_their_own() {
        let page = data_page::STREAM_BYTES as u32;
        for (image, own) in [(0, 0), (1, 0), (page, 1), (page + 1, 1), (3 * page - 1, 2)] {
            assert_eq!(own_bytes(&part(FLAG_PACKED), image), (own * page) as usize);
            assert_eq!(own_bytes(&part(0), image), image as usize);
        }
    }

    #[test]
    fn a_stream_is_the_index_with_what_is_left_of_the_images_behind() {
        let index = index(&[3, 5]);
        let behind = |rests: Option<&[u8]>, map: Option<&[u8]>| BehindIndex {
            rests: rests.map(<[u8]>::to_vec),
            map: map.map(<[u8]>::to_vec),
        };
        let alone = stream(&index, &behind(None, None));
        let packed = stream(&index, &behind(Some(b"restrest"), Some(b"map")));
        assert_eq!(alone, index.encode());
        let (length, after) = packed.split_first_chunk().unwrap();
        assert_eq!(u32::from_le_bytes(*length) as usize, alone.len());
        assert_eq!(after, [&alone[..], b"restrest", b"map"].concat());
        let mapped = stream(&index, &behind(None, Some(b"map")));
        assert_eq!(mapped, [&alone[..], b"map"].concat());
        assert!(stream(&PartIndex::default(), &behind(Some(&[]), None)).is_empty());
    }
}
