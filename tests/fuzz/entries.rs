//! The entries of the fuzz targets: each takes any bytes and panics only if an invariant is
//! violated. The fuzz targets and the replay of their corpus in `tests/fuzz_replay` share them.
#![allow(dead_code, reason = "each fuzz target uses one of these")]

#[path = "promql.rs"]
pub mod promql;

use lanes_columnar::arena::KeptImage;
use lanes_columnar::encoding::{DecodedVector, EncodedLane};
use lanes_columnar::kind::Number;
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::part::PartIndex;
use lanes_columnar::streamed::{ImageBytes, SealedRun, StreamMemory, Streamed};
use lanes_columnar::{Bound, Column, Image, Lane, LaneData, LaneKind, Zone};
use std::ops::Range;

/// Reads a batch in the wire format.
pub fn batch(data: &[u8]) {
    let _ = lanes_wire::exercise(data);
}

/// Reads a remote-write request, compressed or not.
pub fn remote_write(data: &[u8]) {
    lanes_gateway::receive::fuzz::exercise(data);
}

/// Reads the parameters of requests to the query API.
pub fn query_parameters(data: &[u8]) {
    lanes_gateway::query::fuzz::exercise_parameters(data);
}

/// Reads a remote read request, compressed or not.
pub fn remote_read(data: &[u8]) {
    lanes_gateway::query::fuzz::exercise_remote_read(data);
}

/// Reads events as JSON.
pub fn events_json(data: &[u8]) {
    lanes_gateway::events::fuzz::exercise_json(data);
}

/// Reads events as an Arrow stream.
pub fn events_arrow(data: &[u8]) {
    lanes_gateway::events::fuzz::exercise_arrow(data);
}

/// The position of an image's checksum, which covers everything after it.
const CHECKSUM: std::ops::Range<usize> = 1..5;

/// Reads the image of a run as every kind of column, first unchanged and then with a corrected
/// checksum.
pub fn image(data: &[u8]) {
    read_image(data);
    read_image(&repaired(data));
}

fn repaired(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    if bytes.len() >= CHECKSUM.end {
        let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[CHECKSUM.end..]) as u32;
        bytes[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    }
    bytes
}

/// Reads the index of a part, first unchanged and then with a corrected checksum. Writing what was
/// read has to produce the same index.
pub fn part_index(data: &[u8]) {
    for bytes in [data.to_vec(), repaired(data)] {
        if let Ok(index) = PartIndex::decode(&bytes) {
            let again = PartIndex::decode(&index.encode());
            assert_eq!(
                format!("{:?}", again.map(|index| index.segments)),
                format!("Ok({:?})", index.segments)
            );
        }
    }
}

/// Reads an entry of the log in the object store.
pub fn log_entry(data: &[u8]) {
    lanes_gateway::objects::fuzz::exercise_log_entry(data);
}

/// Reads an encoded lane of a sealed segment as every kind of column, first unchanged and then with
/// a corrected checksum, also as if it had been verified before.
pub fn encoded_lane(data: &[u8]) {
    for bytes in [data.to_vec(), repaired(data)] {
        for kind in KINDS.into_iter().chain(NUMBERS) {
            read_encoded_lane(&bytes, kind);
        }
    }
}

/// The number of vectors of a lane that are read: a few bytes can encode thousands.
const VECTORS_MAX: usize = 4;

fn read_encoded_lane(data: &[u8], kind: LaneKind) {
    let opened = EncodedLane::open(data, kind);
    let Ok(lane) = EncodedLane::reopen(data, kind) else {
        assert!(opened.is_err(), "a lane that opens once opens again");
        return;
    };
    let mut vector = DecodedVector::new();
    let mut rows = 0;
    for index in 0..lane.vectors().min(VECTORS_MAX) {
        if lane.try_decode_vector(index, &mut vector).is_ok()
            && let Some(zone) = lane.zone(index)
            && opened.is_ok()
        {
            let rows = 0..lane.vector_rows(index);
            // SAFETY: the rows are those of the vector, which nothing changes meanwhile.
            unsafe { check_zone(&zone, kind, vector.lane(None), vector.codes(), rows) };
        }
        lane.decode_vector(index, &mut vector);
        assert_eq!(vector.rows(), lane.vector_rows(index));
        rows += vector.rows();
        if let Some(repeats) = lane.repeats(index)
            && opened.is_ok()
        {
            let covered: usize = repeats.map(|(_, rows)| rows).sum();
            assert_eq!(covered, vector.rows(), "repeats cover all rows of a vector");
        }
        std::hint::black_box(lane.constant(index));
    }
    std::hint::black_box(lane.vector_encodings(0));
    assert!(rows == lane.rows() || rows == VECTORS_MAX * VECTOR_ROWS);
    let mut column = Column::new(kind);
    let decoded = lane.decode(0..rows, &mut column);
    if opened.is_ok() {
        assert_eq!(decoded, Ok(()), "an opened lane decodes");
        assert_eq!(column.rows(), rows);
        read_column(&column);
    }
}

