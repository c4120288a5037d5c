//! Translates conditions on columns of text, which the engine tests once for each entry of a dictionary.

use lanes_columnar::vector::predicate::{Predicate, TextPredicate};
use lanes_columnar::vector::text::OneOf;
use pgrx::pg_sys::{self, Oid};

use super::like_test::like_test;
use super::regex_test::{is_tested, regex_test};
use super::translate::{Constant, Scalars, Translation, Translator, text_column};
use crate::pg::catalog;
use crate::pg::exec::function_call::FunctionTest;
use crate::pg::tree::{Expr, ScalarArrayOpExpr};
use crate::pg::typed_datum::TypedDatum;

/// What a function of two texts is to the engine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TextFunction {
    /// Nothing: it is not one that the engine calls.
    None,
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// A function that the engine calls and that cannot fail under a deterministic collation.
    Other,
}

/// What a function, by its OID, is to the engine.
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

/// Whether a function matches a column of text with a regular expression that the engine tests.
fn is_regex_test(function: u32, collation: Oid, left: Expr<'_>, right: Expr<'_>) -> bool {
    let pattern = right.as_const().filter(|pattern| !pattern.constisnull());
    let is_tested = |pattern| is_tested(function, collation, TypedDatum::of_constant(pattern));
    text_column(left).is_some()
        && catalog::is_deterministic(collation)
        && pattern.is_some_and(is_tested)
}

impl Translator {
    /// A comparison of a column of text with a scalar; `None` if the function does not compare texts.
    ///
    /// # Errors
    /// Why the engine cannot evaluate the comparison.
    pub(super) fn text_comparison(
        &mut self,
        function: u32,
        collation: Oid,
        left: Expr<'_>,
        right: Expr<'_>,
    ) -> Translation<Option<Predicate>> {
        let by_code = match text_function(function) {
            TextFunction::None if is_regex_test(function, collation, left, right) => {
                TextFunction::Other
            }
            TextFunction::None => return Ok(None),
            by_code => by_code,
        };
        let (column, scalar, is_flipped) = match (text_column(left), text_column(right)) {
            (Some(column), None) if !right.has_vars() => (column, right, false),
            (None, Some(column)) if !left.has_vars() => (column, left, true),
            _ => return Err("a comparison of two texts of the row".into()),
        };
        if !catalog::is_deterministic(collation) {
            return Err("a nondeterministic collation".into());
        }
        let attribute = self.attribute(column)?;
        let Some(value) = self.constant(scalar)? else {
            // The scalar is NULL or not known yet.
            return Ok(Some(Predicate::Scalar(self.scalar(None))));
        };
        let equals = |value: TypedDatum| {
            let texts = value.bytes().into_iter().collect();
            Predicate::Text(TextPredicate::new(attribute, Box::new(OneOf::new(texts))))
        };
        Ok(Some(match (by_code, self.scalars_from()) {
            (TextFunction::Equal, _) => equals(value),
            (TextFunction::NotEqual, _) => Predicate::Not(Box::new(equals(value))),
            (_, Scalars::Unknown) => Predicate::ColumnIsNull(attribute),
            (_, Scalars::Evaluated(node)) => {
                let like = match is_flipped {
                    true => None,
                    false => like_test(function, collation, value, node)
                        .or_else(|| regex_test(function, collation, value, node)),
                };
                if let Some((test, is_negated)) = like {
                    let found = Predicate::Text(TextPredicate::new(attribute, test));
                    return Ok(Some(match is_negated {
                        true => Predicate::Not(Box::new(found)),
                        false => found,
                    }));
                }
                let test = FunctionTest::new(function, collation, value, is_flipped, node)
                    .ok_or("a function of other types than text")?;
                Predicate::Text(TextPredicate::new(attribute, Box::new(test)))
            }
        }))
    }

    /// Whether a column of text is an element of a list (`= ANY`), or none of them (`<> ALL`). The list is `None` if
    /// it is NULL or not known yet.
    ///
    /// # Errors
    /// Why the engine cannot evaluate the condition.
    pub(super) fn text_member(
        &mut self,
        operation: ScalarArrayOpExpr<'_>,
        member: Expr<'_>,
        elements: Option<Vec<Constant>>,
    ) -> Translation<Predicate> {
        let is_any = operation.useOr();
        let wanted = match is_any {
            true => TextFunction::Equal,
            false => TextFunction::NotEqual,
        };
        let column = text_column(member)
            .filter(|_| text_function(operation.opfuncid().to_u32()) == wanted)
            .ok_or("a list of texts with this operator")?;
        if !catalog::is_deterministic(operation.inputcollid()) {
            return Err("a nondeterministic collation".into());
        }
        let attribute = self.attribute(column)?;
        let elements = match self.elements_to_compare(elements, is_any) {
            Ok(elements) => elements,
            Err(decided) => return Ok(decided),
        };
        let has_null = elements.iter().any(Option::is_none);
        let texts = elements.into_iter().flatten();
        let test = OneOf::new(texts.filter_map(TypedDatum::bytes).collect());
        let mut found = Predicate::Text(TextPredicate::new(attribute, Box::new(test)));
        if has_null {
            // A text that equals no other element may equal the NULL, so the result is NULL.
            let unknown = self.scalar(None);
            found = Predicate::Or(vec![found, Predicate::Scalar(unknown)]);
        }
        Ok(match is_any {
            true => found,
            false => Predicate::Not(Box::new(found)),
        })
    }
}
