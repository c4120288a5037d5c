//! Numbers between two others, as `lanes.interpolate` returns them.

use pgrx::pg_sys::{self, Datum, Oid};

use crate::pg::numeric::Numeric;
use crate::pg::typed_datum::TypedDatum;

/// A number on the line from one number to another.
#[derive(Clone, Copy)]
pub struct Place {
    /// How far it is from the first number.
    pub done: i64,
    /// How far the numbers are from each other; greater than zero.
    pub whole: i64,
}

/// The number at a place between two numbers of a type, of which integers are rounded. `None` for another type.
pub fn between(type_of: Oid, from: Datum, to: Datum, place: Place) -> Option<Datum> {
    let integer = |from: i64, to: i64| Datum::from(between_integers(from, to, place));
    Some(match type_of {
        pg_sys::INT2OID => integer(from.value() as i16 as i64, to.value() as i16 as i64),
        pg_sys::INT4OID => integer(from.value() as i32 as i64, to.value() as i32 as i64),
        pg_sys::INT8OID => integer(from.value() as i64, to.value() as i64),
        pg_sys::FLOAT4OID => {
            let float = |value: Datum| f64::from(f32::from_bits(value.value() as u32));
            let value = between_floats(float(from), float(to), place) as f32;
            Datum::from(value.to_bits() as i32)
        }
        pg_sys::FLOAT8OID => {
            let float = |value: Datum| f64::from_bits(value.value() as u64);
            Datum::from(between_floats(float(from), float(to), place).to_bits())
        }
        pg_sys::NUMERICOID => {
            let (from, to) = (numeric(from)?, numeric(to)?);
            let integer = |value: i64| Numeric::from_integer(value.into());
            let step = to.minus(from).times(integer(place.done));
            from.minus(integer(0).minus(step.divided_by(integer(place.whole))))
                .datum()
        }
        _ => return None,
    })
}

fn numeric(value: Datum) -> Option<Numeric> {
    TypedDatum::of_numeric(value).numeric()
}

fn between_floats(from: f64, to: f64, place: Place) -> f64 {
    let share = place.done as f64 / place.whole as f64;
    // Neither product exceeds its factor, so finite numbers stay finite.
    from * (1.0 - share) + to * share
}

/// Rounded to the nearest integer, halves away from zero.
fn between_integers(from: i64, to: i64, place: Place) -> i64 {
    let (from, to) = (i128::from(from), i128::from(to));
    let (done, whole) = (i128::from(place.done), i128::from(place.whole));
    // Differences of 64 bits times shares of 63 bits fit into 128.
    let moved = (to - from) * done;
    let half = if moved < 0 { -whole / 2 } else { whole / 2 };
    (from + (moved + half) / whole) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_rounded() {
        let at = |done| Place { done, whole: 4 };
        let values = [0, 1, 2, 3, 4].map(|done| between_integers(10, 20, at(done)));
        assert_eq!(values, [10, 13, 15, 18, 20]);
        let values = [1, 2, 3].map(|done| between_integers(-10, -20, at(done)));
        assert_eq!(values, [-13, -15, -18]);
        let extremes = between_integers(
            i64::MIN,
            i64::MAX,
            Place {
                done: i64::MAX - 1,
                whole: i64::MAX,
            },
        );
        assert!(extremes > i64::MAX - 4);
    }

    #[test]
    fn floats_stay_finite() {
        let half = Place { done: 1, whole: 2 };
        assert_eq!(between_floats(f64::MAX, -f64::MAX, half), 0.0);
        assert_eq!(between_floats(1.0, 2.0, half), 1.5);
    }
}
