//! Translates aggregates with ORDER BY that PostgreSQL computes from the rows of each group in their order.

use std::cell::RefCell;
use std::rc::Rc;

use lanes_columnar::aggregate::accumulator::Count;
use lanes_columnar::aggregate::first_row::FirstRow;
use lanes_columnar::aggregate::ordered_rows::{OrderedRows, RowKey};
use lanes_columnar::aggregate::{Accumulator, Argument};
use lanes_columnar::order::Order;
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::value::Value;
use pgrx::pg_sys::{self, Datum};

use super::aggregate_call::{Parts, Shape};
use super::translate::{Scalars, Translator, number_type, to_datum};
use crate::pg::exec::distinct_aggregate::SharedCodes;
use crate::pg::exec::memory::{Memory, ValueLayout};
use crate::pg::exec::ordered_aggregate::{
    CodedKey, OrderedAggregate, OrderedArgument, Rows, ToDatum,
};
use crate::pg::exec::row_evaluator::RowReader;
use crate::pg::exec::scalar::RunningNode;
use crate::pg::exec::transition::TransitionAggregate;
use crate::pg::exec::value_codes::ValueCodes;
use crate::pg::exec::value_order::ValueOrder;
use crate::pg::tree::{Aggref, Expr, SortGroupClause, TargetEntry, View};
use crate::pg::{catalog, ports};

/// Where values are kept, by a node under execution.
type Kept = Option<(RunningNode, Memory)>;

impl Translator {
    /// An aggregate with ORDER BY whose states PostgreSQL computes. `None` if a key or an argument is no function of
    /// the row, or the values of a key have no hash.
    pub(super) fn ordered_aggregate(&mut self, call: Aggref<'_>) -> Option<Parts> {
        let functions = TransitionAggregate::functions(call)?;
        self.by_row += 1;
        let kept = match self.scalars_from() {
            Scalars::Evaluated(node) => {
                Some((node, node.memory().child(c"lanes values of ordered rows")))
            }
            Scalars::Unknown => None,
        };
        let (mut keys, mut coded) = (Vec::new(), Vec::new());
        for clause in call.aggorder() {
            let expr = clause.expr(call.args());
            let (key, codes) = self.row_key(clause, expr, kept)?;
            let key_number = keys.len();
            coded.extend(codes.map(|(codes, order)| CodedKey {
                key: key_number,
                codes,
                order,
            }));
            keys.push(key);
        }
        let (mut values, mut arguments) = (Vec::new(), Vec::new());
        // The expressions of ORDER BY alone follow the arguments.
        let passed = call.aggargtypes().iter().count();
        for expr in call.args().iter().map(TargetEntry::expr).take(passed) {
            if let Some(constant) = expr.as_const() {
                let constant = (constant.constvalue(), constant.constisnull());
                arguments.push(OrderedArgument::Same(constant));
                continue;
            }
            let (value, to_datum) = self.row_argument(expr, kept)?;
            values.push(value);
            arguments.push(OrderedArgument::Each(to_datum));
        }
        let Some((node, memory)) = kept else {
            return Some((Argument::Rows, Box::new(Count::default()), Shape::Datum));
        };
        let reader = RowReader::new(&[], node).ok()?;
        let state = TransitionAggregate::new(call, functions, &[], reader, false, node);
        let rows = self.rows(call, keys, values);
        let spare = node.memory().child(c"lanes values in use");
        let states = OrderedAggregate::new(rows, arguments, coded, state, [memory, spare]);
        let states: Box<dyn Accumulator> = Box::new(states);
        Some((Argument::Rows, states, Shape::Datum))
    }

    /// The rows of a call. The first row of each group is enough if only the first element of the array is wanted and
    /// all keys are numbers. An argument that is neither a column nor a number is evaluated and copied for each row, so
    /// keeping only the first one would spare nothing.
    fn rows(&self, call: Aggref<'_>, keys: Vec<RowKey>, mut values: Vec<Value>) -> Rows {
        let Some(argument) = call.args().first().map(TargetEntry::expr) else {
            return Rows::All(OrderedRows::new(keys, values));
        };
        let is_column = argument.stripped().as_var().is_some();
        let is_number = number_type(argument.type_of()).is_some();
        let is_array = call.aggfnoid().to_u32() == pg_sys::F_ARRAY_AGG_ANYNONARRAY;
        let are_numbers = keys.iter().all(|key| matches!(key, RowKey::Number(..)));
        let is_first_enough = self.wants_first_element && is_array && are_numbers;
        if !is_first_enough || values.len() != 1 || !is_column && !is_number {
            return Rows::All(OrderedRows::new(keys, values));
        }
        let keys = keys.into_iter().filter_map(|key| match key {
            RowKey::Number(value, order) => Some((value, order)),
            RowKey::Code(_) => None,
        });
        let layout = ValueLayout::of_type(argument.type_of());
        // An argument that is no column may raise an error.
        let first = FirstRow::new(keys.collect(), values.remove(0), !is_column);
        Rows::First(first, layout)
    }

    /// A key that rows are ordered by: a number, or the code of a value that PostgreSQL computes.
    fn row_key(
        &mut self,
        clause: SortGroupClause<'_>,
        expr: Expr<'_>,
        kept: Kept,
    ) -> Option<(RowKey, Option<(SharedCodes, ValueOrder)>)> {
        let (descending, family) = ports::ordering_operator(clause.sortop())?;
        if ports::is_number_family(family) && number_type(expr.type_of()).is_some() {
            let order = Order {
                descending,
                nulls_first: clause.nulls_first(),
            };
            return Some((RowKey::Number(self.value(expr).ok()?, order), None));
        }
        if !clause.hashable() || !catalog::hashes_for(expr.type_of(), clause.eqop()) {
            return None;
        }
        let codes = kept.map(|(node, memory)| {
            let codes = ValueCodes::new(expr.as_ptr(), memory);
            let order = ValueOrder::new(clause, expr.collation(), node);
            (Rc::new(RefCell::new(codes)), order)
        });
        let of_values = codes.as_ref().map(|(codes, _)| codes.clone());
        let value = self.row_value(expr, NumberType::I64, move |value| {
            let codes = of_values.as_ref()?;
            Some(Scalar(codes.borrow_mut().code(value).into()))
        })?;
        Some((RowKey::Code(value), codes))
    }

    /// An argument that is kept for each row: a number, or a datum.
    fn row_argument(&mut self, expr: Expr<'_>, kept: Kept) -> Option<(Value, ToDatum)> {
        if let Some(number) = number_type(expr.type_of()) {
            let of_float: ToDatum = |scalar| to_datum(NumberType::F32, scalar);
            let to_datum = match number {
                NumberType::F32 => of_float,
                _ => of_bits,
            };
            return Some((self.value(expr).ok()?, to_datum));
        }
        let layout = ValueLayout::of_type(expr.type_of());
        let value = self.row_value(expr, NumberType::I64, move |value| {
            let (_, memory) = kept?;
            value.map(|value| Scalar(memory.copy(value, layout).value() as u64))
        })?;
        Some((value, of_bits))
    }
}

fn of_bits(scalar: Scalar) -> Datum {
    Datum::from(scalar.0 as usize)
}
