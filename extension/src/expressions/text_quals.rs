//! Conditions on columns of text, tested once a dictionary entry.

use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::predicate::{Predicate, TextPredicate};
use lanes_columnar::vector::text::OneOf;
use pgrx::pg_sys;

use super::call_memory::CallMemory;
use super::text_predicate::FunctionTest;
use super::translate::{Constant, Scalars, Translation, Translator, is_text_column};
use crate::pg::datum;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TextFunction {
    None,
    Equal,
    NotEqual,
    /// A function of two texts that cannot fail under a deterministic collation.
    Other,
}

pub fn text_function(function: u32) -> TextFunction {
    match function {
        pg_sys::F_TEXTEQ => TextFunction::Equal,
        pg_sys::F_TEXTNE => TextFunction::NotEqual,
        pg_sys::F_TEXT_LT
        | pg_sys::F_TEXT_LE
        | pg_sys::F_TEXT_GT
        | pg_sys::F_TEXT_GE
        | pg_sys::F_TEXTLIKE
        | pg_sys::F_TEXTNLIKE
        | pg_sys::F_TEXTICLIKE
        | pg_sys::F_TEXTICNLIKE => TextFunction::Other,
        _ => TextFunction::None,
    }
}

impl Translator {
    /// A comparison of a column of text with a scalar; `None` if this is no comparison of texts.
    ///
    /// # Safety
    /// Live expressions over one table.
    pub unsafe fn text_comparison(
        &mut self,
        function: u32,
        collation: pg_sys::Oid,
        left: *mut pg_sys::Node,
        right: *mut pg_sys::Node,
    ) -> Translation<Option<Predicate>> {
        // SAFETY: as for `predicate`.
        unsafe {
            let by_code = text_function(function);
            if by_code == TextFunction::None {
                return Ok(None);
            }
            let (column, scalar, flipped) = match (is_text_column(left), is_text_column(right)) {
                (true, false) if !pg_sys::contain_var_clause(right) => (left, right, false),
                (false, true) if !pg_sys::contain_var_clause(left) => (right, left, true),
                _ => return Err("a comparison of two texts of the row".into()),
            };
            if collation != pg_sys::InvalidOid && !pg_sys::get_collation_isdeterministic(collation)
            {
                return Err("a nondeterministic collation".into());
            }
            let attribute = self.attribute(column)?;
            let value = self.constant(scalar)?;
            let evaluated = matches!(self.scalars_from(), Scalars::Evaluated(_));
            let Some(datum) = value else {
                // NULL, or not known yet.
                let unknown = self.scalar(None);
                return Ok(Some(Predicate::Scalar(unknown)));
            };
            if !evaluated && by_code == TextFunction::Other {
                return Ok(Some(Predicate::ColumnIsNull(attribute)));
            }
            let test = |payload| TextPredicate::new(attribute, Box::new(OneOf::new(vec![payload])));
            Ok(Some(match by_code {
                TextFunction::Equal => Predicate::Text(test(datum::text_payload(datum))),
                TextFunction::NotEqual => {
                    Predicate::Not(Box::new(Predicate::Text(test(datum::text_payload(datum)))))
                }
                _ => {
                    let test = FunctionTest::new(
                        function.into(),
                        collation,
                        datum,
                        flipped,
                        CallMemory::new(self.scalars_from()),
                    );
                    Predicate::Text(TextPredicate::new(attribute, Box::new(test)))
                }
            }))
        }
    }

    /// Whether a column of text is one of some elements (`= ANY`), or none of them (`<> ALL`).
    ///
    /// # Safety
    /// A live expression over one table; the elements are texts.
    pub unsafe fn text_member(
        &mut self,
        expression: *mut pg_sys::ScalarArrayOpExpr,
        column: *mut pg_sys::Node,
        elements: Option<Vec<Constant>>,
    ) -> Translation<Predicate> {
        // SAFETY: the caller's promise.
        unsafe {
            let any = (*expression).useOr;
            let wanted = text_function((*expression).opfuncid.to_u32());
            let fits = match any {
                true => wanted == TextFunction::Equal,
                false => wanted == TextFunction::NotEqual,
            };
            if !fits || !is_text_column(column) {
                return Err("a list of texts with this operator".into());
            }
            let collation = (*expression).inputcollid;
            if collation != pg_sys::InvalidOid && !pg_sys::get_collation_isdeterministic(collation)
            {
                return Err("a nondeterministic collation".into());
            }
            let attribute = self.attribute(column)?;
            let Some(elements) = elements else {
                let unknown = self.scalar(None);
                return Ok(Predicate::Scalar(unknown));
            };
            if elements.is_empty() {
                // Nothing is compared, so that not even NULL makes a difference.
                let decided = self.scalar(Some(Scalar(u64::from(!any))));
                return Ok(Predicate::Scalar(decided));
            }
            let has_null = elements.iter().any(Option::is_none);
            let payloads = elements.iter().flatten().map(|d| datum::text_payload(*d));
            let test = OneOf::new(payloads.collect());
            let found = Predicate::Text(TextPredicate::new(attribute, Box::new(test)));
            // A NULL among the elements makes a miss NULL.
            let or_null = |predicate, scalars: &mut Self| {
                let unknown = scalars.scalar(None);
                Predicate::Or(vec![predicate, Predicate::Scalar(unknown)])
            };
            let found = if has_null {
                or_null(found, self)
            } else {
                found
            };
            Ok(if any {
                found
            } else {
                Predicate::Not(Box::new(found))
            })
        }
    }
}