/// Fails if a zone excludes a value that exists. Codes are those of the lane's own dictionary, if
/// it has one.
///
/// # Safety
/// The rows are the lane's, and can be read.
unsafe fn check_zone(zone: &Zone, kind: LaneKind, lane: Lane, codes: &[u32], rows: Range<usize>) {
    let mut non_null = 0;
    for row in rows {
        // SAFETY: the row is the lane's, as this function requires.
        if unsafe { lane.is_null(row) } && (codes.is_empty() || !lane.validity.is_null()) {
            continue;
        }
        non_null += 1;
        if let (Some(zone), Some(&code)) = (zone.codes, codes.get(row)) {
            assert!(
                zone.may_have(code),
                "a zone excludes code {code} of row {row}"
            );
        }
        if let (LaneKind::Fixed { width, .. }, &(Bound::Signed(least), Bound::Signed(greatest))) =
            (kind, &(zone.minimum, zone.maximum))
        {
            // SAFETY: the value of a row that is not NULL has this many bytes.
            let bytes = unsafe { std::slice::from_raw_parts(lane.pointer(row), width.into()) };
            let mut word = if bytes[bytes.len() - 1] >= 0x80 {
                [0xff; 8]
            } else {
                [0; 8]
            };
            word[..bytes.len()].copy_from_slice(bytes);
            let value = i64::from_le_bytes(word);
            assert!(
                (least..=greatest).contains(&value),
                "a zone of {least} to {greatest} excludes {value} of row {row}"
            );
        }
        if let (LaneKind::Fixed { width, .. }, &(Bound::Float(least), Bound::Float(greatest))) =
            (kind, &(zone.minimum, zone.maximum))
        {
            // SAFETY: the row is not NULL, and such a zone is of floats of 4 or 8 bytes.
            let value = unsafe {
                match width {
                    4 => f64::from(lane.pointer(row).cast::<f32>().read_unaligned()),
                    _ => lane.pointer(row).cast::<f64>().read_unaligned(),
                }
            };
            assert!(
                (least..=greatest).contains(&value),
                "a zone of {least} to {greatest} excludes {value} of row {row}"
            );
        }
    }
    assert!(
        zone.non_null >= non_null,
        "a zone counts fewer values than there are"
    );
}

/// The bytes before the image, which encode the [`Plan`].
const PLAN_BYTES: usize = 8;
/// The number of ranges of places that are read, and their greatest length: a few bytes can encode
/// thousands of rows.
const RANGES: usize = 3;
const RANGE_ROWS_MAX: usize = VECTOR_ROWS + 100;

/// Reads a sealed image vector by vector, according to a [`Plan`], and compares it with the same
/// image decoded at once.
pub fn streamed(data: &[u8]) {
    let Some((plan, image)) = data.split_first_chunk::<PLAN_BYTES>() else {
        return;
    };
    let plan = Plan::of(*plan);
    // The unchanged checksum would keep most inputs from reaching the tested code.
    for bytes in [image.to_vec(), repaired(image)] {
        read_streamed(&plan, &bytes);
    }
}

/// How an image is read.
///
/// | byte | meaning |
/// |---|---|
/// | 0 | bit 0: the checksum is not verified; bit 1: the run is present twice; bit 2: a missing column has a value |
/// | 1 to 4 | the kind of each requested column |
/// | 5 | the number of rows before the range that is read, in 256ths of all rows |
/// | 6 | the number of places before the first row |
/// | 7 | the start of the ranges that are read, in 256ths of all places |
struct Plan {
    is_kept: bool,
    is_twice: bool,
    has_missing: bool,
    kinds: Vec<LaneKind>,
    before: usize,
    gap: usize,
    start: usize,
}

