//! The rows of a table that pass its conditions, as columns in memory.

use lanes_columnar::aggregate::{Aggregation, Grouping};
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::over::arrange::{self, Arrangement, SortKey};
use lanes_columnar::over::first_rows::FirstRows;
use lanes_columnar::over::numbers::NumberColumn;
use lanes_columnar::over::{self, Call, Output};
use lanes_columnar::rows_aside::{Aside, RowsKept};
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::operands;
use lanes_columnar::vector::predicate::{Predicate, Truth};
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::Value;
use lanes_columnar::vector::{Evaluation, narrow};

use super::calls::{self, Wanted};
use super::conditions::First;
use super::group_ranks::{self, KeyOrder};
use super::order_key::OrderKey;
use super::parts::Parts;
use super::plan::PartitionedPlan;
use crate::error;
use crate::expressions::aggregate_call;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::nodes::nested_aggregate::outputs::is_text;
use crate::nodes::window::plan;
use crate::pg::exec::node::ExecNode;
use crate::pg::ports;
use crate::pg::tree::{View, WindowFunc};
use crate::vectors::counters::Counters;
use crate::vectors::prune::Filter;
use crate::vectors::vector_source::VectorSource;

/// Bytes that a row takes while rows are sorted, beside its keys.
const SORTED_ROW_BYTES: usize = 40;

/// The source of an argument.
enum Source {
    Number(Value),
    /// A boolean, as 0 or 1.
    Truth(Predicate),
    Presence(usize),
    /// All rows: `count(*)` with a FILTER.
    EachRow,
}

/// The argument of a call: a column that is read for it alone.
struct Argument {
    source: Source,
    filter: Option<Predicate>,
    number: NumberType,
    column: NumberColumn,
}

/// From so many rows on, room is made for them.
const ROWS_TO_EXPECT: f64 = 65_536.0;

/// The rows.
pub struct PartitionedInput {
    source: VectorSource,
    translator: Translator,
    filter: Filter,
    groups: Aggregation,
    key_orders: Vec<KeyOrder>,
    ids: Vec<u32>,
    /// Drops rows that are not wanted.
    first: Option<FirstRows>,
    passed: u64,
    /// The partition of each row.
    partitions: Vec<u32>,
    orders: Vec<OrderKey>,
    calls: Vec<Call>,
    /// By call.
    arguments: Vec<Option<Argument>>,
    aside: Vec<Aside>,
    kept: RowsKept,
    parts: Option<Parts>,
    /// Bytes that a row takes once the functions are computed, beside what is counted as it grows.
    row_bytes: usize,
}

/// The parts of the rows that are needed to return them, by position.
pub struct Arranged {
    pub rows: usize,
    pub is_sorted: bool,
    pub outputs: Vec<Output>,
    /// For `lag` and its like over an expression, its values.
    pub values: Vec<Option<(NumberColumn, NumberType)>>,
    pub kept: RowsKept,
    pub partitions: usize,
}

impl PartitionedInput {
    /// The input before its first row. `kept` are the attributes of columns that are returned. If only the `first` rows
    /// of each partition are wanted, others may be missing.
    ///
    /// # Errors
    /// The reason why the engine cannot evaluate an expression.
    pub fn begin(
        plan: &PartitionedPlan<'_>,
        node: ExecNode<'_>,
        kept: &[usize],
        first: Option<First>,
    ) -> Translation<PartitionedInput> {
        let table = node.open_table(plan.index);
        let mut translator = Translator::new(Scalars::of(node));
        let filter = Filter::of(&mut translator, plan.quals.iter().map(|qual| qual.as_ptr()))?;
        let (groups, key_orders) = groups(plan, &mut translator)?;
        let mut orders = Vec::new();
        for key in &plan.orders {
            orders.push(OrderKey::of(&mut translator, key)?);
        }
        let (mut calls, mut arguments) = (Vec::new(), Vec::new());
        let mut row_bytes = SORTED_ROW_BYTES;
        for index in 0..plan.calls.len() {
            let (expression, call) = plan.call(index)?;
            let argument = argument(&mut translator, expression, &call)?;
            let number = argument.as_ref().map_or(NumberType::I64, |a| a.number);
            row_bytes += Output::row_bytes(call.function, number);
            arguments.push(argument);
            calls.push(call);
        }
        let kinds = table.kinds();
        let aside: Vec<_> = kept.iter().map(|&kept| (kept, kinds[kept])).collect();
        let mut attributes = translator.attributes();
        attributes.extend_from_slice(kept);
        let mut source = VectorSource::begin(table, filter.zones_wanted.clone());
        source.want_only(attributes);
        Ok(PartitionedInput {
            source,
            translator,
            filter,
            groups,
            key_orders,
            ids: vec![0; VECTOR_ROWS],
            first: first.and_then(|first| first_rows(plan, first)),
            passed: 0,
            partitions: Vec::new(),
            orders,
            calls,
            arguments,
            kept: RowsKept::new(&aside),
            aside,
            parts: None,
            row_bytes,
        })
    }

