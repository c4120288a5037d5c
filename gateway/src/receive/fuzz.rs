//! The fuzzing entry: any bytes, as a compressed and as a decompressed body. The code must return
//! for any input, and its result must keep the guarantees that later code relies on.

use super::decompress::Decompressor;
use super::resolve::{RequestLimits, resolve};
use crate::model::Room;
use crate::series::SeriesCache;
use crate::series::label_set::{LabelLimits, LabelOrder};
use crate::series::sample_rows::TIMESTAMP_MS_RANGE;

/// Receives `data` like a request. Panics only if a guarantee is broken.
pub fn exercise(data: &[u8]) {
    let label = LabelLimits {
        labels_max: 32,
        name_bytes_max: 256,
        value_bytes_max: 1024,
        order: LabelOrder::Sort,
    };
    let limits = RequestLimits {
        samples_max: 10_000,
        label,
    };
    let cache = SeriesCache::new(1 << 16, 0);
    exercise_body(data, &limits, &cache);
    if let Ok(body) = Decompressor::default().decompress(data, 1 << 20) {
        exercise_body(body, &limits, &cache);
    }
}

fn exercise_body(body: &[u8], limits: &RequestLimits, cache: &SeriesCache) {
    let Ok(mut resolved) = resolve(body, limits, cache, &mut Room::boundless()) else {
        return;
    };
    let rows = resolved.rows.len();
    assert!(
        rows <= limits.samples_max && rows <= body.len() / 2,
        "rows are bounded by the body"
    );
    assert_eq!(
        (
            resolved.rows.timestamps_us.len(),
            resolved.rows.values.len()
        ),
        (rows, rows)
    );
    for (number, series) in resolved.unknown.iter().enumerate() {
        let again = LabelLimits {
            order: LabelOrder::Refuse,
            ..limits.label
        };
        let parsed = crate::series::label_set::LabelSet::parse(&series.label_set.bytes, &again);
        assert_eq!(
            parsed.as_ref(),
            Ok(&series.label_set),
            "canonical bytes are canonical"
        );
        cache.insert(
            resolved.generation,
            &series.label_set.bytes,
            number as i32 + 1,
        );
    }
    let ids: Vec<i32> = (1..=resolved.unknown.len() as i32).collect();
    resolved.fill_in(&ids);
    assert!(
        resolved.rows.series.iter().all(|id| *id > 0),
        "every row has a series"
    );
    let milliseconds =
        |time: &i64| *time % 1000 == 0 && TIMESTAMP_MS_RANGE.contains(&(*time / 1000));
    assert!(resolved.rows.timestamps_us.iter().all(milliseconds));
    // Once its series are known, the same body produces the same rows and nothing to register.
    let once_known =
        resolve(body, limits, cache, &mut Room::boundless()).expect("it was legal before");
    assert_eq!(once_known.rows.timestamps_us, resolved.rows.timestamps_us);
    assert!(once_known.unknown.is_empty(), "registered series are known");
    assert_eq!(once_known.refused, resolved.refused);
}
