//! The input of `LanesWindow`: the rows of a table that pass its conditions, vector by vector, with
//! the arguments of the functions.

use lanes_columnar::aggregate::{Aggregation, Grouping};
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::number::{Number, NumberType, Scalar};
use lanes_columnar::vector::operands;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};
use lanes_columnar::vector::{Evaluation, EvaluationError, Weight, WeightFault};
use lanes_columnar::window::{Function, Window};

use super::plan::{WindowFunction, WindowPlan, argument};
use crate::expressions::aggregate_call;
use crate::expressions::translate::{Scalars, Translation, Translator, to_scalar};
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::table::QueryTable;
use crate::pg::ports;
use crate::pg::tree::{Expr, View, WindowFunc};
use crate::vectors::prune::Filter;
use crate::vectors::vector_source::VectorSource;

/// A time in its order: whether it is NULL, which is later than all values, and the value.
pub type Time = (bool, i64);

/// The arguments of a function: x, and for some functions a time.
type Arguments = (Value, Option<Value>);

/// The input.
pub struct WindowInput {
    pub source: VectorSource,
    translator: Translator,
    filter: Filter,
    groups: Aggregation,
    time: Value,
    /// The arguments of each function.
    arguments: Vec<Arguments>,
    /// All attributes that are read.
    attributes: Vec<usize>,
    pub vector: Vector,
    /// How many rows have passed the conditions.
    pub passed: u64,
}

/// The current vector.
pub struct Vector {
    /// The rows that pass the conditions.
    pub rows: Selection,
    /// The partition of each row.
    pub partitions: Vec<u32>,
    /// The times of the rows whose time is not NULL.
    times: Vec<i64>,
    timed: Selection,
    /// The arguments of each function.
    arguments: Vec<(Argument, Option<Argument>)>,
}

/// An argument of a function, for all rows of the vector.
struct Argument {
    number: NumberType,
    operand: Operand,
    valid: Selection,
}

impl Argument {
    fn of(value: &Value, operand: Operand, rows: &Selection) -> Argument {
        Argument {
            number: value.number(),
            operand,
            valid: operand.valid(rows),
        }
    }

    fn get(&self, row: usize) -> Option<Scalar> {
        let is_valid = self.valid.contains(row);
        is_valid.then(|| operands::scalar(self.number, self.operand, row))
    }
}

impl Vector {
    /// A vector without rows.
    fn new() -> Vector {
        Vector {
            rows: Selection::NONE,
            partitions: vec![0; VECTOR_ROWS],
            times: vec![0; VECTOR_ROWS],
            timed: Selection::NONE,
            arguments: Vec::new(),
        }
    }

    /// The time of a row that passes.
    #[inline]
    pub fn time(&self, row: usize) -> Time {
        match self.timed.contains(row) {
            true => (false, self.times[row]),
            false => (true, 0),
        }
    }

    /// The arguments of a function for a row that passes.
    #[inline]
    pub fn arguments(&self, function: usize, row: usize) -> (Option<Scalar>, Option<Scalar>) {
        let (x, time) = &self.arguments[function];
        (x.get(row), time.as_ref().and_then(|time| time.get(row)))
    }

    fn read_times(&mut self, number: NumberType, time: Operand) {
        self.timed = time.valid(&self.rows);
        operands::order_keys(number, time, &self.timed, &mut self.times);
    }

    /// Whether no row is earlier than the row before it. `last` is the time of the row before the
    /// vector, and becomes that of the vector's last row.
    fn follows(&self, last: &mut Time) -> bool {
        let (mut latest, mut falls) = (*last, false);
        self.rows.for_each(|row| {
            let time = self.time(row);
            falls |= time < latest;
            latest = time;
        });
        *last = latest;
        !falls
    }
}

impl WindowInput {
    /// The input before its first vector, and the functions. `columns` are the attributes that are returned.
    ///
    /// # Errors
    /// The reason why the engine cannot evaluate an expression.
    pub fn begin(
        plan: &WindowPlan<'_>,
        node: ExecNode<'_>,
        table: QueryTable,
        columns: &[usize],
    ) -> Translation<(WindowInput, Vec<Window>)> {
        let mut translator = Translator::new(Scalars::of(node));
        let filter = Filter::of(&mut translator, plan.quals.iter().map(|qual| qual.as_ptr()))?;
        let time = translator.value(plan.time)?;
        // The attributes that the first pass reads.
        let of_time = translator.attributes();
        let mut keys = Vec::new();
        for key in &plan.keys {
            keys.push(aggregate_call::key(&mut translator, *key)?.0);
        }
        let (mut arguments, mut windows) = (Vec::new(), Vec::new());
        for call in &plan.calls {
            let (function, of_function) = function(&mut translator, *call)?;
            arguments.push(of_function);
            windows.push(Window::new(function));
        }
        let mut attributes = translator.attributes();
        attributes.extend_from_slice(columns);
        let mut source = VectorSource::begin(table, filter.zones_wanted.clone());
        source.begin_look_ahead(of_time);
        let input = WindowInput {
            source,
            attributes,
            translator,
            filter,
            groups: Aggregation::new(keys, Vec::new()),
            time,
            arguments,
            vector: Vector::new(),
            passed: 0,
        };
        Ok((input, windows))
    }

