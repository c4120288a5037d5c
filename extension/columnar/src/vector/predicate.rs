//! Expressions with a truth value for each row, in SQL's three-valued logic.
//!
//! ```text
//! evaluate(predicate, selection) = (rows that are TRUE, rows that are FALSE), both within the selection; the rest is NULL
//! a AND b: b is evaluated on the rows where a is not FALSE      a OR b: on the rows where a is not TRUE
//! ```
//! An operator is therefore evaluated for a row only if PostgreSQL, which goes from left to right,
//! evaluates it too.

use lanes_simd::Comparison;

use super::Evaluation;
use super::conversion::narrow_twin;
use super::decimal::comparison::DecimalComparison;
use super::external_predicate::ExternalPredicate;
use super::frame::Frame;
use super::members::{Members, Membership};
use super::number::{Number, NumberType, Scalar};
use super::selection::Selection;
use super::value::{Operand, Value};
use crate::lane::LaneData;
use crate::with_number;
use crate::zone_map::Zone;

pub use super::bytes16_predicate::Bytes16Predicate;
pub use super::text_predicate::TextPredicate;

/// A truth a row.
pub enum Predicate {
    /// A column of bools.
    Bool(usize),
    /// A truth that holds for the whole scan, by its place in the frame's scalars: 1 or 0.
    Scalar(usize),
    /// Two numbers of the same type.
    Compare(Comparison, Value, Value),
    /// Whether a number is one of some scalars (`= ANY`). If NULL is among them, a miss is NULL.
    Member(Value, Members),
    /// A number is not one of some scalars (`<> ALL`).
    NotMember(Value, Members),
    /// A test on a column of text.
    Text(Box<TextPredicate>),
    /// A test on a column of 16 bytes.
    Bytes16(Box<Bytes16Predicate>),
    /// Two numbers of type `numeric`.
    Decimal(Box<DecimalComparison>),
    /// A test of a column that is evaluated outside of this crate.
    External(Box<ExternalPredicate>),
    /// A column of any type is NULL.
    ColumnIsNull(usize),
    /// A number is NULL.
    IsNull(Value),
    /// `IS TRUE`.
    IsTrue(Box<Predicate>),
    /// `IS FALSE`.
    IsFalse(Box<Predicate>),
    /// `IS UNKNOWN`.
    IsUnknown(Box<Predicate>),
    /// Negation.
    Not(Box<Predicate>),
    /// From left to right.
    And(Vec<Predicate>),
    /// From left to right.
    Or(Vec<Predicate>),
}

/// The results of a predicate for the selected rows.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    /// Rows for which it holds.
    pub yes: Selection,
    /// The rows that are FALSE.
    pub no: Selection,
}

impl Truth {
    /// A predicate that is FALSE for the other rows of those where it is known.
    #[inline]
    fn within(yes: Selection, known: &Selection) -> Truth {
        Truth {
            yes,
            no: known.and_not(&yes),
        }
    }

    /// A predicate that a number is in a list.
    #[inline]
    fn of_list(list: &Membership) -> Truth {
        Truth {
            yes: list.found,
            no: list.missing(),
        }
    }

    /// The negation of a predicate.
    #[inline]
    fn reversed(self) -> Truth {
        Truth {
            yes: self.no,
            no: self.yes,
        }
    }

    /// Whether selected rows are NULL, of which those in `known` are not.
    #[inline]
    fn of_nulls(known: &Selection, selection: &Selection) -> Truth {
        Truth {
            yes: selection.and_not(known),
            no: *known,
        }
    }
}

impl Predicate {
    /// Adds the attributes whose zones may spare the predicate a look at rows.
    pub fn zones_wanted(&self, attributes: &mut Vec<usize>) {
        match self {
            Predicate::Text(text) => attributes.push(text.attribute()),
            Predicate::IsTrue(inner)
            | Predicate::IsFalse(inner)
            | Predicate::IsUnknown(inner)
            | Predicate::Not(inner) => inner.zones_wanted(attributes),
            Predicate::And(parts) | Predicate::Or(parts) => {
                parts.iter().for_each(|part| part.zones_wanted(attributes));
            }
            Predicate::Bool(_)
            | Predicate::Scalar(_)
            | Predicate::Bytes16(_)
            | Predicate::Compare(..)
            | Predicate::Member(..)
            | Predicate::NotMember(..)
            | Predicate::Decimal(_)
            | Predicate::External(_)
            | Predicate::ColumnIsNull(_)
            | Predicate::IsNull(_) => {}
        }
    }

