//! The rows with the results of their functions.

use lanes_columnar::over::numbers::NumberColumn;
use lanes_columnar::over::{Call, Function, NO_ROW, Output};
use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys::Datum;

use super::calls::{self, Wanted};
use super::conditions::RankCondition;
use super::input::{Arranged, PartitionedInput};
use super::plan::PartitionedPlan;
use super::wanted;
use crate::custom_scan::stand_in;
use crate::error;
use crate::expressions::translate::{Scalars, Translation, Translator, number_type, to_datum};
use crate::nodes::window::plan::attribute;
use crate::pg::datum::RowOutlet;
use crate::pg::exec::memory::Memory;
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::slot::SlotWriter;
use crate::pg::numeric::Numeric;
use crate::vectors::counters::Counters;

/// Bytes that rows may take, whatever the setting: rows are numbered by 32 bits.
const BYTES_MAX: usize = 64 << 30;

/// How the result of a call becomes a datum, and a number if it is one.
enum Shape {
    /// A number of a type.
    Number(NumberType),
    /// The value of a kept column in another row, or a default; and its type, if that is one of numbers.
    Column(usize, Option<Datum>, Option<NumberType>),
    /// The value of an expression in another row, or a default.
    Expression(Option<Datum>),
    /// `numeric`, an exact sum.
    Sum,
    /// `numeric`, an exact sum divided by a count.
    Average,
}

/// The values of a text column, once a nested aggregation has asked for them.
#[derive(Clone, Default)]
pub struct NumberedText {
    /// The number of the value at each position.
    pub numbers: Vec<u32>,
    /// The values by their numbers.
    pub values: Vec<Option<Datum>>,
}

/// The rows.
pub struct PartitionedRows {
    arranged: Arranged,
    outlet: RowOutlet,
    /// For each column that is returned its place among the kept ones; `None` if nobody reads it.
    columns: Vec<Option<usize>>,
    shapes: Vec<Shape>,
    /// The types of the columns that are returned, if they are numbers.
    column_numbers: Vec<Option<NumberType>>,
    /// Whether datums have to be allocated.
    has_numerics: bool,
    conditions: Vec<RankCondition>,
    /// The columns that are texts, which are first.
    pub texts: Vec<NumberedText>,
    next: usize,
}

/// Facts about the rows, for EXPLAIN.
#[derive(Default)]
pub struct Reading {
    pub counters: Counters,
    pub passed: u64,
    pub partitions: usize,
    pub bytes: usize,
    pub is_sorted: bool,
    pub has_handed_over: bool,
}

impl PartitionedRows {
    /// Reads the table, and computes the functions. `None`: the rows do not fit into memory. Of the entries only the
    /// `wanted` ones are read, if some node above says so.
    ///
    /// # Errors
    /// The reason why the plan cannot be executed.
    pub fn begin(
        node: ExecNode<'_>,
        wanted: Option<&[usize]>,
        reading: &mut Reading,
    ) -> Translation<Option<PartitionedRows>> {
        let plan = PartitionedPlan::of(node.plan());
        let is_wanted = wanted::columns(node.plan(), plan.columns.len(), wanted);
        let Kept {
            attributes: kept,
            columns,
            shapes,
        } = kept(&plan, &is_wanted)?;
        let conditions = RankCondition::of_plan(node.plan(), plan.columns.len());
        let computed: Vec<Call> = (0..plan.calls.len())
            .map(|index| Ok(plan.call(index)?.1))
            .collect::<Translation<_>>()?;
        let first = RankCondition::first_rows(&conditions, &computed, plan.orders.len());
        let mut input = PartitionedInput::begin(&plan, node, &kept, first)?;
        let limit = stand_in::memory_limit().min(BYTES_MAX);
        let fits = input
            .read(limit)
            .unwrap_or_else(|failure| error::evaluation(failure));
        reading.counters = input.counters();
        reading.passed = input.passed();
        reading.bytes = input.bytes();
        if !fits {
            input.stop();
            return Ok(None);
        }
        let table = node.range_table(plan.index);
        let arranged = input
            .arrange(first)
            .unwrap_or_else(|failure| error::evaluation(failure));
        reading.partitions = arranged.partitions;
        reading.is_sorted = arranged.is_sorted;
        let outlets = table.outlets();
        let outlets: Vec<_> = kept.iter().map(|&kept| outlets[kept]).collect();
        let is_numeric = |shape: &Shape| matches!(shape, Shape::Sum | Shape::Average);
        Ok(Some(PartitionedRows {
            outlet: RowOutlet::new(&outlets, arranged.kept.lanes()),
            columns,
            column_numbers: column_numbers(&plan),
            has_numerics: shapes.iter().any(is_numeric),
            shapes,
            arranged,
            conditions,
            texts: vec![NumberedText::default(); plan.text_columns()],
            next: 0,
        }))
    }

