//! The window functions that are covered, and their frames.

use lanes_columnar::aggregate::extreme::End;
use lanes_columnar::over::distance::{Distance, Measure};
use lanes_columnar::over::frames::{Bound, Frame};
use lanes_columnar::over::{Call, Function};
use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys;

use super::range;
use crate::expressions::aggregate_call::end_of;
use crate::expressions::translate::{Translation, Translator, number_type};
use crate::nodes::window::plan::argument;
use crate::pg::names::{function_name, type_name};
use crate::pg::tree::{Expr, WindowClause, WindowFunc};

/// How the argument of a call is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// There is none.
    Nothing,
    /// A number for each row.
    Number(NumberType),
    /// A boolean for each row.
    Truth,
    /// Whether a column has a value.
    Presence(usize),
    /// A column, of any type, of another row.
    Column(usize),
}

/// The function of a call.
///
/// # Errors
/// The function is not covered, or an argument that has to be a constant is none.
pub fn function_of(call: WindowFunc<'_>) -> Translation<Function> {
    use pg_sys::*;
    let function = call.winfnoid().to_u32();
    Ok(match function {
        F_ROW_NUMBER => Function::RowNumber,
        F_RANK_ => Function::Rank,
        F_DENSE_RANK_ => Function::DenseRank,
        F_PERCENT_RANK_ => Function::PercentRank,
        F_CUME_DIST_ => Function::CumeDist,
        F_NTILE => Function::Ntile(positive(call, 0)?),
        F_LAG_ANYELEMENT => Function::Offset(-1),
        F_LAG_ANYELEMENT_INT4 | F_LAG_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE => {
            Function::Offset(-integer(call, 1)?)
        }
        F_LEAD_ANYELEMENT => Function::Offset(1),
        F_LEAD_ANYELEMENT_INT4 | F_LEAD_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE => {
            Function::Offset(integer(call, 1)?)
        }
        F_FIRST_VALUE => Function::First,
        F_LAST_VALUE => Function::Last,
        F_NTH_VALUE => Function::Nth(positive(call, 1)?),
        F_COUNT_ | F_COUNT_ANY => Function::Count,
        F_SUM_INT2 | F_SUM_INT4 | F_SUM_INT8 | F_SUM_FLOAT4 | F_SUM_FLOAT8 => Function::Sum,
        F_AVG_INT2 | F_AVG_INT4 | F_AVG_INT8 | F_AVG_FLOAT4 | F_AVG_FLOAT8 => Function::Average,
        _ => match end_of(function) {
            Some(End::Minimum) => Function::Minimum,
            Some(End::Maximum) => Function::Maximum,
            None => return Err(refused(call)),
        },
    })
}

/// The reason for which a function, with its type of argument, is not covered.
fn refused(call: WindowFunc<'_>) -> String {
    let name = function_name(call.winfnoid().to_u32());
    match call.args().first() {
        None => format!("function {name}"),
        Some(argument) => format!("function {name} of type {}", type_name(argument.type_of())),
    }
}

/// A constant integer that is not NULL.
fn constant(expression: Option<Expr<'_>>, type_of: pg_sys::Oid) -> Option<i64> {
    let constant = expression?.as_const()?;
    if constant.constisnull() || constant.consttype() != type_of {
        return None;
    }
    let value = constant.constvalue().value();
    Some(match type_of {
        pg_sys::INT4OID => i64::from(value as i32),
        _ => value as i64,
    })
}

fn integer(call: WindowFunc<'_>, index: usize) -> Translation<i64> {
    let value = constant(call.args().get(index), pg_sys::INT4OID);
    value.ok_or_else(|| {
        let name = function_name(call.winfnoid().to_u32());
        format!("an argument of {name} that is no constant")
    })
}

fn positive(call: WindowFunc<'_>, index: usize) -> Translation<i64> {
    let value = integer(call, index)?;
    match value > 0 {
        true => Ok(value),
        // PostgreSQL raises the error.
        false => Err("an argument that is not positive".into()),
    }
}

/// The value that `lag` and `lead` return where there is no row: `Some(None)` is NULL; `None` if it is no constant.
#[allow(clippy::option_option)]
pub fn default_of(call: WindowFunc<'_>) -> Option<Option<pg_sys::Datum>> {
    let Some(default) = call.args().get(2) else {
        return Some(None);
    };
    let constant = default.as_const()?;
    Some((!constant.constisnull()).then_some(constant.constvalue()))
}

