//! Expressions that the engine does not have: PostgreSQL evaluates them, for each row or once for each entry of a
//! dictionary.
//!
//! ```text
//! length(url), CASE … END, a ^ 2        ──► a number a row      ──► argument of an aggregate, or key
//! lower(name), extract(hour FROM ts)    ──► a code a row        ──► key; the values are looked up by code
//! corr(a, b), string_agg(name, ',')     ──► rows                ──► PostgreSQL's transition function
//! ```
//! The engine evaluates the parts of an expression that it has, and only the smallest part that it does not have is
//! left to PostgreSQL. A condition on one column is evaluated [once for each value](super::value_quals) instead.
//!
//! Invariants:
//! - Such an expression reads columns of the node's own table only, calls no volatile function and has no subquery. So
//!   it is a function of the row as long as its node does not start again.
//! - It is evaluated only for rows that pass the conditions and the FILTER, because it may raise an error.

use std::cell::RefCell;
use std::rc::Rc;

use lanes_columnar::aggregate::accumulator::Count;
use lanes_columnar::aggregate::{Accumulator, Argument, Key};
use lanes_columnar::vector::external_value::{ExternalValue, RowFunction};
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::Value;
use lanes_simd::Comparison;
use pgrx::pg_sys::{self, NodeTag};

use super::aggregate_call::{KeyShape, Parts, Shape};
use super::date_parts::{self, ByRange};
use super::translate::{Scalars, Translation, Translator, to_scalar};
use crate::pg::catalog;
use crate::pg::exec::memory::Memory;
use crate::pg::exec::row_evaluator::RowEvaluator;
use crate::pg::exec::transition::TransitionAggregate;
use crate::pg::exec::value_codes::ValueCodes;
use crate::pg::names::function_name;
use crate::pg::tree::{Aggref, Expr, Kind, SortGroupClause, View, walk};

/// The codes of a key's values, which the key and the owner of the groups share.
pub type KeyCodes = Rc<RefCell<ValueCodes>>;

/// An expression of a number type.
struct Numbers {
    evaluator: RowEvaluator,
    number: NumberType,
}

impl RowFunction for Numbers {
    fn compute(
        &mut self,
        frame: &Frame<'_>,
        rows: &Selection,
        take: &mut dyn FnMut(usize, Option<Scalar>),
    ) {
        let number = self.number;
        let each = |row, value: Option<pg_sys::Datum>| {
            take(row, value.map(|value| to_scalar(number, value)))
        };
        self.evaluator.each(frame, rows, each);
    }
}

/// A condition, as 1 or 0.
struct Truths(RowEvaluator);

impl RowFunction for Truths {
    fn compute(
        &mut self,
        frame: &Frame<'_>,
        rows: &Selection,
        take: &mut dyn FnMut(usize, Option<Scalar>),
    ) {
        let is_true = |value: pg_sys::Datum| Scalar(u64::from(value.value() & 0xff != 0));
        let each = |row, value: Option<pg_sys::Datum>| take(row, value.map(is_true));
        self.0.each(frame, rows, each);
    }
}

/// An expression of any type that has a hash. NULL has a code too.
struct Coded {
    evaluator: RowEvaluator,
    codes: KeyCodes,
}

impl RowFunction for Coded {
    fn compute(
        &mut self,
        frame: &Frame<'_>,
        rows: &Selection,
        take: &mut dyn FnMut(usize, Option<Scalar>),
    ) {
        let mut codes = self.codes.borrow_mut();
        let each = |row, value| take(row, Some(Scalar(codes.code(value).into())));
        self.evaluator.each(frame, rows, each);
    }
}

impl Translator {
    /// Lets PostgreSQL evaluate what the engine does not have, in keys of groups and arguments of aggregates, where
    /// this node's table is the only one that is read by lanes.
    pub fn with_row_functions(mut self) -> Translator {
        self.has_row_functions = true;
        self
    }

