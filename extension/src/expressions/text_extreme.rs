//! Calls of `min` and `max` of texts.

use lanes_columnar::aggregate::Argument;
use lanes_columnar::aggregate::extreme::End;
use lanes_columnar::aggregate::item_extreme::ItemExtreme;
use pgrx::pg_sys;

use super::aggregate_call::{Parts, Shape};
use super::sort_key::ItemsBy;
use super::translate::{Translation, Translator, text_column};
use crate::pg::catalog;
use crate::pg::ports::ItemFamily;
use crate::pg::tree::{Aggref, Expr, Var};

/// The end of texts that an aggregate, by its OID, finds, and what kind of texts they are.
fn end_of(function: u32) -> Option<(End, ItemFamily)> {
    match function {
        pg_sys::F_MIN_TEXT => Some((End::Minimum, ItemFamily::Text)),
        pg_sys::F_MAX_TEXT => Some((End::Maximum, ItemFamily::Text)),
        pg_sys::F_MIN_BPCHAR => Some((End::Minimum, ItemFamily::Padded)),
        pg_sys::F_MAX_BPCHAR => Some((End::Maximum, ItemFamily::Padded)),
        _ => None,
    }
}

/// The parts of such an aggregate; `None` for any other one.
///
/// # Errors
/// Why the engine cannot find the extreme.
pub fn parts(
    translator: &mut Translator,
    call: Aggref<'_>,
    argument: Expr<'_>,
) -> Translation<Option<Parts>> {
    let Some((end, family)) = end_of(call.aggfnoid().to_u32()) else {
        return Ok(None);
    };
    let argument = argument.stripped();
    let column = match family {
        ItemFamily::Padded => padded_column(argument),
        _ => text_column(argument),
    };
    let column = column.ok_or("min or max of a text that is no column")?;
    // PostgreSQL raises an error if there is no collation. If different texts may be equal, it returns a certain one.
    let collation = call.inputcollid();
    if collation == pg_sys::InvalidOid || !catalog::is_deterministic(collation) {
        return Err("min or max without a deterministic collation".into());
    }
    let attribute = translator.attribute(column)?;
    let sort = ItemsBy { family, collation }.sort();
    let states = ItemExtreme::new(attribute, sort, end);
    Ok(Some((Argument::Rows, Box::new(states), Shape::Datum)))
}

/// The column of `char(n)` that an expression is, if it is one. All its texts have one length, so those that differ
/// only in blanks at the end are equal.
fn padded_column(expression: Expr<'_>) -> Option<Var<'_>> {
    let column = expression.as_var()?;
    let has_length = column.vartypmod() > 0 && column.vartype() == pg_sys::BPCHAROID;
    has_length.then_some(column)
}
