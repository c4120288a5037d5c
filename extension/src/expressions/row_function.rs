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
use lanes_columnar::aggregate::distinct::Distinct;
use lanes_columnar::aggregate::{Accumulator, Argument, Key};
use lanes_columnar::vector::decimal::DecimalValue;
use lanes_columnar::vector::external_value::{ExternalValue, RowFunction};
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::keyed_function::KeyedFunction;
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::Value;
use lanes_simd::Comparison;
use pgrx::pg_sys::Datum;

use super::aggregate_call::{KeyShape, Parts, Shape};
use super::date_parts::{self, ByRange};
use super::decimals;
use super::translate::{Scalars, Translation, Translator, to_scalar};
use crate::pg::catalog;
use crate::pg::exec::decimal_aggregate::{DecimalAggregate, DecimalStates};
use crate::pg::exec::distinct_aggregate::DistinctAggregate;
use crate::pg::exec::memory::Memory;
use crate::pg::exec::row_evaluator::{RowEvaluator, RowReader};
use crate::pg::exec::transition::TransitionAggregate;
use crate::pg::exec::value_codes::ValueCodes;
use crate::pg::exec::value_order::ValueOrder;
use crate::pg::tree::{Aggref, Expr, SortGroupClause, View};

/// The codes of a key's values, which the key and the owner of the groups share.
pub type KeyCodes = Rc<RefCell<ValueCodes>>;

/// An expression, and the number or the code that a value of it becomes.
struct Evaluated<F> {
    evaluator: RowEvaluator,
    scalar_of: F,
}

