//! Streamed rows equal the sealed rows, whatever is read and in whatever order.

use proptest::prelude::*;

use super::{ImageBytes, Kept, NotStreamed, SealedRun, StreamMemory, Streamed};
use crate::column::Column;
use crate::encoding::Constant;
use crate::error::Error;
use crate::image::{self, encode_sealed};
use crate::kind::{LaneKind, Number};
use crate::lane::{Lane, LaneData};
use crate::limits::VECTOR_ROWS;
use crate::repeats::ValueRepeats;
use crate::test_support::{
    INT8, TEXT, Value, any_kind, any_value, assert_lane, assert_zone, build, cases,
};

/// Rows of a property's run: over one vector and into the next, unless under Miri.
const ROWS_MAX: usize = if cfg!(miri) { 80 } else { VECTOR_ROWS + 300 };

/// A run of a model: the gap before it, how many of its rows lie before the places, how many a
/// series has, and the values of each column.
#[derive(Debug, Clone)]
struct Model {
    gap: usize,
    before: usize,
    series: usize,
    columns: Vec<Vec<Value>>,
}

fn any_model(kinds: &[LaneKind]) -> impl Strategy<Value = Model> + use<> {
    let kinds = kinds.to_vec();
    (0..100_usize, 0..200_usize, 1..ROWS_MAX, 1..40_u32).prop_flat_map(
        move |(gap, before, rows, variety)| {
            let column =
                |&kind: &LaneKind| prop::collection::vec(any_value(kind, variety), before + rows);
            let columns: Vec<_> = kinds.iter().map(column).collect();
            columns.prop_map(move |columns| Model {
                gap,
                before,
                series: 37,
                columns,
            })
        },
    )
}

fn any_case() -> impl Strategy<Value = (Vec<LaneKind>, Vec<Model>)> {
    prop::collection::vec(any_kind(), 1..4).prop_flat_map(|kinds| {
        let models = prop::collection::vec(any_model(&kinds), 1..3);
        (Just(kinds), models)
    })
}

/// The image of columns, cut every `series` rows as if another series began there.
fn seal(kinds: &[LaneKind], columns: &[Vec<Value>], series: usize) -> Vec<u8> {
    let rows = columns[0].len();
    let columns: Vec<Column> = kinds
        .iter()
        .zip(columns)
        .map(|(&kind, values)| build(kind, values))
        .collect();
    let starts: Vec<u32> = (0..rows as u32).step_by(series).skip(1).collect();
    let mut image = Vec::new();
    encode_sealed(&columns, rows, &starts, &mut image).unwrap();
    image
}

/// The runs of models, the place of each, and how many places there are.
fn runs(kinds: &[LaneKind], models: &[Model]) -> (Vec<SealedRun>, usize) {
    let mut places = 0;
    let mut runs = Vec::new();
    for model in models {
        places += model.gap;
        let rows = model.before..model.columns[0].len();
        let image = ImageBytes::Own(seal(kinds, &model.columns, model.series));
        let place = places;
        places += rows.len();
        runs.push(SealedRun {
            image,
            image_rows: rows.end,
            rows,
            place,
        });
    }
    (runs, places)
}

fn open(memory: StreamMemory, kinds: &[LaneKind], models: &[Model]) -> Streamed {
    let (runs, places) = runs(kinds, models);
    match Streamed::open(memory, kinds, &[], places + 7, runs) {
        Ok(streamed) => streamed,
        Err(_) => panic!("all runs are sealed, and readable"),
    }
}