    /// Makes room for the rows that are expected if they are many, where that is no more than a quarter of so many
    /// bytes. So columns need not grow, which copies them.
    pub fn expect(&mut self, rows: f64, limit: usize) {
        if self.first.is_some() || rows < ROWS_TO_EXPECT {
            return;
        }
        let columns = 1 + self.orders.len() + self.arguments.iter().flatten().count();
        let most = limit / 4 / (columns * size_of::<u64>());
        let rows = (rows as usize).min(most);
        arrange::expect_partitions(rows, &mut self.partitions);
        self.orders.iter_mut().for_each(|key| key.expect(rows));
        let arguments = self.arguments.iter_mut().flatten();
        arguments.for_each(|argument| argument.column.reserve(rows));
    }

    /// Reads all rows, or if `can_divide` and they and the results would take more than so many bytes, those of a first
    /// part of the partitions; false if even these would.
    ///
    /// # Errors
    /// The error that an expression raises.
    pub fn read(&mut self, limit: usize, can_divide: bool) -> Evaluation<bool> {
        loop {
            ports::CHECK_FOR_INTERRUPTS();
            let scalars = &self.translator.scalars;
            let Some(rows) = self.source.next(&mut self.filter, scalars)? else {
                return Ok(true);
            };
            if !self.add(&rows)? || self.bytes() > limit {
                break;
            }
        }
        let can_divide = can_divide && self.first.is_none() && !self.key_orders.is_empty();
        Ok(can_divide && self.divide(limit)? && self.read_part()?)
    }

    /// Counts the rows of all partitions, and cuts these into parts; false if one of them would take more than so many
    /// bytes.
    fn divide(&mut self, limit: usize) -> Evaluation<bool> {
        let of_groups = self.groups.bytes();
        let row_bytes = (self.bytes() - of_groups).div_ceil(self.partitions.len().max(1));
        let mut counts: Vec<u32> = Vec::new();
        self.partitions
            .iter()
            .for_each(|id| count(*id, &mut counts));
        // The texts of keys need no order yet.
        self.orders.iter_mut().for_each(OrderKey::clear);
        drop(self.take_rows());
        loop {
            ports::CHECK_FOR_INTERRUPTS();
            let scalars = &self.translator.scalars;
            let Some(rows) = self.source.next(&mut self.filter, scalars)? else {
                break;
            };
            self.passed += rows.count() as u64;
            self.group(&rows)?;
            rows.for_each(|row| count(self.ids[row], &mut counts));
        }
        let of_groups = self.groups.bytes() + 3 * size_of_val(&counts[..]);
        let room = limit.saturating_sub(of_groups);
        let ranks = group_ranks::ranks(&self.groups, &self.key_orders);
        // Columns grow to at most twice what they need.
        self.parts = Parts::of(ranks, &counts, room / row_bytes.max(1) / 2);
        Ok(self.parts.is_some())
    }

    /// Reads the rows of the next part; false if there is none.
    ///
    /// # Errors
    /// The error that an expression raises.
    pub fn read_part(&mut self) -> Evaluation<bool> {
        if !self.parts.as_mut().is_some_and(Parts::advance) {
            return Ok(false);
        }
        self.source.read_again();
        loop {
            ports::CHECK_FOR_INTERRUPTS();
            let scalars = &self.translator.scalars;
            let Some(rows) = self.source.next(&mut self.filter, scalars)? else {
                return Ok(true);
            };
            if !self.add(&rows)? {
                error::too_large(
                    "the rows of a window's partitions do not fit into memory",
                    "SET lanes.vectorize = off for this query.",
                );
            }
        }
    }

    /// How many parts there are, if all rows do not fit into memory.
    pub fn parts(&self) -> Option<usize> {
        self.parts.as_ref().map(Parts::count)
    }