impl<F: FnMut(Option<Datum>) -> Option<Scalar>> RowFunction for Evaluated<F> {
    fn compute(
        &mut self,
        frame: &Frame<'_>,
        rows: &Selection,
        take: &mut dyn FnMut(usize, Option<Scalar>),
    ) {
        let scalar_of = &mut self.scalar_of;
        let each = |row, value| take(row, scalar_of(value));
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

    /// A number that PostgreSQL computes from columns of a row; `None` if the expression is no function of the row.
    pub(super) fn row_number(&mut self, expr: Expr<'_>, number: NumberType) -> Option<Value> {
        self.row_value(expr, number, move |value| {
            value.map(|value| to_scalar(number, value))
        })
    }

    /// A condition that PostgreSQL evaluates for each row; `None` if it is no function of the row.
    pub(super) fn row_truth(&mut self, expr: Expr<'_>) -> Option<Predicate> {
        let number = NumberType::I16;
        let is_true = |value: Datum| Scalar(u64::from(value.value() & 0xff != 0));
        let value = self.row_value(expr, number, move |value| value.map(is_true))?;
        let one = Value::Scalar(number, self.scalar(Some(Scalar(1))));
        Some(Predicate::Compare(Comparison::Equal, value, one))
    }

    /// An aggregate whose arguments and states PostgreSQL computes. `None` if an argument is no function of the row, or
    /// the aggregate needs more than rows in any order.
    pub(super) fn row_aggregate(
        &mut self,
        call: Aggref<'_>,
        arguments: &[Expr<'_>],
    ) -> Option<Parts> {
        if !call.aggdistinct().is_empty() {
            return self.distinct_aggregate(call, arguments);
        }
        if !call.aggorder().is_empty() {
            return self.ordered_aggregate(call);
        }
        let functions = TransitionAggregate::functions(call)?;
        self.by_row += 1;
        let mut attributes = Vec::new();
        for argument in arguments {
            attributes.extend(self.read_by_row(*argument)?);
        }
        attributes.sort_unstable();
        attributes.dedup();
        let decimals = self.of_decimals(call, arguments);
        if decimals.is_some() {
            self.by_row -= 1;
        }
        let Scalars::Evaluated(node) = self.scalars_from() else {
            return Some((Argument::Rows, Box::new(Count::default()), Shape::Datum));
        };
        let reader = RowReader::new(&attributes, node).ok()?;
        let can_merge = decimals.is_some();
        let general = TransitionAggregate::new(call, functions, arguments, reader, can_merge, node);
        let states: Box<dyn Accumulator> = match decimals {
            None => Box::new(general),
            Some((argument, states)) => {
                let is_partial = call.is_partial();
                Box::new(DecimalAggregate::new(argument, states, general, is_partial))
            }
        };
        Some((Argument::Rows, states, Shape::Datum))
    }

    /// An aggregate with DISTINCT whose states PostgreSQL computes. `None` if other arguments than the first one vary,
    /// or the order is not that of the first one.
    fn distinct_aggregate(&mut self, call: Aggref<'_>, arguments: &[Expr<'_>]) -> Option<Parts> {
        let (&value, others) = arguments.split_first()?;
        let others: Vec<_> = others
            .iter()
            .map(|it| it.as_const())
            .collect::<Option<_>>()?;
        let clause = call.aggdistinct().first()?;
        let first = call.args().first()?.ressortgroupref();
        let mut order = call.aggorder().iter();
        let is_ordered = order.all(|clause| clause.tleSortGroupRef() == first);
        let has_hash = clause.hashable() && catalog::hashes_for(value.type_of(), clause.eqop());
        if clause.tleSortGroupRef() != first || !is_ordered || !has_hash || !value.has_vars() {
            return None;
        }
        let functions = TransitionAggregate::functions(call)?;
        let Scalars::Evaluated(node) = self.scalars_from() else {
            self.row_value(value, NumberType::I64, |_| None)?;
            return Some((Argument::Rows, Box::new(Count::default()), Shape::Datum));
        };
        let memory = node.memory().child(c"lanes distinct values");
        let codes = Rc::new(RefCell::new(ValueCodes::new(value.as_ptr(), memory)));
        let of_values = codes.clone();
        let code = move |value| Some(Scalar(of_values.borrow_mut().code(value).into()));
        let argument = self.row_value(value, NumberType::I64, code)?;
        let reader = RowReader::new(&[], node).ok()?;
        let states = TransitionAggregate::new(call, functions, &[], reader, false, node);
        let order = ValueOrder::new(clause, value.collation(), node);
        let states = DistinctAggregate::accumulator(states, (codes, memory), order, &others);
        let argument = Argument::Distinct(Distinct::of_codes(argument));
        Some((argument, states, Shape::Datum))
    }

    /// The argument and the states of an aggregate of decimals; `None` for any other aggregate.
    fn of_decimals(
        &mut self,
        call: Aggref<'_>,
        arguments: &[Expr<'_>],
    ) -> Option<(DecimalValue, DecimalStates)> {
        let states = decimals::states(call.aggfnoid().to_u32())?;
        let before = self.progress();
        match self.decimal_argument(*arguments.first()?) {
            Ok(argument) => Some((argument, states)),
            Err(_) => {
                self.go_back(before);
                None
            }
        }
    }

    /// A key of groups that PostgreSQL computes, and whose values have codes. `None` if the
    /// expression is no function of the row, or values of its type have no hash.
    fn coded_key(
        &mut self,
        expr: Expr<'_>,
        clause: Option<SortGroupClause<'_>>,
        keys: &mut KeysByCode,
    ) -> Option<(Key, KeyShape)> {
        let has_hash = clause.is_none_or(|clause| {
            clause.hashable() && catalog::hashes_for(expr.type_of(), clause.eqop())
        });
        if !has_hash {
            return None;
        }
        let memory = keys.memory;
        let codes = memory.map(|memory| ValueCodes::new(expr.as_ptr(), memory));
        let codes = codes.map(|codes| Rc::new(RefCell::new(codes)));
        let before = self.progress();
        let (value, constants) = match self.constant_case(expr, codes.as_ref()) {
            Ok(case) => (case.value, case.results),
            Err(_) => {
                self.go_back(before);
                // Constants that were met before the failure are no values of rows.
                if let Some(codes) = &codes {
                    codes.borrow_mut().clear();
                }
                let of_key = codes.clone();
                let value = self.row_value(expr, NumberType::I64, move |value| {
                    let codes = of_key.as_ref();
                    codes.map(|codes| Scalar(codes.borrow_mut().code(value).into()))
                })?;
                (value, Vec::new())
            }
        };
        let shape = KeyShape::Joined(keys.first + keys.count);
        keys.count += 1;
        keys.has_computed |= constants.is_empty();
        keys.codes.extend(codes.map(|codes| (codes, constants)));
        Some((Key::Number(value), shape))
    }

    /// An expression that PostgreSQL evaluates for each row, and whose values `scalar_of` turns into numbers of a type.
    pub(super) fn row_value(
        &mut self,
        expr: Expr<'_>,
        number: NumberType,
        scalar_of: impl FnMut(Option<Datum>) -> Option<Scalar> + 'static,
    ) -> Option<Value> {
        let attributes = self.read_by_row(expr)?;
        let Scalars::Evaluated(node) = self.scalars_from() else {
            return Some(self.null(number));
        };
        let evaluator = RowEvaluator::new(expr, &attributes, node).ok()?;
        let function: Box<dyn RowFunction> = Box::new(Evaluated {
            evaluator,
            scalar_of,
        });
        let function = match (&attributes[..], date_parts::clock_of(expr)) {
            (&[attribute], Some(clock)) => Box::new(ByRange::new(attribute, function, clock)),
            _ => match self.result_key(expr) {
                Some(key) => Box::new(KeyedFunction::new(key, function)),
                None => function,
            },
        };
        let value = ExternalValue::new(number, attributes, function);
        Some(Value::External(value))
    }

    /// The attributes of an expression that PostgreSQL may evaluate for each row.
    fn read_by_row(&mut self, expr: Expr<'_>) -> Option<Vec<usize>> {
        let columns = self.own_columns(expr).filter(|_| !expr.has_subplan())?;
        self.by_row += 1;
        let attributes = columns.into_iter().map(|column| self.attribute(column));
        let mut attributes: Vec<usize> = attributes.collect::<Translation<_>>().ok()?;
        attributes.sort_unstable();
        attributes.dedup();
        Some(attributes)
    }
}

/// The keys of a grouping whose values have codes.
#[derive(Default)]
pub struct KeysByCode {
    /// The number of lists of values before those of these keys.
    first: usize,
    /// Memory for values; none while a query is planned.
    memory: Option<Memory>,
    /// The number of keys.
    count: usize,
    /// Whether PostgreSQL computes the values of a key, of which there may be any number.
    has_computed: bool,
    /// The codes of each, with the constants that get the first codes again after they are forgotten; none while a
    /// query is planned.
    codes: Vec<(KeyCodes, Vec<Option<Datum>>)>,
}

impl KeysByCode {
    /// No keys yet. So many lists of values come before theirs. The memory is for their values alone.
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
            translator.coded_key(expr, clause, self).ok_or(reason)
        })
    }

    /// The codes of an expression that PostgreSQL computes, for an aggregate to which equal values count once. NULL has
    /// no code. `None` if the expression is no function of the row, or values of its type have no hash.
    pub(super) fn counted(
        &mut self,
        translator: &mut Translator,
        expr: Expr<'_>,
        clause: SortGroupClause<'_>,
    ) -> Option<Value> {
        if !clause.hashable() || !catalog::hashes_for(expr.type_of(), clause.eqop()) {
            return None;
        }
        let codes = self
            .memory
            .map(|memory| ValueCodes::new(expr.as_ptr(), memory));
        let codes = codes.map(|codes| Rc::new(RefCell::new(codes)));
        let of_values = codes.clone();
        let value = translator.row_value(expr, NumberType::I64, move |value| {
            let codes = of_values.as_ref()?;
            value.map(|value| Scalar(codes.borrow_mut().code(Some(value)).into()))
        })?;
        self.count += 1;
        self.has_computed = true;
        self.codes.extend(codes.map(|codes| (codes, Vec::new())));
        Some(value)
    }

    /// Whether there may be many values.
    pub fn keep_values(&self) -> bool {
        self.has_computed
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the values and their codes.
    pub fn bytes(&self) -> usize {
        let codes = self.codes.iter();
        codes.map(|(codes, _)| codes.borrow().bytes()).sum()
    }

    /// Forgets all values but constants, and frees their memory. The keys' [functions](RowFunction) have to forget
    /// their results too.
    pub fn clear(&mut self) {
        for (codes, _) in &self.codes {
            codes.borrow_mut().clear();
        }
        if let Some(memory) = self.memory.filter(|_| !self.codes.is_empty()) {
            memory.reset();
        }
        for (codes, constants) in &self.codes {
            for constant in constants {
                codes.borrow_mut().code(*constant);
            }
        }
    }

    /// Takes the values of each key, by code. No row is read until they are [forgotten](Self::clear).
    pub fn take_values(&self) -> impl Iterator<Item = Vec<Option<Datum>>> {
        self.codes
            .iter()
            .map(|(codes, _)| codes.borrow_mut().take_values())
    }
}
