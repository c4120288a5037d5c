//! Conversion of values to and from PostgreSQL: rows to answers, and parameters to the types of a
//! statement.

use crate::sql::answer::Value;
use crate::sql::reference::Parameter;
use postgres::Row;
use postgres::types::{FromSql, ToSql, Type};
use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the values of a row.
pub fn row_values(row: &Row) -> Result<Vec<Value>, String> {
    (0..row.len()).map(|column| value(row, column)).collect()
}

fn value(row: &Row, column: usize) -> Result<Value, String> {
    let kind = row.columns()[column].type_();
    let integer = |number: i64| Value::Integer(number);
    let value = match *kind {
        Type::INT2 => get::<i16>(row, column)?.map(i64::from).map(integer),
        Type::INT4 => get::<i32>(row, column)?.map(i64::from).map(integer),
        Type::INT8 => get::<i64>(row, column)?.map(integer),
        Type::BOOL => get::<bool>(row, column)?.map(i64::from).map(integer),
        Type::FLOAT4 => get::<f32>(row, column)?.map(f64::from).map(Value::Float),
        Type::FLOAT8 => get::<f64>(row, column)?.map(Value::Float),
        Type::TEXT | Type::VARCHAR => get::<String>(row, column)?.map(Value::Text),
        Type::TIMESTAMPTZ => get::<SystemTime>(row, column)?
            .map(microseconds)
            .map(integer),
        Type::NUMERIC => get::<Numeric>(row, column)?.map(|number| Value::Float(number.0)),
        _ => return Err(format!("values of type {kind} cannot be compared")),
    };
    Ok(value.unwrap_or(Value::Null))
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<Option<T>, String> {
    row.try_get(column).map_err(|error| error.to_string())
}

fn microseconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_micros() as i64,
        Err(before) => -(before.duration().as_micros() as i64),
    }
}

/// Converts a parameter to the statement's type.
pub fn to_sql(parameter: &Parameter, kind: &Type) -> Result<Box<dyn ToSql + Sync>, String> {
    match (parameter, kind) {
        (Parameter::Float(number), &Type::FLOAT8) => Ok(Box::new(*number)),
        (Parameter::Float(number), &Type::FLOAT4) => Ok(Box::new(*number as f32)),
        (Parameter::Text(text), &Type::TEXT) => Ok(Box::new(text.clone())),
        (Parameter::Time(time), &Type::TIMESTAMPTZ) => Ok(Box::new(
            UNIX_EPOCH + Duration::from_micros(time.unsigned_abs()),
        )),
        _ => Err(format!("{parameter:?} is not a value of type {kind}")),
    }
}

/// Formats a parameter as a literal of SQL, whose type follows from its use.
pub fn to_literal(parameter: &Parameter) -> String {
    match parameter {
        Parameter::Float(number) => format!("'{number:?}'"),
        Parameter::Text(text) => format!("'{text}'"),
        Parameter::Time(time) => format!("timestamptz 'epoch' + interval '{time} microseconds'"),
    }
}

/// A numeric, converted to the nearest float.
struct Numeric(f64);

impl FromSql<'_> for Numeric {
    fn from_sql(_: &Type, bytes: &[u8]) -> Result<Numeric, Box<dyn Error + Sync + Send>> {
        // The format is four 16-bit numbers (number of digits, weight of the first, sign, scale),
        // then digits of base 10,000.
        let words: Vec<u16> = bytes
            .as_chunks::<2>()
            .0
            .iter()
            .map(|word| u16::from_be_bytes(*word))
            .collect();
        let [_, weight, sign, _, digits @ ..] = words.as_slice() else {
            return Err("a numeric has a head of eight bytes".into());
        };
        let magnitude = digits
            .iter()
            .fold(0.0, |number, digit| number * 1e4 + f64::from(*digit));
        let exponent = i32::from(*weight as i16) + 1 - digits.len() as i32;
        let magnitude = if exponent < 0 {
            magnitude / 1e4f64.powi(-exponent)
        } else {
            magnitude * 1e4f64.powi(exponent)
        };
        match sign {
            0x0000 => Ok(Numeric(magnitude)),
            0x4000 => Ok(Numeric(-magnitude)),
            0xC000 => Ok(Numeric(f64::NAN)),
            _ => Err("an infinite numeric".into()),
        }
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::NUMERIC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(words: &[u16]) -> f64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        Numeric::from_sql(&Type::NUMERIC, &bytes).unwrap().0
    }

    #[test]
    fn numerics_are_converted_to_floats() {
        assert_eq!(numeric(&[0, 0, 0, 0]), 0.0);
        assert_eq!(numeric(&[2, 1, 0, 0, 123, 4567]), 1_234_567.0);
        assert_eq!(numeric(&[1, 1, 0, 0, 5]), 50_000.0);
        assert_eq!(numeric(&[2, 0, 0x4000, 2, 1, 2500]), -1.25);
        assert_eq!(numeric(&[1, 0xffff, 0, 4, 25]), 0.0025);
        assert!(numeric(&[0, 0, 0xC000, 0]).is_nan());
        assert!(Numeric::from_sql(&Type::NUMERIC, &[0; 4]).is_err());
    }

    #[test]
    fn parameters_are_converted_to_the_types_of_statements() {
        let number = Parameter::Float(1.5);
        assert!(to_sql(&number, &Type::FLOAT4).is_ok() && to_sql(&number, &Type::FLOAT8).is_ok());
        assert!(to_sql(&number, &Type::TEXT).is_err());
        assert!(to_sql(&Parameter::Time(1), &Type::TIMESTAMPTZ).is_ok());
        assert_eq!(to_literal(&number), "'1.5'");
    }
}