    /// Writes the partitions of the rows of a vector, and returns how many partitions there are so far.
    fn group(&mut self, rows: &Selection) -> Evaluation<usize> {
        let frame = self.source.frame(&self.translator.scalars);
        let (grouping, partitions) = self.groups.grouping(&frame, rows)?;
        match grouping {
            Grouping::One(one) => self.ids[..frame.rows].fill(one),
            Grouping::Stretches(stretches) => stretches.spread(&mut self.ids[..]),
            Grouping::Each(ids) => self.ids[..frame.rows].copy_from_slice(&ids[..frame.rows]),
        }
        Ok(partitions)
    }

    /// Adds the rows of a vector; false if they are too large.
    fn add(&mut self, rows: &Selection) -> Evaluation<bool> {
        let partitions = self.group(rows)?;
        let frame = self.source.frame(&self.translator.scalars);
        let mut rows = *rows;
        match &self.parts {
            Some(parts) => {
                rows = arrange::rows_between(&rows, &self.ids, &parts.ranks, &parts.range());
            }
            None => self.passed += rows.count() as u64,
        }
        if let Some(first) = &mut self.first {
            let key = match self.orders.first_mut() {
                Some(key) => key.numbers(&frame, &rows)?,
                None => None,
            };
            first.narrow((&self.ids, partitions), key, &mut rows);
        }
        let rows = &rows;
        arrange::append_partitions(rows, &self.ids, &mut self.partitions);
        for key in &mut self.orders {
            key.add(&frame, rows)?;
        }
        for argument in self.arguments.iter_mut().flatten() {
            let mut counted = *rows;
            if let Some(filter) = &mut argument.filter {
                narrow(std::slice::from_mut(filter), &frame, &mut counted)?;
            }
            let column = &mut argument.column;
            match &mut argument.source {
                Source::Number(value) => {
                    let operand = value.evaluate(&frame, &counted)?;
                    operands::append(argument.number, operand, rows, &counted, column);
                }
                Source::Truth(predicate) => {
                    push_truth(rows, &predicate.evaluate(&frame, &counted)?, column);
                }
                Source::Presence(attribute) => {
                    push_presence(rows, &frame.present(*attribute, &counted), column);
                }
                Source::EachRow => push_presence(rows, &counted, column),
            }
        }
        Ok(self.kept.push(&frame, rows))
    }

    /// Bytes of memory, including what the functions will take.
    pub fn bytes(&self) -> usize {
        let rows = self.partitions.len();
        let orders = self.orders.iter().map(OrderKey::bytes);
        let arguments = self.arguments.iter().flatten();
        let arguments = arguments.map(|argument| argument.column.bytes());
        let first = self.first.as_ref().map_or(0, FirstRows::bytes);
        self.groups.bytes()
            + first
            + self.partitions.capacity() * size_of::<u32>()
            + rows * self.row_bytes
            + orders.sum::<usize>()
            + arguments.sum::<usize>()
            // The columns are there twice while they are brought into order.
            + 2 * self.kept.bytes()
    }

    /// How many rows have passed the conditions.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// The rows that were read.
    pub fn counters(&self) -> Counters {
        self.source.counters()
    }

    /// Ends the scan without a result.
    pub fn stop(self) {
        self.source.end();
    }

    /// Takes the rows that were read.
    fn take_rows(&mut self) -> Rows {
        let take_argument = |argument: &mut Option<Argument>| {
            let argument = argument.as_mut()?;
            Some((std::mem::take(&mut argument.column), argument.number))
        };
        Rows {
            partitions: std::mem::take(&mut self.partitions),
            keys: self.orders.iter_mut().map(OrderKey::take).collect(),
            arguments: self.arguments.iter_mut().map(take_argument).collect(),
            kept: std::mem::replace(&mut self.kept, RowsKept::new(&self.aside)),
        }
    }