    /// Whether the zones of the vector prove that the predicate holds for no row. Only the zones
    /// that need the predicate's own state are checked here; the scan checks the others.
    pub fn is_ruled_out(&mut self, frame: &Frame<'_>) -> bool {
        match self {
            Predicate::Text(text) => text.is_ruled_out(frame),
            Predicate::And(parts) => parts.iter_mut().any(|part| part.is_ruled_out(frame)),
            Predicate::Or(parts) => parts.iter_mut().all(|part| part.is_ruled_out(frame)),
            _ => false,
        }
    }

    /// Whether zones of some rows prove that the predicate holds for none of them, without scalars:
    /// tests of 16 bytes contain their values.
    pub fn is_contradicted(&self, zone: &dyn Fn(usize) -> Option<Zone>) -> bool {
        match self {
            Predicate::Bytes16(test) => {
                zone(test.attribute()).is_some_and(|zone| test.is_ruled_out(&zone))
            }
            Predicate::And(parts) => parts.iter().any(|part| part.is_contradicted(zone)),
            Predicate::Or(parts) if !parts.is_empty() => {
                parts.iter().all(|part| part.is_contradicted(zone))
            }
            Predicate::IsTrue(inner) => inner.is_contradicted(zone),
            _ => false,
        }
    }

    /// Whether zones may do so.
    pub fn may_be_contradicted(&self) -> bool {
        match self {
            Predicate::Bytes16(_) => true,
            Predicate::And(parts) => parts.iter().any(Predicate::may_be_contradicted),
            Predicate::Or(parts) => {
                !parts.is_empty() && parts.iter().all(Predicate::may_be_contradicted)
            }
            Predicate::IsTrue(inner) => inner.may_be_contradicted(),
            _ => false,
        }
    }

    /// Removes from the selection the rows for which the predicate does not hold. This is cheaper
    /// than [`Self::evaluate`], because FALSE and NULL are not distinguished.
    ///
    /// # Errors
    /// The errors of the operators. The selection is then unspecified.
    pub fn narrow(&mut self, frame: &Frame<'_>, selection: &mut Selection) -> Evaluation<()> {
        match self {
            Predicate::Bool(attribute) => {
                let Some((words, validity)) = bools(frame, *attribute) else {
                    *selection = Selection::NONE;
                    return Ok(());
                };
                // SAFETY: a lane's bitmaps cover its rows, of which the vector is a part.
                unsafe {
                    selection.keep_bitmap(validity);
                    selection.keep_bitmap(words);
                }
            }
            Predicate::Compare(operator, left, right) => {
                let (number, a, b) = sides(left, right, frame, selection)?;
                for operand in [a, b] {
                    match operand {
                        // SAFETY: an operand's bitmap covers its vector.
                        Operand::Each { validity, .. } => unsafe {
                            selection.keep_bitmap(validity);
                        },
                        Operand::Same(_) => {}
                        Operand::Null => *selection = Selection::NONE,
                    }
                }
                let yes = with_number!(number, T => compare::<T>(*operator, a, b, frame.rows));
                selection.keep(&yes);
            }
            _ => *selection = self.evaluate(frame, selection)?.yes,
        }
        Ok(())
    }

    /// The number of the `count` selected rows for which the predicate holds.
    ///
    /// # Errors
    /// The errors of the operators.
    pub fn count(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
        count: usize,
    ) -> Evaluation<usize> {
        if let Predicate::Bool(attribute) = self
            && let Some((words, validity)) = bools(frame, *attribute)
            && validity.is_null()
        {
            // SAFETY: a lane's bitmaps cover its rows, of which the vector is a part.
            return Ok(unsafe {
                if count == frame.rows {
                    lanes_simd::combine::count_ones(words, frame.rows) as usize
                } else {
                    selection.count_bitmap(words)
                }
            });
        }
        let mut chosen = *selection;
        self.narrow(frame, &mut chosen)?;
        Ok(chosen.count())
    }