/// Checks the values at some places of one column against the models.
fn assert_places(lane: Lane, kind: LaneKind, column: usize, models: &[Model], places: &[usize]) {
    let mut first = 0;
    for model in models {
        first += model.gap;
        let values = &model.columns[column][model.before..];
        for &place in places {
            if let Some(value) = place.checked_sub(first).and_then(|row| values.get(row)) {
                // SAFETY: the place was filled, and its owner is alive.
                unsafe { assert_lane(lane, kind, place, std::slice::from_ref(value)) };
            }
        }
        first += values.len();
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn what_was_filled_is_what_was_sealed(
        (kinds, models) in any_case(),
        (other_kinds, other) in any_case(),
        wanted in prop::collection::vec((any::<prop::sample::Index>(), 1..300_usize), 1..4),
    ) {
        // Memory in which other rows lay.
        let mut before = open(StreamMemory::default(), &other_kinds, &other);
        before.fill(0..usize::MAX, None).unwrap();
        let mut streamed = open(before.into_memory(), &kinds, &models);
        let places = runs(&kinds, &models).1;
        let lanes: Vec<Lane> = (0..kinds.len()).map(|column| streamed.lane(column)).collect();
        for (start, count) in wanted {
            let start = start.index(places);
            let range = start..(start + count).min(places);
            for (column, &kind) in kinds.iter().enumerate() {
                if let Some(zone) = streamed.zone(column, range.clone()) {
                    assert_bounds(&zone, kind, column, &models, range.clone());
                }
            }
            for column in 0..kinds.len() {
                assert_point(&streamed, column, &models, start);
            }
            streamed.fill(range.clone(), None).unwrap();
            let filled: Vec<usize> = range.collect();
            for (column, &kind) in kinds.iter().enumerate() {
                assert_places(lanes[column], kind, column, &models, &filled);
            }
        }
        streamed.fill(0..places, None).unwrap();
        let all: Vec<usize> = (0..places).collect();
        for (column, &kind) in kinds.iter().enumerate() {
            assert_places(lanes[column], kind, column, &models, &all);
            assert_codes(&streamed, column, places);
            assert_code_zones(&streamed, column, &models);
        }
    }

    #[test]
    fn runs_are_of_what_is_decoded((kinds, models) in any_case()) {
        let mut streamed = open(StreamMemory::default(), &kinds, &models);
        let places = runs(&kinds, &models).1;
        let mut undecoded = Vec::new();
        let mut repeats = ValueRepeats::default();
        for first in (0..places).step_by(VECTOR_ROWS) {
            for column in 0..kinds.len() {
                if streamed.repeats(column, first..places.min(first + VECTOR_ROWS), &mut repeats) {
                    let of_column = repeats.iter().map(|(value, rows)| (column, first + rows.start..first + rows.end, value));
                    undecoded.extend(of_column);
                }
            }
        }
        streamed.fill(0..places, None).unwrap();
        for (column, places, value) in undecoded {
            for place in places {
                let bits = value.map(|bits| match kinds[column] {
                    LaneKind::Fixed { width, .. } => bits & u64::MAX >> (64 - 8 * width),
                    _ => bits,
                });
                assert_eq!(stored(streamed.lane(column), kinds[column], place), bits);
            }
        }
    }

    #[test]
    fn damaged_images_do_no_harm(
        (kinds, models) in any_case(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let (mut runs, places) = runs(&kinds, &models);
        for run in &mut runs {
            let ImageBytes::Own(image) = &mut run.image else {
                panic!("it is the run's own");
            };
            for (place, byte) in &damage {
                let place = place.index(image.len());
                image[place] = *byte;
            }
            image::tests::vouch_for(image);
        }
        let Ok(mut streamed) = Streamed::open(StreamMemory::default(), &kinds, &[], places, runs) else {
            return Ok(());
        };
        for column in 0..kinds.len() {
            let mut repeats = ValueRepeats::default();
            let items = streamed.dictionary(column).map(|dictionary| dictionary.items.into());
            if streamed.repeats(column, 0..places.min(VECTOR_ROWS), &mut repeats) && let Some(items) = items {
                prop_assert!(repeats.iter().all(|(code, _)| code.is_none_or(|code| code < items)));
            }
        }
        for place in (0..places).step_by(31) {
            for column in 0..kinds.len() {
                let point = streamed.point(column, place);
                if let (Ok(Some(Constant::Code(code))), Some(items)) = (point, streamed.dictionary(column)) {
                    prop_assert!(code < items.items);
                }
            }
        }
        let _ = streamed.fill(0..places, None);
        for column in 0..kinds.len() {
            streamed.zone(column, 0..places);
            assert_codes(&streamed, column, places);
        }
    }
}

/// Checks that a value read without filling is the model's. A value of fixed width can be read so
/// until its vector is filled.
fn assert_point(streamed: &Streamed, column: usize, models: &[Model], place: usize) {
    let mut first = 0;
    for model in models {
        first += model.gap;
        let values = &model.columns[column][model.before..];
        if let Some(value) = place.checked_sub(first).and_then(|row| values.get(row)) {
            let point = streamed.point(column, place).unwrap();
            match (point, value) {
                (None, _) => {}
                (Some(Constant::Null), value) => assert_eq!(value, &None),
                (_, None) => panic!("a NULL has a value"),
                (Some(Constant::Bits(bits)), Some(value)) => {
                    assert_eq!(&bits.to_le_bytes()[..value.len()], value);
                }
                (Some(Constant::Bytes(bytes)), Some(value)) => assert_eq!(bytes, value),
                (Some(Constant::Code(code)), Some(value)) => {
                    let Some(Kept::Codes { dictionary, .. }) = streamed.columns.get(column) else {
                        panic!("a code of a column without")
                    };
                    assert_eq!(dictionary.items.item(code as usize), value);
                }
            }
        }
        first += values.len();
    }
}

/// The bits of a number, a bool or a code at a place that was filled.
fn stored(lane: Lane, kind: LaneKind, place: usize) -> Option<u64> {
    // SAFETY: the lane has room for the place.
    unsafe {
        if !lane.validity.is_null() && *lane.validity.add(place / 64) >> (place % 64) & 1 == 0 {
            return None;
        }
        Some(match (lane.data, kind) {
            (LaneData::Null, _) => return None,
            (LaneData::Bool(words), _) => *words.add(place / 64) >> (place % 64) & 1,
            (LaneData::Codes { codes, .. }, _) => (*codes.add(place)).into(),
            (LaneData::Fixed { values, stride }, LaneKind::Fixed { width, .. }) => {
                let value = values.add(place * stride as usize);
                let mut bits = [0; 8];
                std::ptr::copy_nonoverlapping(value, bits.as_mut_ptr(), width.into());
                u64::from_le_bytes(bits)
            }
            other => panic!("{other:?} has no runs"),
        })
    }
}

/// Every code at every place names an item, and the zone of a place may have it.
fn assert_codes(streamed: &Streamed, column: usize, places: usize) {
    let (LaneData::Codes { codes, .. }, Some(dictionary)) =
        (streamed.lane(column).data, streamed.dictionary(column))
    else {
        return;
    };
    for place in 0..places {
        // SAFETY: the lane has a code a place.
        let code = unsafe { *codes.add(place) };
        assert!(code < dictionary.items, "code {code} at place {place}");
    }
}

/// The zone of each vector may have the codes of the rows in it that are not NULL.
fn assert_code_zones(streamed: &Streamed, column: usize, models: &[Model]) {
    let LaneData::Codes { codes, .. } = streamed.lane(column).data else {
        return;
    };
    let mut first = 0;
    for model in models {
        first += model.gap;
        for (row, value) in model.columns[column][model.before..].iter().enumerate() {
            let place = first + row;
            let zone = streamed.zone(column, place..place + 1);
            if let Some(zone) = zone.and_then(|zone| zone.codes).filter(|_| value.is_some()) {
                // SAFETY: the place was filled.
                assert!(zone.may_have(unsafe { *codes.add(place) }), "at {place}");
            }
        }
        first += model.columns[column].len() - model.before;
    }
}

/// No value of these places is outside the zone's bounds.
fn assert_bounds(
    zone: &crate::zone_map::Zone,
    kind: LaneKind,
    column: usize,
    models: &[Model],
    places: std::ops::Range<usize>,
) {
    let mut first = 0;
    for model in models {
        first += model.gap;
        let values = &model.columns[column][model.before..];
        let is_at = |(row, _): &(usize, &Value)| places.contains(&(first + row));
        let values_at = values.iter().enumerate().filter(is_at);
        assert_zone(zone, kind, values_at.map(|(_, value)| value));
        first += values.len();
    }
}

/// The rows of a series each, as sealing by series lays them: the series, a time stamp every ten,
/// and its name.
fn series(count: u32, rows: u32) -> (Vec<LaneKind>, Model) {
    let mut columns = vec![Vec::new(), Vec::new(), Vec::new()];
    for series in 0..count {
        for row in 0..rows {
            let number = |number: u64| Some(number.to_ne_bytes().to_vec());
            columns[0].push(number(series.into()));
            columns[1].push(number(1_000_000 + u64::from(row) * 10));
            columns[2].push(Some(format!("series {series}").into_bytes()));
        }
    }
    let model = Model {
        gap: 0,
        before: 0,
        series: rows as usize,
        columns,
    };
    (vec![INT8, INT8, TEXT], model)
}

/// A series of several vectors repeats the times of the one before from the middle of a pattern on.
// Thousands of rows are too many for Miri.
#[cfg(not(miri))]
#[test]
fn zones_of_a_part_of_a_pattern_are_its_own() {
    let rows = 5_000;
    let (kinds, model) = series(3, rows);
    let streamed = open(StreamMemory::default(), &kinds, &[model]);
    for vector in 0..3 * rows as usize / VECTOR_ROWS {
        let places = vector * VECTOR_ROWS..(vector + 1) * VECTOR_ROWS;
        let time = |place: usize| 1_000_000 + (place as i64 % i64::from(rows)) * 10;
        let zone = streamed.zone(1, places.clone()).expect("of equal steps");
        let least = places.clone().map(time).min();
        let greatest = places.map(time).max();
        assert_eq!(zone.minimum.signed(), least, "{vector}");
        assert_eq!(zone.maximum.signed(), greatest, "{vector}");
    }
}

#[test]
fn zones_tell_series_and_times_apart_without_decoding() {
    let rows = if cfg!(miri) { 16 } else { 512 };
    let (kinds, model) = series(16, rows);
    let streamed = open(StreamMemory::default(), &kinds, &[model]);
    let per_vector = VECTOR_ROWS as i64 / i64::from(rows);
    for vector in 0..16 * rows as usize / VECTOR_ROWS {
        let places = vector * VECTOR_ROWS..(vector + 1) * VECTOR_ROWS;
        let zone = streamed.zone(0, places.clone()).expect("of constants");
        let first = vector as i64 * per_vector;
        assert_eq!(zone.minimum.signed(), Some(first));
        assert_eq!(zone.maximum.signed(), Some(first + per_vector - 1));
        let zone = streamed.zone(1, places.clone()).expect("of equal steps");
        assert_eq!(zone.minimum.signed(), Some(1_000_000));
        assert_eq!(
            zone.maximum.signed(),
            Some(1_000_000 + (i64::from(rows) - 1) * 10)
        );
        let codes = streamed.zone(2, places.clone()).and_then(|zone| zone.codes);
        let codes = codes.expect("of constants");
        for code in 0..16 {
            let is_there = (first..first + per_vector).contains(&i64::from(code));
            assert_eq!(codes.may_have(code), is_there, "{code}");
        }
    }
}

#[test]
fn runs_of_series_are_told_without_decoding() {
    let rows = if cfg!(miri) { 64 } else { 512 };
    let (kinds, model) = series(16, rows);
    let mut streamed = open(StreamMemory::default(), &kinds, &[model]);
    let mut repeats = ValueRepeats::default();
    let second = VECTOR_ROWS..2 * VECTOR_ROWS;
    assert!(
        !streamed.repeats(0, 1..VECTOR_ROWS, &mut repeats),
        "not a vector"
    );
    assert!(
        !streamed.repeats(1, second.clone(), &mut repeats),
        "times grow"
    );
    for column in [0, 2] {
        assert!(streamed.repeats(column, second.clone(), &mut repeats));
        let per_vector = VECTOR_ROWS / rows as usize;
        let expected = (0..per_vector).map(|run| {
            let first = run * rows as usize;
            (
                Some((per_vector + run) as u64),
                first..first + rows as usize,
            )
        });
        assert!(repeats.iter().eq(expected), "{repeats:?}");
    }
    assert_eq!(streamed.decoded(), 0);
    // Rows that are not looked at cut the last short.
    assert!(streamed.repeats(0, VECTOR_ROWS..VECTOR_ROWS + 7, &mut repeats));
    assert_eq!(repeats.iter().last().map(|(_, rows)| rows.end), Some(7));
    streamed.fill(second.clone(), Some(&[0])).unwrap();
    assert!(!streamed.repeats(0, second, &mut repeats), "it was decoded");
}

#[test]
fn zones_of_keys_are_exact_however_few_rows_each_has() {
    let vectors = if cfg!(miri) { 1 } else { 3 };
    for rows in [36, 5, 3, 2, 1] {
        let count = (vectors * VECTOR_ROWS) as u32 / rows;
        let (kinds, model) = series(count, rows);
        let streamed = open(StreamMemory::default(), &kinds, &[model]);
        let total = (count * rows) as usize;
        for first in (0..total).step_by(VECTOR_ROWS) {
            let places = first..total.min(first + VECTOR_ROWS);
            let series = |place: usize| Some(place as i64 / i64::from(rows));
            let zone = streamed.zone(0, places.clone()).expect("of steps");
            assert_eq!(zone.minimum.signed(), series(first), "{rows} rows");
            assert_eq!(zone.maximum.signed(), series(places.end - 1), "{rows} rows");
        }
    }
}

#[test]
fn runs_that_are_not_sealed_are_given_back_with_the_memory() {
    let column = build(INT8, &[Some(7_u64.to_ne_bytes().to_vec())]);
    let mut image = Vec::new();
    image::encode(&[column], 1, &mut image).unwrap();
    let runs = vec![SealedRun {
        image: ImageBytes::Own(image),
        image_rows: 1,
        rows: 0..1,
        place: 0,
    }];
    let opened = Streamed::open(StreamMemory::default(), &[INT8], &[], 1, runs);
    let Err(NotStreamed::Unsealed(mut memory)) = opened else {
        panic!("it is not sealed");
    };
    assert!(memory.image().capacity() > 0);
}

#[test]
fn rows_that_an_image_does_not_have_are_refused() {
    let (kinds, model) = series(2, 8);
    let mut runs = runs(&kinds, &[model.clone(), model]).0;
    runs[1].rows.end += 1;
    runs[1].image_rows += 1;
    let opened = Streamed::open(StreamMemory::default(), &kinds, &[], 100, runs);
    assert!(matches!(opened, Err(NotStreamed::Unreadable(1, _))));
}

#[test]
fn damage_is_told_of_the_run_that_has_it() {
    let (kinds, model) = series(2, 8);
    let (mut runs, places) = runs(&kinds, &[model.clone(), model]);
    let ImageBytes::Own(image) = &mut runs[1].image else {
        panic!("it is the run's own");
    };
    *image.last_mut().unwrap() ^= 1;
    let opened = Streamed::open(StreamMemory::default(), &kinds, &[], places, runs);
    let Err(NotStreamed::Unreadable(1, Error::Checksum { .. })) = opened else {
        panic!("its checksum does not match");
    };
}

#[test]
fn a_column_of_another_kind_is_refused() {
    let (kinds, model) = series(2, 8);
    let (runs, places) = runs(&kinds, &[model]);
    let kinds = [INT8, TEXT, TEXT];
    let opened = Streamed::open(StreamMemory::default(), &kinds, &[], places, runs);
    let Err(NotStreamed::Unreadable(0, Error::KindDiffers { .. })) = opened else {
        panic!("times are no text");
    };
}

#[test]
fn a_column_that_came_later_has_its_default_in_older_runs() {
    let (kinds, model) = series(2, 8);
    let (runs, places) = runs(&kinds, &[model]);
    let kinds = [&*kinds, &[INT8, TEXT, TEXT]].concat();
    let default = 7_u64.to_ne_bytes().to_vec();
    let missing = [
        None,
        None,
        None,
        Some(default.clone()),
        Some(b"new".to_vec()),
        None,
    ];
    let opened = Streamed::open(StreamMemory::default(), &kinds, &missing, places, runs);
    let Ok(mut streamed) = opened else {
        panic!("what an image does not have need not be sealed");
    };
    streamed.fill(0..places, None).unwrap();
    for (column, value) in [(3, Some(default)), (4, Some(b"new".to_vec())), (5, None)] {
        let values = vec![value; places];
        // SAFETY: all places were filled.
        unsafe { assert_lane(streamed.lane(column), kinds[column], 0, &values) };
    }
}

#[test]
fn only_the_columns_asked_for_are_decoded() {
    let (kinds, model) = series(16, 512.min(VECTOR_ROWS as u32 / 4));
    let models = [model];
    let mut streamed = open(StreamMemory::default(), &kinds, &models);
    let all: Vec<usize> = (0..VECTOR_ROWS).collect();
    assert_eq!(streamed.decoded(), 0);
    for _ in 0..2 {
        streamed.fill(0..VECTOR_ROWS, Some(&[1, 77])).unwrap();
        assert_eq!(streamed.decoded(), 1);
        assert_places(streamed.lane(1), INT8, 1, &models, &all);
    }
    let LaneData::Fixed { values, .. } = streamed.lane(0).data else {
        panic!("a column of fixed width");
    };
    // SAFETY: the lane has room for all places.
    let last = unsafe { *values.cast::<u64>().add(VECTOR_ROWS - 1) };
    assert_eq!(last, 0, "nobody asked for it");
    streamed.fill(0..VECTOR_ROWS, None).unwrap();
    assert_eq!(streamed.decoded(), 3);
    for (column, &kind) in kinds.iter().enumerate() {
        assert_places(streamed.lane(column), kind, column, &models, &all);
    }
}

#[test]
fn the_blocks_of_few_wanted_rows_are_decoded_alone() {
    const SERIES: usize = VECTOR_ROWS / 16;
    let (kinds, model) = series(16, SERIES as u32);
    let models = [model];
    let mut streamed = open(StreamMemory::default(), &kinds, &models);
    let LaneData::Fixed { values, .. } = streamed.lane(1).data else {
        panic!("a column of fixed width");
    };
    // SAFETY: the lane has room for all places.
    let value = |place: usize| unsafe { *values.cast::<u64>().add(place) };
    // Rows of the fourth series, in part and then all.
    for wanted in [3 * SERIES + 5..3 * SERIES + 9, 3 * SERIES..4 * SERIES] {
        streamed.fill(wanted, Some(&[1])).unwrap();
        assert_eq!(streamed.decoded(), 1);
        let filled: Vec<usize> = (3 * SERIES..4 * SERIES).collect();
        assert_places(streamed.lane(1), INT8, 1, &models, &filled);
        assert_eq!(value(3 * SERIES - 1), 0, "a row of the series before");
        assert_eq!(value(4 * SERIES), 0, "a row of the series after");
    }
    // Rows of another series: now the vector is decoded as a whole.
    streamed
        .fill(9 * SERIES..9 * SERIES + 1, Some(&[1]))
        .unwrap();
    assert_eq!(streamed.decoded(), 2);
    let all: Vec<usize> = (0..VECTOR_ROWS).collect();
    assert_places(streamed.lane(1), INT8, 1, &models, &all);
    streamed.fill(0..VECTOR_ROWS, Some(&[1])).unwrap();
    assert_eq!(streamed.decoded(), 2);
}

#[test]
fn a_dictionary_that_comes_again_is_read_once() {
    let names = |count: usize, offset: usize| Model {
        gap: 0,
        before: 0,
        series: 1,
        columns: vec![
            (0..100)
                .map(|row| Some(format!("name {}", (row * 7 + offset) % count).into_bytes()))
                .collect(),
        ],
    };
    let instance = |streamed: &Streamed| streamed.dictionary(0).expect("codes").instance;
    let mut memory = StreamMemory::default();
    let mut instances = Vec::new();
    // Equal names in another order, other names, and the first names again.
    for (count, offset) in [(20, 0), (20, 3), (21, 0), (20, 0)] {
        let model = names(count, offset);
        let mut streamed = open(memory, &[TEXT], std::slice::from_ref(&model));
        instances.push(instance(&streamed));
        streamed.fill(0..100, None).unwrap();
        let all: Vec<usize> = (0..100).collect();
        assert_places(streamed.lane(0), TEXT, 0, &[model], &all);
        memory = streamed.into_memory();
    }
    assert!(memory.bytes() > 0);
    assert_eq!(instances[0], instances[1]);
    assert_ne!(instances[1], instances[2]);
    assert_ne!(instances[2], instances[3]);
}

#[test]
fn zones_of_floats_hold_and_tell_series_apart() {
    const ROWS: usize = VECTOR_ROWS / 2;
    let floats = |width: u16| LaneKind::Fixed {
        width,
        stride: width,
        number: Number::Float,
    };
    // Constants, decimals that vary, bits that vary, and outliers among decimals.
    let value = |series: usize, row: usize| match series {
        0 | 1 => 40.25 + series as f64,
        2 | 3 => {
            (series * 1000 + (row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % 97) as f64 / 100.0
        }
        4 | 5 => (row as f64 + 0.1).sqrt(),
        _ if row == 77 => f64::NAN,
        _ => (row % 50) as f64 / 10.0,
    };
    let rows = (0..8).flat_map(|series| (0..ROWS).map(move |row| (series, row)));
    let values: Vec<f64> = rows.map(|(series, row)| value(series, row)).collect();
    let wide = values
        .iter()
        .map(|value| Some(value.to_le_bytes().to_vec()));
    let narrow = values
        .iter()
        .map(|value| Some((*value as f32).to_le_bytes().to_vec()));
    let models = [Model {
        gap: 0,
        before: 0,
        series: ROWS,
        columns: vec![wide.collect(), narrow.collect()],
    }];
    let kinds = [floats(8), floats(4)];
    let streamed = open(StreamMemory::default(), &kinds, &models);
    for (column, &kind) in kinds.iter().enumerate() {
        let places = |vector: usize| vector * VECTOR_ROWS..(vector + 1) * VECTOR_ROWS;
        for (vector, least, greatest) in [(0, 40.25, 41.25), (1, 20.0, 40.0)] {
            let zone = streamed.zone(column, places(vector));
            let zone = zone.expect("of constants and decimals");
            assert_bounds(&zone, kind, column, &models, places(vector));
            let bounds = zone.minimum.float().zip(zone.maximum.float());
            let (minimum, maximum) = bounds.expect("floats have float bounds");
            assert!(
                least - 0.5 <= minimum && maximum <= greatest + 0.5,
                "{zone:?}"
            );
        }
        assert!(
            streamed.zone(column, places(3)).is_none(),
            "a NaN is greater than any bound"
        );
        if let Some(zone) = streamed.zone(column, places(2)) {
            assert_bounds(&zone, kind, column, &models, places(2));
        }
    }
}