    /// Computes the functions for the rows that were read, for so many `first` rows of each partition if not for all.
    ///
    /// # Errors
    /// A result is out of range.
    pub fn arrange(&mut self, first: Option<First>) -> Evaluation<Arranged> {
        let rows = self.take_rows();
        let own_ranks;
        let ranks = match &self.parts {
            Some(parts) => &parts.ranks,
            None => {
                own_ranks = match self.key_orders.is_empty() {
                    // Without a row there is no group.
                    true => vec![0],
                    false => group_ranks::ranks(&self.groups, &self.key_orders),
                };
                &own_ranks
            }
        };
        let order = match first {
            Some(First {
                rows: count,
                with_peers: false,
            }) => Arrangement::first_of_each(&rows.partitions, ranks, &rows.keys, count),
            _ => Arrangement::new(&rows.partitions, ranks, &rows.keys),
        };
        drop(rows.partitions);
        let (mut outputs, mut values) = (Vec::new(), Vec::new());
        for (call, argument) in self.calls.iter().zip(rows.arguments) {
            let column = argument.as_ref().map(|(column, number)| (column, *number));
            let output = over::compute(call, &order, &rows.keys, column)?;
            let is_of_row = matches!(output, Output::Positions(_));
            let argument = argument.filter(|_| is_of_row);
            values.push(argument.map(|(column, number)| (column.gather(&order.rows), number)));
            outputs.push(output);
        }
        Ok(Arranged {
            rows: order.rows.len(),
            is_sorted: order.is_sorted,
            outputs,
            values,
            // Rows are returned one after the other, so they are brought into their order only once.
            kept: rows.kept.gather(&order.rows),
            partitions: self.groups.groups(),
        })
    }
}

/// Rows that were read: their partitions, their keys, and by call the arguments.
struct Rows {
    partitions: Vec<u32>,
    keys: Vec<SortKey>,
    arguments: Vec<Option<(NumberColumn, NumberType)>>,
    kept: RowsKept,
}

/// Counts a row of a partition.
fn count(partition: u32, counts: &mut Vec<u32>) {
    let place = partition as usize;
    if place >= counts.len() {
        counts.resize(place + 1, 0);
    }
    counts[place] += 1;
}

/// Drops all but the first rows of each partition, if that pays.
fn first_rows(plan: &PartitionedPlan<'_>, first: First) -> Option<FirstRows> {
    let key = plan.orders.first();
    if key.is_some_and(|key| is_text(key.expression.type_of())) {
        return None;
    }
    let directions = key.map_or((false, false), |key| (key.nulls_first, key.is_descending));
    let breaks_ties = plan.orders.len() <= 1 && !first.with_peers;
    FirstRows::new(first.rows, directions, breaks_ties)
}

/// The partitions, and the orders of their keys.
fn groups(
    plan: &PartitionedPlan<'_>,
    translator: &mut Translator,
) -> Translation<(Aggregation, Vec<KeyOrder>)> {
    let (mut keys, mut key_orders) = (Vec::new(), Vec::new());
    for key in &plan.keys {
        let (of_groups, shape) = aggregate_call::key(translator, key.expression)?;
        keys.push(of_groups);
        key_orders.push(KeyOrder {
            shape,
            collation: key.expression.collation(),
            is_descending: key.is_descending,
            nulls_first: key.nulls_first,
        });
    }
    let mut groups = Aggregation::new(keys, Vec::new());
    // Partitions are ordered by the numbers of their keys' values.
    groups.share_key_numbers(0..plan.keys.len());
    Ok((groups, key_orders))
}

/// The argument of a call, if it has a column of its own.
fn argument(
    translator: &mut Translator,
    expression: WindowFunc<'_>,
    call: &Call,
) -> Translation<Option<Argument>> {
    let filter = match expression.aggfilter() {
        None => None,
        Some(filter) => Some(translator.predicate(filter)?),
    };
    let (source, number) = match calls::wanted(translator, expression, call.function)? {
        Wanted::Number(number) => {
            let x = plan::argument(expression, 0)?;
            (Source::Number(translator.value(x)?), number)
        }
        Wanted::Truth => {
            let x = plan::argument(expression, 0)?;
            (Source::Truth(translator.predicate(x)?), NumberType::I64)
        }
        Wanted::Presence(attribute) => (Source::Presence(attribute), NumberType::I64),
        Wanted::Nothing if filter.is_some() => (Source::EachRow, NumberType::I64),
        Wanted::Nothing | Wanted::Column(_) => return Ok(None),
    };
    Ok(Some(Argument {
        source,
        filter,
        number,
        column: NumberColumn::default(),
    }))
}

/// Appends a number for each row that is present, and NULL for the others.
fn push_presence(rows: &Selection, present: &Selection, column: &mut NumberColumn) {
    rows.for_each(|row| match present.contains(row) {
        true => column.push_value(0),
        false => column.push_null(),
    });
}

/// Appends 1 for each row that is TRUE, 0 for each that is FALSE, and NULL for the others.
fn push_truth(rows: &Selection, truth: &Truth, column: &mut NumberColumn) {
    rows.for_each(
        |row| match (truth.yes.contains(row), truth.no.contains(row)) {
            (true, _) => column.push_value(1),
            (false, true) => column.push_value(0),
            (false, false) => column.push_null(),
        },
    );
}