impl Plan {
    fn of(bytes: [u8; PLAN_BYTES]) -> Plan {
        let kind = |&byte: &u8| {
            let all = KINDS.into_iter().chain(NUMBERS);
            all.cycle().nth(byte.into()).unwrap_or(LaneKind::Absent)
        };
        Plan {
            is_kept: bytes[0] & 1 != 0,
            is_twice: bytes[0] & 2 != 0,
            has_missing: bytes[0] & 4 != 0,
            kinds: bytes[1..5].iter().map(kind).collect(),
            before: bytes[5].into(),
            gap: bytes[6].into(),
            start: bytes[7].into(),
        }
    }

    /// Returns a value for the rows of a column that the image does not have.
    fn missing(&self, kind: LaneKind) -> Option<Vec<u8>> {
        let bytes = match kind {
            LaneKind::Absent => return None,
            LaneKind::Bool => 1,
            LaneKind::Fixed { width, .. } => width.into(),
            LaneKind::Varlena { .. } => 3,
        };
        self.has_missing.then(|| vec![1; bytes])
    }
}

fn read_streamed(plan: &Plan, bytes: &[u8]) {
    let image = if plan.is_kept {
        Image::reparse(bytes)
    } else {
        Image::parse(bytes)
    };
    // The rows of an invalid image are unknown; the image has to be refused.
    let image_rows = image.as_ref().map_or(1, Image::rows);
    let rows = image_rows * plan.before / 256..image_rows;
    let mut places = 0;
    let mut firsts = Vec::new();
    let mut runs = Vec::new();
    for _ in 0..=usize::from(plan.is_twice) {
        places += plan.gap;
        firsts.push(places);
        runs.push(SealedRun {
            image: if plan.is_kept {
                // SAFETY: the bytes outlive everything that is opened here.
                let bytes = unsafe { std::mem::transmute::<&[u8], &'static [u8]>(bytes) };
                ImageBytes::kept_for_ever(KeptImage::without_zones(bytes))
            } else {
                ImageBytes::Own(bytes.to_vec())
            },
            image_rows,
            rows: rows.clone(),
            place: places,
        });
        places += rows.len();
    }
    let missing: Vec<_> = plan.kinds.iter().map(|&kind| plan.missing(kind)).collect();
    let opened = Streamed::open(StreamMemory::default(), &plan.kinds, &missing, places, runs);
    let (Ok(mut streamed), Ok(image)) = (opened, image) else {
        return;
    };
    let start = places * plan.start / 256;
    for number in 0..RANGES {
        let from = (start + number * VECTOR_ROWS * 3 / 4).min(places);
        let range = from..(from + RANGE_ROWS_MAX).min(places);
        let zones: Vec<_> = (0..plan.kinds.len())
            .map(|column| streamed.zone(column, range.clone()))
            .collect();
        // One column is read before the others, as a filter does.
        let first_column = [number % plan.kinds.len().max(1)];
        let filled = streamed
            .fill(range.clone(), Some(&first_column))
            .and_then(|()| streamed.fill(range.clone(), None));
        if filled.is_err() {
            return;
        }
        for (column, &kind) in plan.kinds.iter().enumerate() {
            let lane = streamed.lane(column);
            let missing = missing[column].as_deref();
            // A damaged lane only has to be read within bounds.
            let is_sound = image
                .sealed_lane(column)
                .is_none_or(|place| EncodedLane::open(&bytes[place], kind).is_ok());
            for &first in &firsts {
                // Returns the run's row at a place.
                let at = |place: usize| rows.start + place.saturating_sub(first).min(rows.len());
                let wanted = at(range.start)..at(range.end);
                let place = range.start.max(first);
                let places = place..place + wanted.len();
                if !is_sound {
                    // SAFETY: these places were filled.
                    places.for_each(|place| unsafe { read_value(lane, place) });
                    continue;
                }
                if let Some(zone) = &zones[column] {
                    // SAFETY: the places were filled.
                    unsafe { check_zone(zone, kind, lane, &[], places) };
                }
                let mut alone = Column::new(kind);
                let decoded = image.decode_range(column, kind, missing, wanted.clone(), &mut alone);
                assert_eq!(decoded, Ok(()), "what was filled decodes");
                for row in 0..wanted.len() {
                    // SAFETY: the place was filled and the row decoded, and both owners are alive.
                    unsafe { assert_same(lane, place + row, alone.lane(), row, kind) };
                }
            }
        }
    }
    std::hint::black_box(streamed.is_mostly_filled());
}

/// Reads a value.
///
/// # Safety
/// The row can be read.
unsafe fn read_value(lane: Lane, row: usize) {
    // SAFETY: the row can be read, as this function requires. A value that is not NULL has at least
    // one byte, except an item, whose length is known to its user.
    unsafe {
        if lane.is_null(row) {
            return;
        }
        match lane.data {
            LaneData::Null => panic!("a value in a column of NULLs"),
            LaneData::Bool(_) => _ = std::hint::black_box(lane.bool(row)),
            LaneData::Fixed { .. } => _ = std::hint::black_box(*lane.pointer(row)),
            LaneData::Offsets { .. } | LaneData::Codes { .. } => {
                assert!(!lane.pointer(row).is_null())
            }
        }
    }
}

/// Fails unless two rows have the same value. Items, whose length is known to their users, are
/// compared by their first byte.
///
/// # Safety
/// Both rows can be read.
unsafe fn assert_same(lane: Lane, row: usize, other: Lane, other_row: usize, kind: LaneKind) {
    // SAFETY: both rows can be read, as this function requires. A value that is not NULL has the
    // bytes of its kind.
    unsafe {
        let is_null = lane.is_null(row);
        assert_eq!(is_null, other.is_null(other_row), "NULL at place {row}");
        if is_null {
            return;
        }
        let bytes = match kind {
            LaneKind::Absent => panic!("a value in a column that was not requested"),
            LaneKind::Bool => {
                assert_eq!(lane.bool(row), other.bool(other_row), "bool at place {row}");
                return;
            }
            LaneKind::Fixed { width, .. } => width.into(),
            LaneKind::Varlena { .. } => 1,
        };
        assert_eq!(
            std::slice::from_raw_parts(lane.pointer(row), bytes),
            std::slice::from_raw_parts(other.pointer(other_row), bytes),
            "value at place {row}"
        );
    }
}

const NUMBERS: [LaneKind; 5] = [signed(2), signed(4), signed(8), float(4), float(8)];

const fn signed(width: u16) -> LaneKind {
    LaneKind::Fixed {
        width,
        stride: width,
        number: Number::Signed,
    }
}

const fn float(width: u16) -> LaneKind {
    LaneKind::Fixed {
        width,
        stride: width,
        number: Number::Float,
    }
}

const KINDS: [LaneKind; 10] = [
    LaneKind::Absent,
    LaneKind::Bool,
    LaneKind::Fixed {
        width: 1,
        stride: 1,
        number: Number::Opaque,
    },
    LaneKind::Fixed {
        width: 2,
        stride: 2,
        number: Number::Opaque,
    },
    LaneKind::Fixed {
        width: 4,
        stride: 4,
        number: Number::Opaque,
    },
    LaneKind::Fixed {
        width: 6,
        stride: 8,
        number: Number::Opaque,
    },
    LaneKind::Fixed {
        width: 8,
        stride: 8,
        number: Number::Opaque,
    },
    LaneKind::Fixed {
        width: 16,
        stride: 16,
        number: Number::Opaque,
    },
    LaneKind::Varlena {
        dictionary: true,
        packed: true,
    },
    LaneKind::Varlena {
        dictionary: false,
        packed: false,
    },
];

fn read_image(data: &[u8]) {
    let Ok(image) = Image::parse(data) else {
        return;
    };
    for number in 0..image.columns() {
        for kind in KINDS {
            let mut column = Column::new(kind);
            column.push_null();
            let decoded = image.decode(number, kind, None, &mut column);
            let rows = if decoded.is_ok() { 1 + image.rows() } else { 1 };
            assert_eq!(
                column.rows(),
                rows,
                "all rows of an image or none are added"
            );
            read_column(&column);
        }
    }
}

fn read_column(column: &Column) {
    for row in 0..column.rows() {
        // SAFETY: the row is one of the column's, which is neither changed nor dropped meanwhile.
        unsafe { read_value(column.lane(), row) };
    }
}
