//! Calls of `bit_and`, `bit_or` and `bit_xor` of integers.

use lanes_columnar::aggregate::bits::{BitOperation, Bits};
use lanes_columnar::aggregate::{Accumulator, Argument};
use lanes_columnar::with_number;
use pgrx::pg_sys;

use super::aggregate_call::{Parts, Shape};
use super::translate::{Translation, Translator};
use crate::pg::tree::Expr;

/// How an aggregate, by its OID, combines the bits of integers.
pub fn operation(function: u32) -> Option<BitOperation> {
    use pg_sys::*;
    match function {
        F_BIT_AND_INT2 | F_BIT_AND_INT4 | F_BIT_AND_INT8 => Some(BitOperation::And),
        F_BIT_OR_INT2 | F_BIT_OR_INT4 | F_BIT_OR_INT8 => Some(BitOperation::Or),
        F_BIT_XOR_INT2 | F_BIT_XOR_INT4 | F_BIT_XOR_INT8 => Some(BitOperation::Xor),
        _ => None,
    }
}

/// The parts of such an aggregate.
///
/// # Errors
/// Why the engine cannot compute the argument.
pub fn parts(
    translator: &mut Translator,
    argument: Expr<'_>,
    operation: BitOperation,
) -> Translation<Parts> {
    let value = translator.value(argument)?;
    let number = value.number();
    let bits: Box<dyn Accumulator> = with_number!(number, T => Box::new(Bits::<T>::new(operation)));
    Ok((Argument::Number(value), bits, Shape::Number(number)))
}
