//! Offsets of `RANGE` frames: `RANGE BETWEEN '1 hour' PRECEDING AND CURRENT ROW`.

use lanes_columnar::over::distance::{Distance, Measure};
use pgrx::pg_sys::{self, Oid};

use crate::expressions::translate::Translation;
use crate::pg::names::type_name;
use crate::pg::tree::Expr;

const DAY: i64 = 86_400_000_000;
/// The greatest offset of times: 36,000 years. With a greater one, infinite times would be near finite ones.
const OFFSET_MAX: i64 = 1 << 60;

/// The distance that an offset is in rows that are ordered by a type.
///
/// # Errors
/// The offset is no constant, PostgreSQL refuses it, or the type is not covered.
pub fn distance(offset: Option<Expr<'_>>, type_of: Oid) -> Translation<Distance> {
    let offset = offset.and_then(|offset| offset.stripped().as_const()?.value());
    let offset = offset.ok_or("a frame whose offset is no constant")?;
    let of_interval = |measure| -> Translation<i128> {
        let interval = offset.interval().ok_or_else(|| refused(type_of))?;
        // A month has no fixed length, and where the time zone changes its offset, a day has none either.
        if interval.month != 0 || measure == Measure::Timestamps && interval.day != 0 {
            return Err("a frame whose offset depends on the calendar".into());
        }
        Ok(i128::from(interval.time) + i128::from(interval.day) * i128::from(DAY))
    };
    let (by, of) = match type_of {
        pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID => {
            let bits = offset.datum().value();
            let integer = match offset.type_of() {
                pg_sys::INT2OID => i128::from(bits as i16),
                pg_sys::INT4OID => i128::from(bits as i32),
                pg_sys::INT8OID => i128::from(bits as i64),
                _ => return Err(refused(type_of)),
            };
            (integer, Measure::Integers)
        }
        pg_sys::TIMESTAMPTZOID => (of_interval(Measure::Timestamps)?, Measure::Timestamps),
        // Without a time zone each day has 24 hours.
        pg_sys::TIMESTAMPOID => (of_interval(Measure::Dates)?, Measure::Timestamps),
        pg_sys::DATEOID => {
            let time = of_interval(Measure::Dates)?;
            if time % i128::from(DAY) != 0 {
                return Err("a frame of dates whose offset is not of whole days".into());
            }
            (time / i128::from(DAY), Measure::Dates)
        }
        _ => return Err(refused(type_of)),
    };
    let greatest = match of {
        Measure::Integers => i64::MAX,
        Measure::Timestamps => OFFSET_MAX,
        Measure::Dates => OFFSET_MAX / DAY,
    };
    // PostgreSQL raises the error of a negative offset.
    match (0..=i128::from(greatest)).contains(&by) {
        true => Ok(Distance { by: by as i64, of }),
        false => Err("a frame whose offset is out of range".into()),
    }
}

fn refused(type_of: Oid) -> String {
    format!(
        "a frame of RANGE with an offset of type {}",
        type_name(type_of)
    )
}
