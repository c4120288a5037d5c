//! A datum with its type, so that it is read as what it is.

use lanes_columnar::bytes16::Bytes16;
use pgrx::pg_sys::{self, Datum, Oid};

use super::functions::{Place, catalog as functions, values};
use super::numeric::Numeric;
use super::tree::Const;
use super::{catalog, datum, text};

/// A value that is not NULL. Unless it is kept by value, it lives as long as the constant or the evaluation that it
/// came from: that of a plan's scalar ends when its node starts again.
#[derive(Clone, Copy, Debug)]
pub struct TypedDatum {
    datum: Datum,
    type_of: Oid,
}

impl TypedDatum {
    /// A datum of a type, which lives as long as the result is used.
    pub(in crate::pg) fn new(datum: Datum, type_of: Oid) -> TypedDatum {
        TypedDatum { datum, type_of }
    }

    /// The value of a constant that is not NULL.
    pub fn of_constant(constant: Const<'_>) -> TypedDatum {
        TypedDatum {
            datum: constant.constvalue(),
            type_of: constant.consttype(),
        }
    }

    /// A timestamp, with or without time zone.
    pub fn of_timestamp(is_zoned: bool, time: i64) -> TypedDatum {
        TypedDatum {
            datum: Datum::from(time),
            type_of: match is_zoned {
                true => pg_sys::TIMESTAMPTZOID,
                false => pg_sys::TIMESTAMPOID,
            },
        }
    }

    /// A new text in the server's encoding, in the current memory context.
    pub fn text(bytes: &[u8]) -> TypedDatum {
        let mut item = Vec::new();
        datum::item_from_payload(bytes, true, &mut item);
        TypedDatum {
            datum: text::allocated(&item),
            type_of: pg_sys::TEXTOID,
        }
    }

    /// A text in lower case, in the current memory context: `lower`. `None` for another type.
    pub fn lowered(self, collation: Oid) -> Option<TypedDatum> {
        let function = pg_sys::F_LOWER_TEXT.into();
        (self.length() == -1).then(|| TypedDatum {
            datum: values::call(function, collation, self.datum),
            type_of: pg_sys::TEXTOID,
        })
    }

    /// The datum.
    #[inline]
    pub fn datum(self) -> Datum {
        self.datum
    }

    /// The type.
    pub fn type_of(self) -> Oid {
        self.type_of
    }

    /// The length of values of the type, as `pg_type.typlen` has it.
    fn length(self) -> i16 {
        functions::get_typlen(self.type_of)
    }

    /// A value that a column of type numeric contains.
    pub fn of_numeric(datum: Datum) -> TypedDatum {
        TypedDatum {
            datum,
            type_of: pg_sys::NUMERICOID,
        }
    }

    /// The value in the text form of its type.
    pub fn to_text(self) -> String {
        let (mut output, mut is_varlena) = (pg_sys::InvalidOid, false);
        functions::getTypeOutputInfo(self.type_of, Place(&mut output), Place(&mut is_varlena));
        values::output(output, self.datum)
    }

    /// The payload of a value of variable length: the bytes of a text or a bytea. `None` for another type.
    pub fn bytes(self) -> Option<Box<[u8]>> {
        (self.length() == -1).then(|| datum::text_payload(self.datum))
    }

    /// The 16 bytes of a uuid; `None` for a type of another length.
    pub fn uuid(self) -> Option<Bytes16> {
        (self.length() == 16).then(|| datum::bytes16(self.datum))
    }

    /// An interval; `None` for another type.
    pub fn interval(self) -> Option<pg_sys::Interval> {
        let is_interval = catalog::base_type(self.type_of) == pg_sys::INTERVALOID;
        is_interval.then(|| datum::interval(self.datum))
    }

    /// A numeric; `None` for another type.
    pub fn numeric(self) -> Option<Numeric> {
        let is_numeric = catalog::base_type(self.type_of) == pg_sys::NUMERICOID;
        is_numeric.then(|| Numeric::new(self.datum))
    }

    /// The elements of an array of any dimensions, each `None` if it is NULL; `None` for another type.
    pub fn elements(self) -> Option<Vec<Option<TypedDatum>>> {
        let type_of = catalog::element_type(catalog::base_type(self.type_of));
        if type_of == pg_sys::InvalidOid {
            return None;
        }
        let elements = datum::array_elements(self.datum, type_of);
        let typed = |datum| TypedDatum { datum, type_of };
        Some(elements.into_iter().map(|e| e.map(typed)).collect())
    }

    /// The elements of an array of one dimension that counts from 1; `None` for anything else.
    pub fn list(self) -> Option<Vec<Option<TypedDatum>>> {
        let elements = self.elements()?;
        datum::is_list(self.datum).then_some(elements)
    }
}