    /// Returns to the first row.
    pub fn rewind(&mut self) {
        self.next = 0;
    }

    /// Writes the next row, with values that live as long as the row; false at the end. Columns that the node never
    /// returns are NULL.
    pub fn write_next(&mut self, node: ExecNode<'_>, target: &mut SlotWriter<'_>) -> bool {
        self.skip_failing();
        if self.next == self.arranged.rows {
            return false;
        }
        for (column, kept) in self.columns.iter().enumerate() {
            let value = kept.map(|kept| self.outlet.value(self.next, kept));
            target.set_pair(column, value.unwrap_or((Datum::null(), true)));
        }
        let columns = self.columns.len();
        let memory: Option<Memory> = self.has_numerics.then(|| node.context().memory());
        for index in 0..self.shapes.len() {
            let value = match memory {
                Some(memory) => memory.enter(|| self.datum(self.next, index)),
                None => self.datum(self.next, index),
            };
            target.set(columns + index, value);
        }
        target.clear_from(columns + self.shapes.len());
        self.next += 1;
        true
    }

    /// Goes on to the next row that may pass the conditions on ranks.
    fn skip_failing(&mut self) {
        let (outputs, count) = (&self.arranged.outputs, self.arranged.rows);
        let passes = |position| {
            let mut conditions = self.conditions.iter();
            conditions.all(|condition| condition.may_pass(outputs, position))
        };
        while !self.conditions.is_empty() && self.next < count && !passes(self.next) {
            self.next += 1;
        }
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.arranged.rows
    }

    /// An entry at a position: a column, or a result; `None` is NULL.
    #[inline]
    pub fn entry(&self, position: usize, entry: usize) -> Option<Datum> {
        match entry.checked_sub(self.columns.len()) {
            None => {
                let (value, is_null) = self.outlet.value(position, self.columns[entry]?);
                (!is_null).then_some(value)
            }
            Some(index) => self.datum(position, index),
        }
    }

    /// The codes of a column's values, and how many codes there are, if it has a dictionary.
    pub fn codes(&self, column: usize) -> Option<(&[u32], usize)> {
        self.arranged.kept.codes(self.columns[column]?)
    }

    /// Whether a column that is read is NULL at a position.
    #[inline]
    pub fn is_null(&self, position: usize, column: usize) -> bool {
        let kept = self.columns[column];
        kept.is_none_or(|kept| self.arranged.kept.is_null(kept, position))
    }

    /// The type of an entry, if it is a number.
    pub fn entry_number(&self, entry: usize) -> Option<NumberType> {
        match entry.checked_sub(self.columns.len()) {
            None => self.column_numbers[entry],
            Some(index) => self.number_of(index),
        }
    }

    /// The results of a call, if they are stored as its numbers.
    pub fn stored_numbers(&self, entry: usize) -> Option<&NumberColumn> {
        let index = entry.checked_sub(self.columns.len())?;
        match (&self.arranged.outputs[index], &self.shapes[index]) {
            (Output::Numbers(numbers), Shape::Number(_)) => Some(numbers),
            _ => None,
        }
    }

    /// The type of a call's result, if it is a number.
    fn number_of(&self, index: usize) -> Option<NumberType> {
        match &self.shapes[index] {
            Shape::Number(number) => Some(*number),
            Shape::Column(_, _, number) => *number,
            Shape::Expression(_) => {
                let values = self.arranged.values[index].as_ref();
                values.map(|(_, number)| *number)
            }
            Shape::Sum | Shape::Average => None,
        }
    }