    /// A number that PostgreSQL computes from columns of a row.
    ///
    /// # Errors
    /// Why the expression is no function of the row.
    pub(super) fn row_number(&mut self, expr: Expr<'_>, number: NumberType) -> Translation<Value> {
        let attributes = self.read_by_row(expr)?;
        let Scalars::Evaluated(node) = self.scalars_from() else {
            return Ok(self.null(number));
        };
        let evaluator = RowEvaluator::new(expr, &attributes, node)?;
        let function = Box::new(Numbers { evaluator, number });
        Ok(external(expr, number, attributes, function))
    }

    /// An aggregate whose arguments and states PostgreSQL computes.
    ///
    /// # Errors
    /// Why the arguments are no functions of the row, or the aggregate needs more than rows in any order.
    pub(super) fn row_aggregate(
        &mut self,
        call: Aggref<'_>,
        arguments: &[Expr<'_>],
    ) -> Translation<Parts> {
        let name = || function_name(call.aggfnoid().to_u32());
        if !call.aggorder().is_empty() {
            return Err(format!("ORDER BY in {}", name()));
        }
        if !call.aggdistinct().is_empty() {
            return Err(format!("DISTINCT in {}", name()));
        }
        TransitionAggregate::check(call)?;
        self.by_row += 1;
        let mut attributes = Vec::new();
        for argument in arguments {
            attributes.extend(self.read_by_row(*argument)?);
        }
        attributes.sort_unstable();
        attributes.dedup();
        let states: Box<dyn Accumulator> = match self.scalars_from() {
            Scalars::Unknown => Box::new(Count::default()),
            Scalars::Evaluated(node) => Box::new(TransitionAggregate::new(
                call,
                arguments,
                &attributes,
                node,
            )?),
        };
        Ok((Argument::Rows, states, Shape::Datum))
    }

    /// A condition that PostgreSQL evaluates for each row.
    ///
    /// # Errors
    /// Why the condition is no function of the row.
    pub(super) fn row_truth(&mut self, expr: Expr<'_>) -> Translation<Predicate> {
        let number = NumberType::I16;
        let attributes = self.read_by_row(expr)?;
        let value = match self.scalars_from() {
            Scalars::Unknown => self.null(number),
            Scalars::Evaluated(node) => {
                let function = Truths(RowEvaluator::new(expr, &attributes, node)?);
                Value::External(ExternalValue::new(number, attributes, Box::new(function)))
            }
        };
        let one = Value::Scalar(number, self.scalar(Some(Scalar(1))));
        Ok(Predicate::Compare(Comparison::Equal, value, one))
    }

    /// A key of groups that PostgreSQL computes, and whose values have codes.
    ///
    /// # Errors
    /// Why the expression is no function of the row, or values of its type have no hash.
    fn coded_key(
        &mut self,
        expr: Expr<'_>,
        clause: Option<SortGroupClause<'_>>,
        codes: &mut KeysByCode,
    ) -> Translation<(Key, KeyShape)> {
        let has_hash = clause.is_none_or(|clause| {
            clause.hashable() && catalog::hashes_for(expr.type_of(), clause.eqop())
        });
        if !has_hash {
            return Err("GROUP BY values without a hash".into());
        }
        let attributes = self.read_by_row(expr)?;
        let shape = KeyShape::Joined(codes.first + codes.found.len());
        let value = match (self.scalars_from(), codes.memory) {
            (Scalars::Evaluated(node), Some(memory)) => {
                let evaluator = RowEvaluator::new(expr, &attributes, node)?;
                let of_key = Rc::new(RefCell::new(ValueCodes::new(expr.as_ptr(), memory)));
                codes.found.push(of_key.clone());
                let function = Box::new(Coded {
                    evaluator,
                    codes: of_key,
                });
                external(expr, NumberType::I64, attributes, function)
            }
            _ => {
                codes.planned += 1;
                self.null(NumberType::I64)
            }
        };
        Ok((Key::Number(value), shape))
    }

    /// The attributes of an expression that PostgreSQL may evaluate for each row.
    fn read_by_row(&mut self, expr: Expr<'_>) -> Translation<Vec<usize>> {
        let mut columns = Vec::new();
        let mut refusal = None;
        walk::expression(expr, &mut |node, _| {
            refusal = match node.kind() {
                Kind::Var(var) if var.varlevelsup() > 0 => Some("an outer column"),
                Kind::Var(var) if self.is_given(var) => Some("a joined column"),
                Kind::Var(var) if var.varattno() <= 0 => Some("a system column or whole row"),
                Kind::Var(var) => {
                    columns.push(var);
                    None
                }
                Kind::SubPlan(_)
                | Kind::Other(
                    NodeTag::T_AlternativeSubPlan | NodeTag::T_SubLink | NodeTag::T_CurrentOfExpr,
                ) => Some("a subquery"),
                Kind::PlaceHolderVar(_) => Some("an expression below an outer join"),
                Kind::Aggref(_) | Kind::GroupingFunc(_) | Kind::WindowFunc(_) => {
                    Some("an aggregate in an expression")
                }
                _ => None,
            };
            refusal.is_some()
        });
        if let Some(refusal) = refusal {
            return Err(refusal.into());
        }
        if expr.is_volatile() {
            return Err("a volatile function".into());
        }
        self.by_row += 1;
        let attributes = columns.into_iter().map(|column| self.attribute(column));
        let mut attributes = attributes.collect::<Translation<Vec<usize>>>()?;
        attributes.sort_unstable();
        attributes.dedup();
        Ok(attributes)
    }
}

/// The results of a function that evaluates an expression over some attributes.
fn external(
    expr: Expr<'_>,
    number: NumberType,
    attributes: Vec<usize>,
    function: Box<dyn RowFunction>,
) -> Value {
    let function = match (&attributes[..], date_parts::clock_of(expr)) {
        (&[attribute], Some(clock)) => Box::new(ByRange::new(attribute, function, clock)),
        _ => function,
    };
    Value::External(ExternalValue::new(number, attributes, function))
}

/// The keys of a grouping whose values have codes.
#[derive(Default)]
pub struct KeysByCode {
    /// The number of lists of values before those of these keys.
    first: usize,
    /// Memory for values; none while a query is planned.
    memory: Option<Memory>,
    found: Vec<KeyCodes>,
    planned: usize,
}

impl KeysByCode {
    /// No keys yet. So many lists of values come before theirs.
    pub fn new(first: usize, memory: Memory) -> KeysByCode {
        KeysByCode {
            first,
            memory: Some(memory),
            ..KeysByCode::default()
        }
    }

    /// The key that an expression of GROUP BY is: one of the engine's, or one that PostgreSQL computes. The planner
    /// passes the clause, and the executor relies on what the planner checked.
    ///
    /// # Errors
    /// Why neither can group by it.
    pub fn key(
        &mut self,
        translator: &mut Translator,
        expr: Expr<'_>,
        clause: Option<SortGroupClause<'_>>,
    ) -> Translation<(Key, KeyShape)> {
        let before = translator.progress();
        super::aggregate_call::key(translator, expr).or_else(|reason| {
            if !translator.has_row_functions {
                return Err(reason);
            }
            translator.go_back(before);
            let key = translator.coded_key(expr, clause, self);
            key.map_err(|_| reason)
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.planned == 0
    }

    /// Bytes of the values and their codes.
    pub fn bytes(&self) -> usize {
        self.found.iter().map(|codes| codes.borrow().bytes()).sum()
    }

    /// Takes the values of each key, by code.
    pub fn take_values(&mut self) -> Vec<Vec<Option<pg_sys::Datum>>> {
        let found = std::mem::take(&mut self.found);
        found
            .iter()
            .map(|codes| codes.borrow_mut().take_values())
            .collect()
    }
}
