//! The *place map* of a sealed part: where the rows lie whose numbers index entries know.
//!
//! An index entry names a row by the number that the row had when it was inserted: its *entry
//! number*. Sealing sorts rows and leaves out deleted ones, so a row of a part may lie at another
//! place. The map of a part has one place for each entry number of the part's range. Both count
//! from the first row of the range.
//!
//! Entry numbers are cut into chunks of `CHUNK`. A chunk stores how far each row has moved, that
//! is its place minus its entry number, as bits above the least such distance of the chunk. So rows
//! that kept their order cost nothing, and one place is found by reading at most 8 bytes.
//!
//! All integers are little-endian, nothing is aligned.
//!
//! | bytes | map |
//! |---|---|
//! | for each chunk | the distances above the least one, `width` bits each; all ones: the row is gone |
//! | 7 | zeros, so that 8 bytes can be read at each place |
//! | for each chunk 13 | least distance 8, first byte of the chunk 4, `width` 1 |
//! | 4 | entry numbers |
//! | 4 | checksum: low half of XXH3-64 of the chunks' entries and the count |

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};

/// Entry numbers of a chunk.
const CHUNK: usize = 2048;
/// Stands for the place of a row that is gone.
pub const GONE: u32 = u32::MAX;
const PADDING: usize = 7;
const CHUNK_ENTRY_BYTES: usize = 13;
/// The count and the checksum.
pub const TRAILER_BYTES: usize = 8;
/// A distance needs at most 33 bits, and one more value stands for rows that are gone.
const WIDTH_MAX: u8 = 34;

/// Whether the places of a map are the entry numbers themselves, so that no map is needed.
pub fn is_identity(places: &[u32]) -> bool {
    places
        .iter()
        .enumerate()
        .all(|(number, &place)| place as usize == number)
}

/// The map of these places, by entry number. `None`: it would take more than 4 GiB.
pub fn encode(places: &[u32]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut entries = Vec::with_capacity(places.len().div_ceil(CHUNK) * CHUNK_ENTRY_BYTES);
    for (index, chunk) in places.chunks(CHUNK).enumerate() {
        let first = (index * CHUNK) as i64;
        let distances = || {
            let numbered = chunk.iter().zip(first..);
            numbered.map(|(&place, number)| (place != GONE).then(|| i64::from(place) - number))
        };
        let least = distances().flatten().min().unwrap_or(0);
        let greatest = distances().flatten().max().unwrap_or(0);
        // All ones stand for a row that is gone, so they must not be a distance.
        let span = match greatest - least {
            0 if !chunk.contains(&GONE) => 0,
            distance => distance as u64 + 1,
        };
        let width = (u64::BITS - span.leading_zeros()) as u8;
        entries.extend_from_slice(&least.to_le_bytes());
        entries.extend_from_slice(&u32::try_from(bytes.len()).ok()?.to_le_bytes());
        entries.push(width);
        let values = distances().map(|distance| match distance {
            Some(distance) => (distance - least) as u64,
            None => ones(width),
        });
        pack(values, width, &mut bytes);
    }
    bytes.extend_from_slice(&[0; PADDING]);
    entries.extend_from_slice(&u32::try_from(places.len()).ok()?.to_le_bytes());
    let checksum = xxh3_64(&entries) as u32;
    bytes.extend_from_slice(&entries);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    u32::try_from(bytes.len()).ok()?;
    Some(bytes)
}

/// The number of so many bits, all of which are set.
fn ones(width: u8) -> u64 {
    (1 << width) - 1
}

/// Appends values of `width` bits each, and fills the last byte.
fn pack(values: impl Iterator<Item = u64>, width: u8, bytes: &mut Vec<u8>) {
    let (mut word, mut filled) = (0u128, 0u32);
    for value in values {
        word |= u128::from(value) << filled;
        filled += u32::from(width);
        while filled >= u8::BITS {
            bytes.push(word as u8);
            word >>= u8::BITS;
            filled -= u8::BITS;
        }
    }
    if filled > 0 {
        bytes.push(word as u8);
    }
}