    /// The result of a call at a position; `None` is NULL.
    #[inline]
    fn datum(&self, position: usize, index: usize) -> Option<Datum> {
        match (&self.arranged.outputs[index], &self.shapes[index]) {
            (Output::Numbers(numbers), Shape::Number(number)) => {
                let scalar = numbers.get(position)?;
                Some(to_datum(*number, scalar))
            }
            (Output::Positions(positions), Shape::Column(column, default, _)) => {
                match positions[position] {
                    NO_ROW => *default,
                    row => {
                        let (value, is_null) = self.outlet.value(row as usize, *column);
                        (!is_null).then_some(value)
                    }
                }
            }
            (Output::Positions(positions), Shape::Expression(default)) => match positions[position]
            {
                NO_ROW => *default,
                row => {
                    let (values, number) = self.arranged.values[index].as_ref()?;
                    Some(to_datum(*number, values.get(row as usize)?))
                }
            },
            (Output::Sums(sums), shape) => {
                let (sum, count) = sums[position];
                let sum = (count > 0).then(|| Numeric::from_integer(sum))?;
                Some(match shape {
                    Shape::Average => {
                        let count = Numeric::from_integer(count.into());
                        sum.divided_by(count).datum()
                    }
                    _ => sum.datum(),
                })
            }
            _ => None,
        }
    }
}

/// The types of the columns that are returned, if they are numbers.
fn column_numbers(plan: &PartitionedPlan<'_>) -> Vec<Option<NumberType>> {
    let columns = plan.columns.iter();
    columns
        .map(|column| number_type(column.type_of()))
        .collect()
}

/// What is kept of the rows.
struct Kept {
    attributes: Vec<usize>,
    /// For each column that is returned its place among the attributes, if it is read.
    columns: Vec<Option<usize>>,
    /// The shapes of the results.
    shapes: Vec<Shape>,
}

impl Kept {
    /// The place of an attribute.
    fn place(&mut self, attribute: usize) -> usize {
        let mut known = self.attributes.iter();
        let known = known.position(|known| *known == attribute);
        known.unwrap_or_else(|| {
            self.attributes.push(attribute);
            self.attributes.len() - 1
        })
    }
}

/// What is kept of the rows of a plan, of whose columns some are wanted.
fn kept(plan: &PartitionedPlan<'_>, is_wanted: &[bool]) -> Translation<Kept> {
    let mut kept = Kept {
        attributes: Vec::new(),
        columns: Vec::new(),
        shapes: Vec::new(),
    };
    for (column, is_wanted) in plan.columns.iter().zip(is_wanted) {
        let place = is_wanted.then(|| kept.place(attribute(*column)));
        kept.columns.push(place);
    }
    let mut translator = Translator::new(Scalars::Unknown);
    for index in 0..plan.calls.len() {
        let (expression, call) = plan.call(index)?;
        let wanted = calls::wanted(&mut translator, expression, call.function)?;
        let default = || match call.function {
            Function::Offset(_) => calls::default_of(expression).flatten(),
            _ => None,
        };
        let shape = match wanted {
            Wanted::Column(attribute) => {
                let number = number_type(expression.wintype());
                Shape::Column(kept.place(attribute), default(), number)
            }
            Wanted::Number(number) => of_number(&call, number, default()),
            Wanted::Presence(_) | Wanted::Nothing => Shape::Number(rank_type(call.function)),
        };
        kept.shapes.push(shape);
    }
    Ok(kept)
}

/// The shape of the result of a function of a number.
fn of_number(call: &Call, number: NumberType, default: Option<Datum>) -> Shape {
    use NumberType::{F64, I64};
    match (call.function, number) {
        (Function::Minimum | Function::Maximum, _) => Shape::Number(number),
        (Function::Sum, I64) => Shape::Sum,
        (Function::Sum, _) if number.is_float() => Shape::Number(number),
        (Function::Average, _) if number.is_float() => Shape::Number(F64),
        (Function::Average, _) => Shape::Average,
        (Function::Sum | Function::Count, _) => Shape::Number(I64),
        _ => Shape::Expression(default),
    }
}

/// The type of a rank or a count.
fn rank_type(function: Function) -> NumberType {
    match function {
        Function::PercentRank | Function::CumeDist => NumberType::F64,
        Function::Ntile(_) => NumberType::I32,
        _ => NumberType::I64,
    }
}
