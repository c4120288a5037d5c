//! Arbitrary bytes are refused or read, and never cause a panic.

use proptest::prelude::*;

use super::super::format::{CHECKED_AT, CHECKSUM_AT, checksum};
use super::super::{DecodedVector, EncodedLane, encode_lane};
use super::any_column;
use crate::column::Column;
use crate::error::Error;
use crate::kind::LaneKind;
use crate::limits::VECTOR_ROWS;
use crate::test_support::{FLOAT8, INT8, any_kind, build, cases};

/// Reads all there is of bytes that may be a lane.
fn read(bytes: &[u8], kind: LaneKind) {
    let opened = EncodedLane::open(bytes, kind);
    let Ok(lane) = EncodedLane::reopen(bytes, kind) else {
        assert!(opened.is_err());
        return;
    };
    let mut vector = DecodedVector::new();
    for index in 0..lane.vectors().min(4) {
        lane.decode_vector(index, &mut vector);
        assert_eq!(vector.rows(), lane.vector_rows(index));
        lane.constant(index);
        lane.repeats(index).into_iter().flatten().for_each(drop);
        lane.zone(index);
    }
    for row in (0..lane.rows().min(2 * VECTOR_ROWS)).step_by(61) {
        let point = lane.point(row);
        assert!(point.is_ok() || opened.is_err());
    }
    lane.encodings();
    let mut column = Column::new(kind);
    let rows = lane.rows().min(2 * VECTOR_ROWS);
    let decoded = lane.decode(0..rows, &mut column);
    if opened.is_ok() {
        assert_eq!(decoded, Ok(()));
    }
}

fn repair(bytes: &mut [u8]) {
    if bytes.len() > CHECKED_AT {
        let checksum = checksum(bytes);
        bytes[CHECKSUM_AT..CHECKED_AT].copy_from_slice(&checksum.to_le_bytes());
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn damaged_lanes_do_no_harm(
        (kind, values) in any_column(),
        other in any_kind(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let mut bytes = encode_lane(&build(kind, &values), &[40, 90, 130]).unwrap();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        read(&bytes, kind);
        repair(&mut bytes);
        read(&bytes, kind);
        read(&bytes, other);
    }

    #[test]
    fn any_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..200), rows in 0..5000_u32, class in 0..8_u8, kind in any_kind()) {
        if bytes.len() > 20 {
            bytes[0] = 1;
            bytes[5] = class;
            if let LaneKind::Fixed { width, .. } = kind {
                bytes[6..8].copy_from_slice(&width.to_le_bytes());
            }
            bytes[8..12].copy_from_slice(&rows.to_le_bytes());
            bytes[12..16].fill(0);
            let end = bytes.len() as u32 / 2;
            bytes[20..].iter_mut().zip(end.to_le_bytes()).for_each(|(byte, new)| *byte = new);
        }
        repair(&mut bytes);
        read(&bytes, kind);
    }
}

#[test]
fn every_damaged_byte_is_noticed() {
    let numbers: Vec<_> = (0..200_i64)
        .map(|row| Some((row * row).to_ne_bytes().to_vec()))
        .collect();
    let good = encode_lane(&build(INT8, &numbers), &[]).unwrap();
    assert!(EncodedLane::open(&good, INT8).is_ok());
    for place in 0..good.len() {
        let mut bad = good.clone();
        bad[place] ^= 0x10;
        assert!(EncodedLane::open(&bad, INT8).is_err(), "byte {place}");
        let short = EncodedLane::open(&good[..place], INT8).map(|_| ());
        assert!(matches!(short, Err(Error::EncodedLane(_))), "{place} bytes");
    }
}

#[test]
fn a_block_that_rises_otherwise_than_it_says_is_refused() {
    let last_row = VECTOR_ROWS as i64 - 1;
    let noise = |row: i64| (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
    let number = |row: i64| row * 100 + noise(row) as i64;
    let encoded = |last: i64| {
        let number = |row| if row == last_row { last } else { number(row) };
        let numbers: Vec<_> = (0..=last_row)
            .map(|row| Some(number(row).to_ne_bytes().to_vec()))
            .collect();
        encode_lane(&build(INT8, &numbers), &[]).unwrap()
    };
    let last = number(last_row);
    let (one, other) = (encoded(last), encoded(last + 1));
    assert_eq!(one.len(), other.len());
    // The rise of one in the other: it is the first byte but for the checksum in which they differ.
    let differs = |place: &usize| *place >= CHECKED_AT && one[*place] != other[*place];
    let place = (0..one.len()).find(differs).unwrap();
    let mut bytes = one.clone();
    bytes[place] = other[place];
    repair(&mut bytes);
    let refused = EncodedLane::open(&bytes, INT8).map(|_| ());
    let reason = "a rising block does not rise as it says";
    assert_eq!(refused, Err(Error::EncodedLane(reason)));
}

#[test]
fn an_outlier_past_its_block_is_refused() {
    let tenths = |row| Some((f64::from(row * 7919 % 101) / 10.0).to_ne_bytes().to_vec());
    let mut values: Vec<_> = (0..64_u32).map(tenths).collect();
    values[63] = Some(f64::NAN.to_ne_bytes().to_vec());
    let mut bytes = encode_lane(&build(FLOAT8, &values), &[]).unwrap();
    let gap = bytes.iter().rposition(|&byte| byte == 63).unwrap();
    bytes[gap] = 64;
    repair(&mut bytes);
    let refused = EncodedLane::open(&bytes, FLOAT8).map(|_| ());
    assert_eq!(
        refused,
        Err(Error::EncodedLane("an outlier is outside its block"))
    );
}