/// The chunks of a map, without their distances. They say where in the map a distance is.
#[derive(Debug)]
pub struct PlaceIndex {
    chunks: Vec<Chunk>,
    numbers: u32,
    /// Bytes of the whole map.
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    least: i64,
    first_byte: u32,
    width: u8,
}

/// Where the distance of one row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    number: u32,
    least: i64,
    width: u8,
    shift: u8,
    first_byte: usize,
}

impl PlaceIndex {
    /// How many bytes at the end of a map [`decode`](Self::decode) needs, by the last
    /// [`TRAILER_BYTES`] of it.
    pub fn bytes_needed(trailer: [u8; TRAILER_BYTES]) -> usize {
        let [a, b, c, d, ..] = trailer;
        let numbers = u32::from_le_bytes([a, b, c, d]) as usize;
        numbers.div_ceil(CHUNK) * CHUNK_ENTRY_BYTES + TRAILER_BYTES
    }

    /// Reads the index of a map from the end of it, as many bytes as are needed.
    pub fn decode(end: &[u8]) -> Result<PlaceIndex> {
        let damaged = Error::PlaceMap;
        let (checked, checksum) = end.split_last_chunk().ok_or(damaged("it is cut short"))?;
        if xxh3_64(checked) as u32 != u32::from_le_bytes(*checksum) {
            return Err(damaged("its checksum differs"));
        }
        let (entries, numbers) = checked
            .split_last_chunk()
            .ok_or(damaged("it is cut short"))?;
        let numbers = u32::from_le_bytes(*numbers);
        if entries.len() != (numbers as usize).div_ceil(CHUNK) * CHUNK_ENTRY_BYTES {
            return Err(damaged("its index has another length"));
        }
        let chunks = entries.chunks_exact(CHUNK_ENTRY_BYTES).map(|entry| {
            let (least, rest) = entry.split_first_chunk::<8>().ok_or(())?;
            let (first_byte, width) = rest.split_first_chunk::<4>().ok_or(())?;
            let chunk = Chunk {
                least: i64::from_le_bytes(*least),
                first_byte: u32::from_le_bytes(*first_byte),
                width: width[0],
            };
            (chunk.width <= WIDTH_MAX).then_some(chunk).ok_or(())
        });
        let chunks: std::result::Result<Vec<Chunk>, ()> = chunks.collect();
        let chunks = chunks.map_err(|()| damaged("a chunk is too wide"))?;
        let distances = chunks.last().map_or(0, |last| {
            let rows = (numbers as usize - 1) % CHUNK + 1;
            last.first_byte as usize + (rows * usize::from(last.width)).div_ceil(8)
        });
        Ok(PlaceIndex {
            chunks,
            numbers,
            bytes: distances + PADDING + end.len(),
        })
    }

    /// Bytes of the whole map.
    pub fn map_bytes(&self) -> usize {
        self.bytes
    }

    /// Entry numbers that the map has places for.
    pub fn numbers(&self) -> u32 {
        self.numbers
    }

    /// Where in the map the place of an entry number is; `None`: the map does not have the number.
    pub fn locate(&self, number: u32) -> Option<Located> {
        if number >= self.numbers {
            return None;
        }
        let chunk = self.chunks[number as usize / CHUNK];
        let bit = number as usize % CHUNK * usize::from(chunk.width);
        Some(Located {
            number,
            least: chunk.least,
            width: chunk.width,
            shift: (bit % 8) as u8,
            first_byte: chunk.first_byte as usize + bit / 8,
        })
    }

    /// The places of all entry numbers, from the bytes of the whole map.
    pub fn places(&self, map: &[u8]) -> Result<Vec<u32>> {
        let located = (0..self.numbers).filter_map(|number| self.locate(number));
        let place = |located: Located| {
            let bytes = map.get(located.first_byte..).and_then(<[u8]>::first_chunk);
            let bytes = bytes.ok_or(Error::PlaceMap("it is cut short"))?;
            Ok(located.place(*bytes).unwrap_or(GONE))
        };
        located.map(place).collect()
    }
}

