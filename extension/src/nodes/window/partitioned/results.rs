//! The rows with the results of their functions.

use lanes_columnar::over::numbers::NumberColumn;
use lanes_columnar::over::{Call, Function, NO_ROW, Output};
use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys::Datum;

use super::calls::{self, Wanted};
use super::conditions::{First, RankCondition};
use super::input::{Arranged, PartitionedInput};
use super::plan::PartitionedPlan;
use super::wanted;
use crate::custom_scan::stand_in;
use crate::error;
use crate::expressions::translate::{Scalars, Translation, Translator, number_type, to_datum};
use crate::nodes::window::plan::attribute;
use crate::pg::datum::{Outlet, RowOutlet};
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
    /// The number that an expression is in another row, or a default.
    Expression(Option<Datum>),
    /// The boolean that an expression is in another row, or a default.
    Truth(Option<Datum>),
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

/// How another node reads the rows.
pub struct RowReader {
    /// The entries that it reads.
    pub wanted: Vec<usize>,
    /// Whether it reads rows that are in memory one part after the other. Otherwise all have to be there at once.
    pub takes_parts: bool,
}

/// Positions of other rows, and what stands for none.
pub type Moved<'a> = (&'a [u32], Option<Datum>);

/// The rows.
pub struct PartitionedRows {
    arranged: Arranged,
    /// The reader of the table, for the partitions of later passes, if all rows do not fit into memory.
    input: Option<PartitionedInput>,
    first: Option<First>,
    /// Where these are read.
    memory: Memory,
    outlets: Vec<Outlet>,
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
    /// How many parts the partitions are computed in.
    pub parts: usize,
    pub bytes: usize,
    pub is_sorted: bool,
    pub has_handed_over: bool,
}

impl PartitionedRows {
    /// Reads the table, and computes the functions for the first part of the partitions at least. `None`: the rows do
    /// not fit into memory. If another node is the reader, only what it wants is kept.
    ///
    /// # Errors
    /// The reason why the plan cannot be executed.
    pub fn begin(
        node: ExecNode<'_>,
        reader: Option<&RowReader>,
        reading: &mut Reading,
    ) -> Translation<Option<PartitionedRows>> {
        let plan = PartitionedPlan::of(node.plan());
        let wanted = reader.map(|reader| &reader.wanted[..]);
        let is_wanted = wanted::columns(node.plan(), plan.columns.len(), wanted);
        let Kept {
            attributes: kept,
            columns,
            shapes,
        } = kept(&plan, &is_wanted)?;
        let conditions = RankCondition::of_plan(node.plan(), plan.columns.len());
        let first = RankCondition::first_rows(&conditions, &calls_of(&plan)?, plan.orders.len());
        let mut input = PartitionedInput::begin(&plan, node, &kept, first)?;
        let limit = stand_in::memory_limit().min(BYTES_MAX);
        input.expect(node.plan().expected_rows(), limit);
        let fits = input
            .read(limit, reader.is_none_or(|reader| reader.takes_parts))
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
        reading.parts = input.parts().unwrap_or(1);
        let input = match reading.parts {
            1 => {
                input.stop();
                None
            }
            _ => Some(input),
        };
        reading.is_sorted = arranged.is_sorted;
        let outlets = table.outlets();
        let outlets: Vec<_> = kept.iter().map(|&kept| outlets[kept]).collect();
        let is_numeric = |shape: &Shape| matches!(shape, Shape::Sum | Shape::Average);
        Ok(Some(PartitionedRows {
            input,
            first,
            memory: node.lasting_memory(),
            outlet: RowOutlet::new(&outlets, arranged.kept.lanes()),
            outlets,
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

    /// Returns to the first row; false if it is not in memory any more.
    pub fn rewind(&mut self) -> bool {
        self.next = 0;
        self.input.is_none()
    }

    /// Ends the scan, if more rows were to be read.
    pub fn stop(self) {
        self.input.into_iter().for_each(PartitionedInput::stop);
    }

    /// Whether there are partitions that were not read yet.
    pub fn has_more(&self) -> bool {
        self.input.is_some()
    }

    /// Replaces the rows by those of the next part of the partitions; false if there is none.
    pub fn replace(&mut self) -> bool {
        let Some(input) = &mut self.input else {
            return false;
        };
        let (input, first) = (input, self.first);
        let next = || match input.read_part()? {
            true => input.arrange(first).map(Some),
            false => Ok(None),
        };
        let next = self.memory.enter(next);
        let next = next.unwrap_or_else(|failure| error::evaluation(failure));
        let Some(arranged) = next else {
            return false;
        };
        self.outlet = RowOutlet::new(&self.outlets, arranged.kept.lanes());
        self.arranged = arranged;
        self.texts.fill(NumberedText::default());
        self.next = 0;
        true
    }

    /// Writes the next row, with values that live as long as the row; false at the end. Columns that the node never
    /// returns are NULL.
    pub fn write_next(&mut self, node: ExecNode<'_>, target: &mut SlotWriter<'_>) -> bool {
        self.skip_failing();
        while self.next == self.arranged.rows {
            if !self.replace() {
                return false;
            }
            self.skip_failing();
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

    /// The values of a column that is returned, or of which a call returns values of other rows, as words without NULL;
    /// with the positions and the default of the call.
    pub fn stored_words(&self, entry: usize) -> Option<(&[[u8; 8]], Option<Moved<'_>>)> {
        let Some(index) = entry.checked_sub(self.columns.len()) else {
            return Some((self.arranged.kept.words(self.columns[entry]?)?, None));
        };
        match (&self.arranged.outputs[index], &self.shapes[index]) {
            (Output::Positions(positions), Shape::Column(column, default, _)) => {
                let words = self.arranged.kept.words(*column)?;
                Some((words, Some((positions, *default))))
            }
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
            Shape::Truth(_) | Shape::Sum | Shape::Average => None,
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
            (Output::Positions(positions), Shape::Expression(default) | Shape::Truth(default)) => {
                match positions[position] {
                    NO_ROW => *default,
                    row => {
                        let (values, number) = self.arranged.values[index].as_ref()?;
                        Some(to_datum(*number, values.get(row as usize)?))
                    }
                }
            }
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

/// The calls of window functions that a plan computes.
fn calls_of(plan: &PartitionedPlan<'_>) -> Translation<Vec<Call>> {
    let indexes = 0..plan.calls.len();
    indexes.map(|index| Ok(plan.call(index)?.1)).collect()
}

/// The types of the columns that are returned, if they are numbers.
fn column_numbers(plan: &PartitionedPlan<'_>) -> Vec<Option<NumberType>> {
    let columns = plan.columns.iter();
    columns
        .map(|column| number_type(column.type_of()))
        .collect()
}

/// The columns and results that are held of each row of the table.
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

/// The columns and results that a plan holds of each row. Of the plan's columns only the wanted ones are held.
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
            Wanted::Truth if call.function == Function::Count => Shape::Number(NumberType::I64),
            Wanted::Truth => Shape::Truth(default()),
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
