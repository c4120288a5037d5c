//! `lanes.histogram(value, min, max, buckets)`: how many values are below `min`, in each bucket, and from `max` on.
//!
//! [`lanes_columnar::aggregate::histogram`] says where a value belongs. NULL does not count.

use lanes_columnar::aggregate::histogram::Buckets;
use pgrx::{IntoDatum, PgSqlErrorCode, pg_sys};

use crate::error;
use crate::expressions::result_datum;
use crate::pg::call::Call;
use crate::pg::kept_rows::KeptCounts;

crate::sql_callables! {
    lanes_histogram_transition, pg_finfo_lanes_histogram_transition => transition;
    lanes_histogram_combine, pg_finfo_lanes_histogram_combine => combine;
    lanes_histogram_serialise, pg_finfo_lanes_histogram_serialise => serialise;
    lanes_histogram_deserialise, pg_finfo_lanes_histogram_deserialise => deserialise;
    lanes_histogram_final, pg_finfo_lanes_histogram_final => finish;
}

/// A histogram may have this many buckets, so that a state takes less than half a megabyte.
const BUCKETS_MAX: i32 = 100_000;

/// The state of a group.
#[derive(Clone, Copy)]
#[repr(C)]
struct Kept {
    /// The arguments that give the buckets. They must not change within a group.
    arguments: (f64, f64, i32),
    buckets: Buckets,
    counts: KeptCounts,
}

impl Kept {
    fn new(memory: pg_sys::MemoryContext, arguments: (f64, f64, i32)) -> Kept {
        let buckets = buckets(arguments);
        Kept {
            arguments,
            buckets,
            counts: KeptCounts::zeros(memory, buckets.places()),
        }
    }
}

fn transition(call: &Call) -> Option<pg_sys::Datum> {
    let Some(x) = call.float8(1) else {
        return call.argument(0);
    };
    let arguments = (call.float8(2), call.float8(3), call.int4(4));
    let (Some(low), Some(high), Some(count)) = arguments else {
        refuse(
            "the range and the buckets of lanes.histogram must not be NULL",
            "Give two numbers and the number of buckets between them.",
        )
    };
    let arguments = (low, high, count);
    let kept = match call.state::<Kept>(0) {
        Some(kept) => kept,
        None => {
            let memory = super::aggregate_memory(call);
            call.new_state(memory, Kept::new(memory, arguments))
        }
    };
    check_same(kept, arguments);
    let count = &mut kept.counts.counts()[kept.buckets.place(x)];
    *count = count.saturating_add(1);
    Some(pg_sys::Datum::from(&raw mut *kept))
}

fn combine(call: &Call) -> Option<pg_sys::Datum> {
    let earlier = call.state::<Kept>(0);
    let Some(later) = call.state::<Kept>(1) else {
        return call.argument(0);
    };
    let kept = match earlier {
        Some(kept) => kept,
        None => {
            let memory = super::aggregate_memory(call);
            call.new_state(memory, Kept::new(memory, later.arguments))
        }
    };
    check_same(kept, later.arguments);
    let counts = kept.counts.counts().iter_mut();
    for (count, more) in counts.zip(later.counts.counts()) {
        *count = count.saturating_add(*more);
    }
    Some(pg_sys::Datum::from(&raw mut *kept))
}

/// The three arguments, then the counts.
fn serialise(call: &Call) -> Option<pg_sys::Datum> {
    let kept = call.state::<Kept>(0)?;
    let (low, high, count) = kept.arguments;
    let mut bytes = Vec::with_capacity(20 + 4 * kept.buckets.places());
    bytes.extend_from_slice(&low.to_ne_bytes());
    bytes.extend_from_slice(&high.to_ne_bytes());
    bytes.extend_from_slice(&count.to_ne_bytes());
    let counts = kept.counts.counts().iter();
    counts.for_each(|count| bytes.extend_from_slice(&count.to_ne_bytes()));
    bytes.into_datum()
}

fn deserialise(call: &Call) -> Option<pg_sys::Datum> {
    let (low, rest) = call.text(0)?.split_first_chunk()?;
    let (high, rest) = rest.split_first_chunk()?;
    let (count, rest) = rest.split_first_chunk()?;
    let arguments = (
        f64::from_ne_bytes(*low),
        f64::from_ne_bytes(*high),
        i32::from_ne_bytes(*count),
    );
    let memory = call.current_memory();
    let kept = call.new_state(memory, Kept::new(memory, arguments));
    let (counts, _) = rest.as_chunks();
    for (count, bytes) in kept.counts.counts().iter_mut().zip(counts) {
        *count = u32::from_ne_bytes(*bytes);
    }
    Some(pg_sys::Datum::from(&raw mut *kept))
}

fn finish(call: &Call) -> Option<pg_sys::Datum> {
    result_datum::integers(call.state::<Kept>(0)?.counts.counts())
}

fn buckets((low, high, count): (f64, f64, i32)) -> Buckets {
    if count > BUCKETS_MAX {
        error::raise(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!("lanes.histogram has at most {BUCKETS_MAX} buckets, not {count}"),
            "Use fewer buckets, or GROUP BY width_bucket(…).",
        )
    }
    Buckets::new(low, high, count).unwrap_or_else(|| {
        refuse(
            "lanes.histogram needs a finite range from a lower to a higher number, and at least one bucket",
            "Call it as lanes.histogram(value, min, max, buckets).",
        )
    })
}

fn check_same(kept: &Kept, arguments: (f64, f64, i32)) {
    if kept.arguments != arguments {
        refuse(
            "the range or the buckets of lanes.histogram changed within a group",
            "Give constants, or group by the columns that give them.",
        )
    }
}

fn refuse(message: &str, hint: &str) -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message,
        hint,
    )
}
