//! What `LanesWindow` reads: the rows of a table that pass its quals, a vector at a time, with what its functions take.

use lanes_columnar::aggregate::ema::order_key;
use lanes_columnar::aggregate::{Aggregation, Grouping};
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::number::{Number, NumberType, Scalar};
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};
use lanes_columnar::vector::{Evaluation, EvaluationError, Weight, WeightFault};
use lanes_columnar::window::{Function, Window};
use lanes_columnar::with_number;
use pgrx::pg_sys;

use super::plan::{Kind, WindowPlan};
use crate::expressions::aggregate_call;
use crate::expressions::translate::{Scalars, Translation, Translator, to_scalar};
use crate::pg::ports;
use crate::vectors::prune::Filter;
use crate::vectors::vector_source::VectorSource;

/// A time as it is ordered: NULL is later than all others.
pub type Time = (bool, i64);

/// The rows under way.
pub struct WindowInput {
    pub source: VectorSource,
    translator: Translator,
    filter: Filter,
    groups: Aggregation,
    time: Value,
    /// What each function takes: x, and perhaps a time.
    arguments: Vec<(Value, Option<Value>)>,
    /// All attributes that are looked at.
    attributes: Vec<usize>,
    pub vector: Vector,
    /// Rows that passed the quals.
    pub passed: u64,
}

/// The vector under way.
pub struct Vector {
    /// The rows that passed.
    pub rows: Selection,
    /// The partition of each.
    pub partitions: Vec<u32>,
    /// Times as they are ordered, of the rows that have one.
    times: Vec<i64>,
    timed: Selection,
    /// What each function takes.
    taken: Vec<(Taken, Option<Taken>)>,
}

/// An argument of a function.
struct Taken {
    number: NumberType,
    operand: Operand,
    valid: Selection,
}

impl Taken {
    fn of(value: &Value, operand: Operand, rows: &Selection) -> Taken {
        Taken {
            number: value.number(),
            operand,
            valid: operand.valid(rows),
        }
    }

    fn get(&self, row: usize) -> Option<Scalar> {
        if !self.valid.contains(row) {
            return None;
        }
        // SAFETY: the operand is of this type, and has a number for each row of the vector under way.
        Some(with_number!(self.number, T => unsafe {
            self.operand.get::<T>(row).to_scalar()
        }))
    }
}

impl Vector {
    /// The time of a row that passed.
    #[inline]
    pub fn time(&self, row: usize) -> Time {
        match self.timed.contains(row) {
            true => (false, self.times[row]),
            false => (true, 0),
        }
    }

    /// What a function takes of a row that passed.
    #[inline]
    pub fn arguments(&self, function: usize, row: usize) -> (Option<Scalar>, Option<Scalar>) {
        let (x, time) = &self.taken[function];
        (x.get(row), time.as_ref().and_then(|time| time.get(row)))
    }

    fn read_times(&mut self, number: NumberType, time: Operand) {
        self.timed = time.valid(&self.rows);
        let times = &mut self.times;
        with_number!(number, T => self.timed.for_each(|row| {
            // SAFETY: as above.
            times[row] = order_key(unsafe { time.get::<T>(row) });
        }));
    }

    /// Whether no row is earlier than one before it, the first than the `last` of the vectors before.
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
    /// Parameters have their values now; `columns` are the attributes that are returned. Gives the functions too.
    ///
    /// # Safety
    /// A node under execution with its plan; `table` is open.
    pub unsafe fn begin(
        plan: &WindowPlan,
        state: *mut pg_sys::PlanState,
        table: pg_sys::Relation,
        columns: &[usize],
    ) -> Translation<(WindowInput, Vec<Window>)> {
        // SAFETY: the caller's promise.
        unsafe {
            let mut translator = Translator::new(Scalars::Evaluated(state));
            let filter = Filter::of(&mut translator, plan.quals.iter().copied())?;
            let time = translator.value(plan.time)?;
            // A first pass reads no more than these.
            let of_time = translator.attributes();
            let mut keys = Vec::new();
            for key in &plan.keys {
                keys.push(aggregate_call::key(&mut translator, *key)?.0);
            }
            let (mut arguments, mut windows) = (Vec::new(), Vec::new());
            for call in &plan.calls {
                let call = &*call.cast::<pg_sys::WindowFunc>();
                let argument = |i| ports::list_nth::<pg_sys::Node>(call.args, i);
                let x = translator.value(argument(0))?;
                let mut time = None;
                let function = match Kind::of(call) {
                    Some(Kind::Ema) => Function::Ema(weight(&mut translator, argument(1))?),
                    Some(Kind::Delta) => Function::Delta(x.number()),
                    Some(Kind::Rate) => {
                        time = Some(translator.value(argument(1))?);
                        Function::Rate
                    }
                    None => return Err("a function that is gone".into()),
                };
                arguments.push((x, time));
                windows.push(Window::new(function));
            }
            let mut attributes = translator.attributes();
            attributes.extend_from_slice(columns);
            let (snapshot, zones_wanted) =
                ((*(*state).state).es_snapshot, filter.zones_wanted.clone());
            let mut source = VectorSource::begin(table, snapshot, zones_wanted);
            source.begin_look_ahead(of_time);
            let input = WindowInput {
                source,
                attributes,
                translator,
                filter,
                groups: Aggregation::new(keys, Vec::new()),
                time,
                arguments,
                vector: Vector {
                    rows: Selection::NONE,
                    partitions: vec![0; VECTOR_ROWS],
                    times: vec![0; VECTOR_ROWS],
                    timed: Selection::NONE,
                    taken: Vec::new(),
                },
                passed: 0,
            };
            Ok((input, windows))
        }
    }

    /// Reads the times of all rows, and starts over: whether they come in the order of time.
    ///
    /// # Errors
    /// Those of the quals and of the time's expression.
    pub fn is_in_order(&mut self) -> Evaluation<bool> {
        let mut last = (false, i64::MIN);
        let mut in_order = true;
        while in_order && self.next_rows()? {
            in_order = self.vector.follows(&mut last);
        }
        self.source.end_look_ahead(self.attributes.clone());
        Ok(in_order)
    }

    /// Goes on to the next vector with rows that pass, and reads their times.
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

    /// Goes on to the next vector; false at the end.
    ///
    /// # Errors
    /// Those of the expressions.
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
        vector.taken.clear();
        for (x, time) in &mut self.arguments {
            let operand = x.evaluate(&frame, &vector.rows)?;
            let x = Taken::of(x, operand, &vector.rows);
            let time = match time {
                None => None,
                Some(time) => {
                    let operand = time.evaluate(&frame, &vector.rows)?;
                    Some(Taken::of(time, operand, &vector.rows))
                }
            };
            vector.taken.push((x, time));
        }
        Ok(true)
    }

    /// How many partitions there are so far.
    pub fn partitions(&self) -> usize {
        self.groups.groups()
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.groups.bytes()
    }
}

/// The alpha of an average.
unsafe fn weight(
    translator: &mut Translator,
    node: *mut pg_sys::Node,
) -> Translation<Evaluation<f64>> {
    // SAFETY: the plan's live expression, without columns.
    unsafe {
        let number = translator.value(node)?.number();
        let scalar = translator
            .constant(node)?
            .map(|datum| to_scalar(number, datum));
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
}