impl Located {
    /// The first of the 8 bytes of the map that hold it.
    pub fn first_byte(self) -> usize {
        self.first_byte
    }

    /// The place, from these 8 bytes; `None`: the row is gone.
    pub fn place(self, bytes: [u8; 8]) -> Option<u32> {
        let value = u64::from_le_bytes(bytes) >> self.shift & ones(self.width);
        let distance = self.least.checked_add(i64::try_from(value).ok()?)?;
        let place = u32::try_from(distance.checked_add(i64::from(self.number))?).ok()?;
        let is_gone = self.width > 0 && value == ones(self.width);
        (!is_gone).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn index_of(map: &[u8]) -> PlaceIndex {
        let trailer = *map.last_chunk().unwrap();
        let needed = PlaceIndex::bytes_needed(trailer);
        PlaceIndex::decode(&map[map.len() - needed..]).unwrap()
    }

    fn check(places: &[u32]) -> usize {
        let map = encode(places).unwrap();
        let index = index_of(&map);
        assert_eq!(index.map_bytes(), map.len());
        assert_eq!(index.numbers() as usize, places.len());
        assert_eq!(index.places(&map).unwrap(), places);
        assert_eq!(index.locate(places.len() as u32), None);
        map.len()
    }

    #[test]
    fn rows_that_kept_their_order_take_no_bits() {
        let identity: Vec<u32> = (0..10_000).collect();
        assert!(is_identity(&identity));
        assert_eq!(
            check(&identity),
            PADDING + 5 * CHUNK_ENTRY_BYTES + TRAILER_BYTES
        );
        let behind: Vec<u32> = (7..5_000).collect();
        assert!(!is_identity(&behind));
        assert_eq!(
            check(&behind),
            PADDING + 3 * CHUNK_ENTRY_BYTES + TRAILER_BYTES
        );
    }

    #[test]
    fn rows_that_are_gone_are_told_from_all_others() {
        for places in [
            vec![],
            vec![GONE],
            vec![GONE; 5_000],
            vec![0, GONE, 1, 2, GONE, 3],
            vec![3, 2, 1, 0],
            vec![u32::MAX - 1, GONE, 0],
        ] {
            check(&places);
        }
    }

    #[test]
    fn series_that_were_scraped_in_turn_take_the_bits_of_their_part() {
        let (series, scrapes) = (100, 1_000);
        let place = |number: u32| number % series * scrapes + number / series;
        let places: Vec<u32> = (0..series * scrapes).map(place).collect();
        assert!(check(&places) <= places.len() * 18 / 8 + 1_000);
    }

    #[test]
    fn damage_is_found() {
        let map = encode(&[2, 1, GONE, 0]).unwrap();
        let end = map.len() - (CHUNK_ENTRY_BYTES + TRAILER_BYTES);
        for at in end..map.len() {
            let mut damaged = map.clone();
            damaged[at] ^= 1;
            assert!(PlaceIndex::decode(&damaged[end..]).is_err(), "byte {at}");
        }
        assert!(PlaceIndex::decode(&map[end + 1..]).is_err());
        assert!(PlaceIndex::decode(&[]).is_err());
        assert!(index_of(&map).places(&map[..4]).is_err());
    }

    proptest! {
        #[test]
        fn every_place_comes_back(
            order in proptest::collection::vec(any::<u16>(), 0..6_000),
            gone in proptest::collection::vec(any::<bool>(), 6_000),
        ) {
            let mut rows: Vec<usize> = (0..order.len()).filter(|&row| !gone[row]).collect();
            rows.sort_by_key(|&row| order[row]);
            let mut places = vec![GONE; order.len()];
            for (place, &row) in rows.iter().enumerate() {
                places[row] = place as u32;
            }
            check(&places);
        }
    }
}