    /// The results of the predicate for the selected rows of the frame's vector.
    ///
    /// # Errors
    /// The errors of the operators.
    pub fn evaluate(&mut self, frame: &Frame<'_>, selection: &Selection) -> Evaluation<Truth> {
        Ok(match self {
            Predicate::Bool(attribute) => evaluate_bools(frame, *attribute, selection),
            Predicate::Scalar(index) => match frame.scalars[*index] {
                Some(Scalar(0)) => Truth::within(Selection::NONE, selection),
                Some(_) => Truth::within(*selection, selection),
                None => Truth::within(Selection::NONE, &Selection::NONE),
            },
            Predicate::Compare(operator, left, right) => {
                let (number, a, b) = sides(left, right, frame, selection)?;
                let known = b.valid(&a.valid(selection));
                let yes = with_number!(number, T => compare::<T>(*operator, a, b, frame.rows));
                Truth::within(yes.and(&known), &known)
            }
            Predicate::Member(value, list) => {
                Truth::of_list(&list.evaluate(value, frame, selection)?)
            }
            Predicate::NotMember(value, list) => {
                Truth::of_list(&list.evaluate(value, frame, selection)?).reversed()
            }
            Predicate::Text(text) => {
                let known = frame.present(text.attribute(), selection);
                text.evaluate(frame, &known)
            }
            Predicate::Bytes16(test) => {
                let known = frame.present(test.attribute(), selection);
                test.evaluate(frame, &known)
            }
            Predicate::Decimal(comparison) => comparison.evaluate(frame, selection)?,
            Predicate::External(asked) => asked.evaluate(frame, selection),
            Predicate::ColumnIsNull(attribute) => {
                let known = frame.present(*attribute, selection);
                Truth::of_nulls(&known, selection)
            }
            Predicate::IsNull(value) => {
                let known = value.evaluate(frame, selection)?.valid(selection);
                Truth::of_nulls(&known, selection)
            }
            Predicate::IsTrue(inner) => {
                Truth::within(inner.evaluate(frame, selection)?.yes, selection)
            }
            Predicate::IsFalse(inner) => {
                Truth::within(inner.evaluate(frame, selection)?.no, selection)
            }
            Predicate::IsUnknown(inner) => {
                let truth = inner.evaluate(frame, selection)?;
                let known = truth.yes.or(&truth.no);
                Truth::within(selection.and_not(&known), selection)
            }
            Predicate::Not(inner) => inner.evaluate(frame, selection)?.reversed(),
            Predicate::And(parts) => evaluate_and(parts, frame, selection)?,
            Predicate::Or(parts) => evaluate_or(parts, frame, selection)?,
        })
    }
}

/// The truths of a column of bools.
#[inline]
fn evaluate_bools(frame: &Frame<'_>, attribute: usize, selection: &Selection) -> Truth {
    let Some((words, validity)) = bools(frame, attribute) else {
        return Truth::within(Selection::NONE, &Selection::NONE);
    };
    // SAFETY: a lane's bitmaps cover its rows, of which the vector is a part.
    unsafe {
        let known = selection.and_bitmap(validity);
        Truth::within(known.and_bitmap(words), &known)
    }
}

/// The truths of predicates of which all must hold.
#[inline]
fn evaluate_and(
    parts: &mut [Predicate],
    frame: &Frame<'_>,
    selection: &Selection,
) -> Evaluation<Truth> {
    let mut truth = Truth::within(*selection, selection);
    let mut open = *selection;
    for part in parts {
        if open.is_empty() {
            break;
        }
        let next = part.evaluate(frame, &open)?;
        truth.yes = truth.yes.and(&next.yes);
        truth.no = truth.no.or(&next.no);
        open = open.and_not(&next.no);
    }
    Ok(truth)
}