    /// Reads the times of all rows, starts over, and returns whether the rows are in the order of time.
    ///
    /// # Errors
    /// The error that a condition or the time raises.
    pub fn is_in_order(&mut self) -> Evaluation<bool> {
        let mut last = (false, i64::MIN);
        let mut in_order = true;
        while in_order && self.next_rows()? {
            in_order = self.vector.follows(&mut last);
        }
        self.source.end_look_ahead(self.attributes.clone());
        Ok(in_order)
    }

    /// Goes on to the next vector with rows that pass, and reads their times; false at the end.
    fn next_rows(&mut self) -> Evaluation<bool> {
        let scalars = &self.translator.scalars;
        ports::CHECK_FOR_INTERRUPTS();
        let Some(rows) = self.source.next(&mut self.filter, scalars)? else {
            return Ok(false);
        };
        let frame = self.source.frame(scalars);
        self.vector.rows = rows;
        let time = self.time.evaluate(&frame, &rows)?;
        self.vector.read_times(self.time.number(), time);
        Ok(true)
    }

    /// Goes on to the next vector, and evaluates partitions and arguments; false at the end.
    ///
    /// # Errors
    /// The error that an expression raises.
    pub fn next(&mut self, windows: &mut [Window]) -> Evaluation<bool> {
        if !self.next_rows()? {
            return Ok(false);
        }
        let frame = self.source.frame(&self.translator.scalars);
        let vector = &mut self.vector;
        self.passed += vector.rows.count() as u64;
        let (grouping, partitions) = self.groups.grouping(&frame, &vector.rows)?;
        match grouping {
            Grouping::One(one) => vector.partitions[..frame.rows].fill(one),
            Grouping::Stretches(stretches) => stretches.spread(&mut vector.partitions[..]),
            Grouping::Each(ids) => {
                vector.partitions[..frame.rows].copy_from_slice(&ids[..frame.rows])
            }
        }
        for window in windows {
            window.resize(partitions);
        }
        vector.arguments.clear();
        for (x, time) in &mut self.arguments {
            let operand = x.evaluate(&frame, &vector.rows)?;
            let x = Argument::of(x, operand, &vector.rows);
            let time = match time {
                None => None,
                Some(time) => {
                    let operand = time.evaluate(&frame, &vector.rows)?;
                    Some(Argument::of(time, operand, &vector.rows))
                }
            };
            vector.arguments.push((x, time));
        }
        Ok(true)
    }

    /// How many partitions there are so far.
    pub fn partitions(&self) -> usize {
        self.groups.groups()
    }

    /// Bytes of the partitions.
    pub fn bytes(&self) -> usize {
        self.groups.bytes()
    }
}

/// The function of a call, and its arguments.
fn function(
    translator: &mut Translator,
    call: WindowFunc<'_>,
) -> Translation<(Function, Arguments)> {
    let x = translator.value(argument(call, 0)?)?;
    let mut time = None;
    let function = match WindowFunction::of(call) {
        Some(WindowFunction::Ema) => Function::Ema(weight(translator, argument(call, 1)?)?),
        Some(WindowFunction::Delta) => Function::Delta(x.number()),
        Some(WindowFunction::Rate) => {
            time = Some(translator.value(argument(call, 1)?)?);
            Function::Rate
        }
        None => return Err("a function that is gone".into()),
    };
    Ok((function, (x, time)))
}

/// The alpha of a moving average, or the error of its parameter.
fn weight(translator: &mut Translator, parameter: Expr<'_>) -> Translation<Evaluation<f64>> {
    let number = translator.value(parameter)?.number();
    let scalar = translator
        .constant(parameter)?
        .map(|value| to_scalar(number, value.datum()));
    let (weight, parameter) = match number {
        NumberType::I32 => (
            Weight::Span,
            scalar.map(|scalar| f64::from(i32::of_scalar(scalar))),
        ),
        _ => (Weight::Alpha, scalar.map(f64::of_scalar)),
    };
    let fault = |fault| Err(EvaluationError::Weight(weight, fault));
    Ok(match parameter {
        None => fault(WeightFault::Null),
        Some(parameter) => weight
            .alpha(parameter)
            .map_or_else(|| fault(WeightFault::Illegal(parameter.to_scalar())), Ok),
    })
}
