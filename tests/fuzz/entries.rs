//! What is fuzzed: each entry takes any bytes and panics only if a promise is broken. Shared by the fuzz targets and by the
//! replay of their corpus in `tests/fuzz_replay`.
#![allow(dead_code, reason = "each fuzz target uses one of these")]

use lanes_columnar::encoding::{DecodedVector, EncodedLane};
use lanes_columnar::kind::Number;
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::{Column, Image, LaneData, LaneKind};

/// A batch in the wire format.
pub fn batch(data: &[u8]) {
    let _ = lanes_wire::exercise(data);
}

/// A remote write request, compressed or not.
pub fn remote_write(data: &[u8]) {
    lanes_gateway::receive::fuzz::exercise(data);
}

/// Events as JSON.
pub fn events_json(data: &[u8]) {
    lanes_gateway::events::fuzz::exercise_json(data);
}

/// Events as an Arrow stream.
pub fn events_arrow(data: &[u8]) {
    lanes_gateway::events::fuzz::exercise_arrow(data);
}

/// Where an image's checksum lies, and what it covers: everything after it.
const CHECKSUM: std::ops::Range<usize> = 1..5;

/// An image of a run, as it is and with its checksum put right, read as every kind of column.
pub fn image(data: &[u8]) {
    read_image(data);
    if data.len() >= CHECKSUM.end {
        let mut repaired = data.to_vec();
        let checksum = xxhash_rust::xxh3::xxh3_64(&repaired[CHECKSUM.end..]) as u32;
        repaired[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        read_image(&repaired);
    }
}

/// An encoded lane of a sealed segment, as it is and with its checksum put right, opened and read as every kind of column;
/// also as if it had been opened before.
pub fn encoded_lane(data: &[u8]) {
    let mut bytes = data.to_vec();
    for is_repaired in [false, true] {
        if is_repaired && bytes.len() >= CHECKSUM.end {
            let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[CHECKSUM.end..]) as u32;
            bytes[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        }
        for kind in KINDS.into_iter().chain(NUMBERS) {
            read_encoded_lane(&bytes, kind);
        }
    }
}

/// Vectors of a lane that are read: a few bytes can stand for thousands.
const VECTORS_MAX: usize = 4;

fn read_encoded_lane(data: &[u8], kind: LaneKind) {
    let opened = EncodedLane::open(data, kind);
    let Ok(lane) = EncodedLane::reopen(data, kind) else {
        assert!(opened.is_err(), "a lane opens but does not open again");
        return;
    };
    let mut vector = DecodedVector::new();
    let mut rows = 0;
    for index in 0..lane.vectors().min(VECTORS_MAX) {
        lane.decode_vector(index, &mut vector);
        assert_eq!(vector.rows(), lane.vector_rows(index));
        rows += vector.rows();
        if let Some(runs) = lane.runs(index)
            && opened.is_ok()
        {
            let runs: usize = runs.map(|(_, rows)| rows).sum();
            assert_eq!(runs, vector.rows(), "runs are all rows of a vector");
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
    let lane = column.lane();
    let mut sum = 0_u64;
    for row in 0..column.rows() {
        // SAFETY: the row is one of the column's, which is neither changed nor dropped meanwhile; a value that is not
        // NULL has at least one byte, except an item, whose length its user knows.
        unsafe {
            if lane.is_null(row) {
                continue;
            }
            match lane.data {
                LaneData::Null => panic!("a value in a column of NULLs"),
                LaneData::Bool(_) => sum += u64::from(lane.bool(row)),
                LaneData::Fixed { .. } => sum += u64::from(*lane.pointer(row)),
                LaneData::Offsets { .. } | LaneData::Codes { .. } => {
                    assert!(!lane.pointer(row).is_null());
                }
            }
        }
    }
    std::hint::black_box(sum);
}