/// How the argument of a call is read. The translator takes note of its columns.
///
/// # Errors
/// The engine cannot compute the argument.
pub fn wanted(
    translator: &mut Translator,
    call: WindowFunc<'_>,
    function: Function,
) -> Translation<Wanted> {
    let is_of_row = matches!(
        function,
        Function::Offset(_) | Function::First | Function::Last | Function::Nth(_)
    );
    let is_aggregate = matches!(
        function,
        Function::Count | Function::Sum | Function::Average | Function::Minimum | Function::Maximum
    );
    if call.args().is_empty() || !(is_of_row || is_aggregate) {
        return Ok(Wanted::Nothing);
    }
    let x = argument(call, 0)?;
    if let Some(column) = x.stripped().as_var() {
        if is_of_row {
            return Ok(Wanted::Column(translator.attribute(column)?));
        }
        if function == Function::Count {
            return Ok(Wanted::Presence(translator.attribute(column)?));
        }
    }
    if x.type_of() == pg_sys::BOOLOID && (is_of_row || function == Function::Count) {
        translator.predicate(x)?;
        return Ok(Wanted::Truth);
    }
    let number = translator.value(x)?.number();
    match number_type(x.type_of()) == Some(number) {
        true => Ok(Wanted::Number(number)),
        false => Err(refused(call)),
    }
}

/// The frame of a window whose rows are ordered by these expressions.
///
/// # Errors
/// The frame is not covered.
pub fn frame_of(window: WindowClause<'_>, orders: &[Expr<'_>]) -> Translation<Frame> {
    let options = window.frameOptions() as u32;
    let has = |option: u32| options & option != 0;
    if has(pg_sys::FRAMEOPTION_EXCLUSION) {
        return Err("a frame with EXCLUDE".into());
    }
    let is_rows = has(pg_sys::FRAMEOPTION_ROWS);
    let offset = |expression: Option<Expr<'_>>, sign: i64| match (is_rows, orders) {
        (true, _) => {
            let offset = constant(expression, pg_sys::INT8OID).filter(|offset| *offset >= 0);
            let offset = offset.ok_or("a frame whose offset is no constant")?;
            // No partition has so many rows.
            Ok(Bound::Row(sign * offset.min(i64::from(i32::MAX))))
        }
        (false, [order]) if has(pg_sys::FRAMEOPTION_RANGE) => {
            let Distance { by, of } = range::distance(expression, order.type_of())?;
            Ok(Bound::Distance(Distance { by: sign * by, of }))
        }
        _ => Err("a frame of GROUPS with an offset".to_owned()),
    };
    let current = if is_rows { Bound::Row(0) } else { Bound::Peers };
    let start = if has(pg_sys::FRAMEOPTION_START_UNBOUNDED_PRECEDING) {
        Bound::Unbounded
    } else if has(pg_sys::FRAMEOPTION_START_CURRENT_ROW) {
        current
    } else if has(pg_sys::FRAMEOPTION_START_OFFSET_PRECEDING) {
        offset(window.startOffset(), -1)?
    } else {
        offset(window.startOffset(), 1)?
    };
    let end = if has(pg_sys::FRAMEOPTION_END_UNBOUNDED_FOLLOWING) {
        Bound::Unbounded
    } else if has(pg_sys::FRAMEOPTION_END_CURRENT_ROW) {
        current
    } else if has(pg_sys::FRAMEOPTION_END_OFFSET_PRECEDING) {
        offset(window.endOffset(), -1)?
    } else {
        offset(window.endOffset(), 1)?
    };
    Ok(Frame { start, end })
}

/// How many numbers a plan stores for a call.
pub const NUMBERS: usize = 7;

/// The numbers that a plan stores for a call, beside its function.
pub fn numbers(call: &Call) -> [i32; NUMBERS] {
    let bound = |bound: Bound| {
        let (kind, offset) = match bound {
            Bound::Unbounded => (0, 0),
            Bound::Peers => (1, 0),
            Bound::Row(offset) => (2, offset),
            Bound::Distance(distance) => (3 + distance.of.number(), distance.by),
        };
        // Both halves of the offset.
        [kind, (offset >> 32) as i32, offset as i32]
    };
    let ([a, b, c], [d, e, f]) = (bound(call.frame.start), bound(call.frame.end));
    [a, b, c, d, e, f, call.order_keys as i32]
}

/// The call of a function with the numbers that a plan stores.
pub fn of_numbers(function: Function, numbers: &[i32]) -> Call {
    let bound = |numbers: &[i32]| {
        let offset = i64::from(numbers[1]) << 32 | i64::from(numbers[2] as u32);
        match numbers[0] {
            0 => Bound::Unbounded,
            1 => Bound::Peers,
            2 => Bound::Row(offset),
            kind => Bound::Distance(Distance {
                by: offset,
                of: Measure::of_number(kind - 3),
            }),
        }
    };
    Call {
        function,
        frame: Frame {
            start: bound(&numbers[..3]),
            end: bound(&numbers[3..6]),
        },
        order_keys: numbers[6] as usize,
    }
}
