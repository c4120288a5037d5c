//! Rows in about the order of an index's key.
//!
//! The order only decides how near to each other the entries of neighbouring rows are in the index, so it need not be
//! exact. It knows the first two columns of the key, integers, times and floats exactly, and of other values their
//! first eight bytes.

use pgrx::pg_sys::{self, Oid};

use super::datum::{self, RowOutlet};

/// A number for a value, in about the order of its type.
type Rank = u64;

/// The numbers of rows in an order.
pub struct KeyOrder {
    rows: Vec<u32>,
}

impl KeyOrder {
    /// The order of the first `count` rows by a key: the numbers of its columns, counted from 1, and their types. 0
    /// stands for an expression, at which the key ends here. `None`: the rows are in that order as they are.
    pub fn of(
        outlet: &RowOutlet,
        count: usize,
        key: impl Iterator<Item = (i16, Oid)>,
    ) -> Option<KeyOrder> {
        /// Columns of the key that count.
        const COLUMNS: usize = 2;
        let columns = key.take_while(|(column, _)| *column > 0);
        let columns: Vec<(usize, Oid)> = columns
            .take(COLUMNS)
            .map(|(column, type_of)| (column as usize - 1, type_of))
            .collect();
        let rank_at = |row: u32, column: usize| {
            columns.get(column).map_or(0, |(attribute, type_of)| {
                let (value, is_null) = outlet.value(row as usize, *attribute);
                if is_null {
                    Rank::MAX
                } else {
                    rank(value, *type_of)
                }
            })
        };
        let keyed = |row: u32| (rank_at(row, 0), rank_at(row, 1), row);
        let mut ranked: Vec<(Rank, Rank, u32)> = (0..count as u32).map(keyed).collect();
        if ranked.is_sorted() {
            return None;
        }
        ranked.sort_unstable();
        let rows = ranked.into_iter().map(|(_, _, row)| row).collect();
        Some(KeyOrder { rows })
    }

    /// The row at a place of the order.
    #[inline]
    pub fn row(&self, at: usize) -> usize {
        self.rows[at] as usize
    }
}

/// The rank of a value of a type.
fn rank(value: pg_sys::Datum, type_of: Oid) -> Rank {
    match type_of {
        pg_sys::INT2OID
        | pg_sys::INT4OID
        | pg_sys::INT8OID
        | pg_sys::DATEOID
        | pg_sys::TIMEOID
        | pg_sys::TIMESTAMPOID
        | pg_sys::TIMESTAMPTZOID => of_integer(value.value() as i64),
        pg_sys::FLOAT8OID => of_float(f64::from_bits(value.value() as u64)),
        pg_sys::FLOAT4OID => of_float(f32::from_bits(value.value() as u32).into()),
        pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID | pg_sys::BYTEAOID => {
            of_bytes(datum::payload(value))
        }
        pg_sys::UUIDOID => of_bytes(datum::bytes_of(value, 16)),
        _ => 0,
    }
}

/// The rank of an integer: negative ones come first.
fn of_integer(value: i64) -> Rank {
    value as u64 ^ 1 << 63
}

/// The rank of a float: negative ones in reverse.
fn of_float(value: f64) -> Rank {
    let bits = value.to_bits() as i64;
    (bits ^ ((bits >> 63) as u64 >> 1) as i64) as u64 ^ 1 << 63
}

/// The rank of the first bytes.
fn of_bytes(bytes: &[u8]) -> Rank {
    let mut first = [0; 8];
    let count = bytes.len().min(8);
    first[..count].copy_from_slice(&bytes[..count]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_the_order_of_their_types() {
        let floats = [
            f64::NEG_INFINITY,
            -2.5,
            -0.0,
            0.0,
            1e-300,
            7.0,
            f64::INFINITY,
        ];
        assert!(floats.map(of_float).is_sorted());
        let texts: [&[u8]; 4] = [b"", b"a", b"ab", b"b"];
        assert!(texts.map(of_bytes).is_sorted());
        let integers = [i64::MIN, -1, 0, 1, i64::MAX];
        assert!(integers.map(of_integer).is_sorted());
    }
}