/// The truths of predicates of which one must hold.
#[inline]
fn evaluate_or(
    parts: &mut [Predicate],
    frame: &Frame<'_>,
    selection: &Selection,
) -> Evaluation<Truth> {
    let mut truth = Truth {
        yes: Selection::NONE,
        no: *selection,
    };
    let mut open = *selection;
    for part in parts {
        if open.is_empty() {
            break;
        }
        let next = part.evaluate(frame, &open)?;
        truth.yes = truth.yes.or(&next.yes);
        truth.no = truth.no.and(&next.no);
        open = open.and_not(&next.yes);
    }
    Ok(truth)
}

/// The bits and the validity of a vector of bools; `None` if all of it is NULL.
fn bools(frame: &Frame<'_>, attribute: usize) -> Option<(*const u64, *const u64)> {
    match frame.lane(attribute).data {
        // SAFETY: a lane's bitmaps cover its rows, of which the vector is a part.
        LaneData::Bool(words) => unsafe {
            Some((words.add(frame.place / 64), frame.validity(attribute)))
        },
        _ => None,
    }
}

/// Both sides of a comparison, and the type in which they are compared. Numbers that are widened
/// only for a constant of the narrow type's range (`a real > 50`) are compared without widening.
fn sides(
    left: &mut Value,
    right: &mut Value,
    frame: &Frame<'_>,
    selection: &Selection,
) -> Evaluation<(NumberType, Operand, Operand)> {
    let twin = |value: &Value, other: &Value| match (value, other) {
        (Value::Convert(to, inner, _), Value::Scalar(_, index)) => {
            frame.scalars[*index].and_then(|scalar| narrow_twin(inner.number(), *to, scalar))
        }
        _ => None,
    };
    if let Some(constant) = twin(left, right)
        && let Value::Convert(_, inner, _) = left
    {
        let operand = inner.evaluate(frame, selection)?;
        return Ok((inner.number(), operand, Operand::Same(constant)));
    }
    if let Some(constant) = twin(right, left)
        && let Value::Convert(_, inner, _) = right
    {
        let operand = inner.evaluate(frame, selection)?;
        return Ok((inner.number(), Operand::Same(constant), operand));
    }
    let a = left.evaluate(frame, selection)?;
    let b = right.evaluate(frame, selection)?;
    Ok((left.number(), a, b))
}

/// The comparison of all rows, including rows that are not selected.
pub(crate) fn compare<T: Number>(
    operator: Comparison,
    a: Operand,
    b: Operand,
    rows: usize,
) -> Selection {
    let mut out = Selection::NONE;
    let words = out.words.as_mut_ptr();
    // SAFETY: operands hold `T`s for all rows of the vector; the bitmap has a word for every 64
    // rows of it.
    unsafe {
        match (a, b) {
            (Operand::Each { values: a, .. }, Operand::Each { values: b, .. }) => {
                lanes_simd::select::compare_pairs::<T>(a.cast(), b.cast(), rows, operator, words);
            }
            (Operand::Each { values, .. }, Operand::Same(scalar)) => {
                let constant = T::of_scalar(scalar);
                lanes_simd::select::compare::<T>(values.cast(), rows, operator, constant, words);
            }
            (Operand::Same(scalar), Operand::Each { values, .. }) => {
                let constant = T::of_scalar(scalar);
                lanes_simd::select::compare::<T>(
                    values.cast(),
                    rows,
                    flip(operator),
                    constant,
                    words,
                );
            }
            (Operand::Same(a), Operand::Same(b)) => {
                let order = T::of_scalar(a).order(T::of_scalar(b));
                if holds(operator, order) {
                    out = Selection::first(rows);
                }
            }
            (Operand::Null, _) | (_, Operand::Null) => {}
        }
    }
    out
}

/// The operator that holds for exchanged sides.
pub fn flip(operator: Comparison) -> Comparison {
    match operator {
        Comparison::Equal => Comparison::Equal,
        Comparison::NotEqual => Comparison::NotEqual,
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
    }
}

/// Whether an operator holds between two values of this order.
pub fn holds(operator: Comparison, order: std::cmp::Ordering) -> bool {
    match operator {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}
