//! A join by time under execution: the right side is read into a series once, then each vector of the left side is given what
//! it finds there.

use lanes_columnar::aggregate::Key;
use lanes_columnar::aggregate::extreme::End;
use lanes_columnar::join::asof::Asof;
use lanes_columnar::join::cursor::Bound;
use lanes_columnar::join::given::Given;
use lanes_columnar::join::keys::{JoinKey, JoinKeys, Side};
use lanes_columnar::join::series::{Series, SeriesBuilder};
use lanes_columnar::join::window::{Window, WindowCall};
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};
use pgrx::pg_sys;

use super::aggregate_call;
use super::prune::Prune;
use super::time_join::{JoinPlan, TimeBound, Wanted};
use super::translate::{Scalars, Translation, Translator, function_name, number_type, type_name};
use super::vector_source::{Counters, VectorSource};
use crate::asof_join::kind::Kind;
use crate::error;
use crate::pg::nodes;

/// The right side as the engine reads it.
pub struct Right {
    translator: Translator,
    quals: Vec<Predicate>,
    keys: Vec<Key>,
    time: Value,
    /// The columns of the series.
    columns: Vec<Value>,
    /// For a window: what each wanted output is, over the columns.
    calls: Vec<WindowCall>,
}

/// A join by time under execution.
pub struct JoinStage {
    inner: bool,
    keys: JoinKeys,
    lower: Option<(Value, bool)>,
    upper: Option<(Value, bool)>,
    series: Series,
    find: Find,
    given: Vec<Given>,
    operands: Vec<Operand>,
    /// What reading the right side took.
    pub counters: Counters,
}

enum Find {
    Nearest { asof: Asof, backward: bool },
    Window(Window),
}

impl Right {
    /// Whether the right side can be read by vectors.
    ///
    /// # Safety
    /// A plan's live expressions.
    pub unsafe fn check(plan: &JoinPlan) -> Translation<()> {
        // SAFETY: the caller's promise.
        unsafe {
            let outputs: Vec<usize> = match &plan.wanted {
                Wanted::Nearest { .. } => Vec::new(),
                Wanted::Aggregates(calls) => (0..calls.len()).collect(),
            };
            Right::of(plan, Scalars::Unknown, &outputs).map(drop)
        }
    }

    unsafe fn of(plan: &JoinPlan, scalars: Scalars, outputs: &[usize]) -> Translation<Right> {
        let mut translator = Translator::new(scalars);
        // SAFETY: the plan's live expressions, and catalogue look-ups about its table, which is locked.
        unsafe {
            let number_of = |column: i16| {
                let type_of = pg_sys::get_atttype(plan.table, column);
                number_type(type_of)
                    .ok_or_else(|| format!("a column of type {}", type_name(type_of)))
            };
            let column = |column: i16| {
                number_of(column).map(|number| Value::Column(number, column as usize - 1))
            };
            let mut quals = Vec::new();
            for qual in nodes::list::<pg_sys::Node>(plan.table_quals) {
                quals.push(translator.predicate(qual)?);
            }
            let mut keys = Vec::new();
            for key in &plan.keys {
                let attribute = key.column as usize - 1;
                keys.push(match key.kind {
                    Kind::Text => Key::Text(attribute),
                    Kind::Bool => Key::Truth(Predicate::Bool(attribute)),
                    _ => Key::Number(column(key.column)?),
                });
            }
            let (mut columns, mut calls) = (Vec::new(), Vec::new());
            match &plan.wanted {
                Wanted::Nearest { outputs: all, .. } => {
                    for output in outputs {
                        columns.push(column(all[*output])?);
                    }
                }
                Wanted::Aggregates(all) => {
                    for output in outputs {
                        calls.push(window_call(&mut translator, all[*output], &mut columns)?);
                    }
                }
            }
            Ok(Right {
                time: column(plan.time)?,
                translator,
                quals,
                keys,
                columns,
                calls,
            })
        }
    }

    /// Reads the table.
    unsafe fn read(
        &mut self,
        table: pg_sys::Oid,
        snapshot: pg_sys::Snapshot,
        keys: &mut JoinKeys,
    ) -> (SeriesBuilder, Counters) {
        let numbers: Vec<NumberType> = self.columns.iter().map(Value::number).collect();
        let mut builder = SeriesBuilder::new(&numbers);
        let mut prunes = Vec::new();
        for qual in &self.quals {
            Prune::of(qual, &mut prunes);
        }
        // SAFETY: the table is locked since the plan was made ready.
        unsafe {
            let relation = pg_sys::relation_open(table, pg_sys::NoLock as i32);
            let mut source = VectorSource::begin(relation, snapshot, Vec::new());
            while let Some(selection) = source.next(&prunes, &self.translator.scalars) {
                let frame = source.frame(&self.translator.scalars);
                let added = Self::add(
                    &mut self.quals,
                    (&mut self.time, &mut self.columns),
                    keys,
                    &frame,
                    selection,
                    &mut builder,
                );
                if let Err(failure) = added {
                    error::evaluation(failure);
                }
            }
            let counters = source.counters;
            source.end();
            pg_sys::relation_close(relation, pg_sys::NoLock as i32);
            (builder, counters)
        }
    }

    fn add(
        quals: &mut [Predicate],
        (time, columns): (&mut Value, &mut [Value]),
        keys: &mut JoinKeys,
        frame: &Frame<'_>,
        mut selection: Selection,
        builder: &mut SeriesBuilder,
    ) -> Evaluation<()> {
        for qual in quals {
            if selection.is_empty() {
                return Ok(());
            }
            selection = qual.evaluate(frame, &selection)?.yes;
        }
        let times = time.evaluate(frame, &selection)?;
        selection = times.valid(&selection);
        let ids = keys.assign(Side::Right, frame, &mut selection)?;
        let mut operands = Vec::with_capacity(columns.len());
        for column in columns {
            operands.push(column.evaluate(frame, &selection)?);
        }
        builder.add(
            ids,
            (time.number(), times),
            &operands,
            &selection,
            frame.rows,
        )
    }
}

/// An aggregate of a window; its argument becomes a column of the series.
unsafe fn window_call(
    translator: &mut Translator,
    call: *mut pg_sys::Aggref,
    columns: &mut Vec<Value>,
) -> Translation<WindowCall> {
    // SAFETY: `Right::of`'s caller has live calls.
    unsafe {
        let call = &*call;
        let function = call.aggfnoid.to_u32();
        let plain = call.aggdistinct.is_null()
            && call.aggorder.is_null()
            && call.aggfilter.is_null()
            && call.aggkind as u8 == b'n'
            && !call.aggvariadic;
        let refused = || Err(format!("{} in a window join", function_name(function)));
        if !plain {
            return refused();
        }
        if function == pg_sys::F_COUNT_ {
            return Ok(WindowCall::Rows);
        }
        let Some(argument) = nodes::list::<pg_sys::TargetEntry>(call.args).next() else {
            return refused();
        };
        let argument = translator.value((*argument).expr.cast())?;
        let column = columns.len();
        let wanted = match function {
            pg_sys::F_COUNT_ANY => WindowCall::Count(column),
            pg_sys::F_SUM_INT2
            | pg_sys::F_SUM_INT4
            | pg_sys::F_SUM_FLOAT4
            | pg_sys::F_SUM_FLOAT8 => WindowCall::Sum(column),
            pg_sys::F_AVG_FLOAT4 | pg_sys::F_AVG_FLOAT8 => WindowCall::Average(column),
            _ => match aggregate_call::end_of(function) {
                Some(End::Minimum) => WindowCall::Minimum(column),
                Some(End::Maximum) => WindowCall::Maximum(column),
                None => return refused(),
            },
        };
        columns.push(argument);
        Ok(wanted)
    }
}

impl JoinStage {
    /// Reads the right side. `translator` has translated what else the query wants of the left side and of the join.
    ///
    /// # Safety
    /// A plan's live expressions, and a plan node under execution.
    pub unsafe fn build(
        plan: &JoinPlan,
        node: *mut pg_sys::PlanState,
        translator: &mut Translator,
    ) -> Translation<JoinStage> {
        // SAFETY: the caller's promise.
        unsafe {
            let outputs = translator.given().to_vec();
            let mut right = Right::of(plan, Scalars::Evaluated(node), &outputs)?;
            let mut keys = Vec::new();
            let right_keys = std::mem::take(&mut right.keys);
            for ((left, column), right) in plan.left_keys.iter().zip(&plan.keys).zip(right_keys) {
                keys.push(JoinKey {
                    left: aggregate_call::key(translator, *left)?.0,
                    right,
                    nulls_match: column.nulls_match,
                });
            }
            let mut keys = JoinKeys::new(keys);
            let mut bound = |bound: Option<TimeBound>| -> Translation<Option<(Value, bool)>> {
                let Some(bound) = bound else {
                    return Ok(None);
                };
                Ok(Some((translator.value(bound.time)?, bound.inclusive)))
            };
            let (lower, upper) = (bound(plan.lower)?, bound(plan.upper)?);
            let snapshot = (*(*node).state).es_snapshot;
            let (builder, counters) = right.read(plan.table, snapshot, &mut keys);
            let series = builder.finish(keys.len());
            let numbers: Vec<NumberType> = right.columns.iter().map(Value::number).collect();
            let (find, given) = match &plan.wanted {
                Wanted::Nearest { backward, .. } => (
                    Find::Nearest {
                        asof: Asof::new(&series, *backward),
                        backward: *backward,
                    },
                    numbers.into_iter().map(Given::new).collect::<Vec<_>>(),
                ),
                Wanted::Aggregates(_) => {
                    let calls = right.calls.iter();
                    let given = calls
                        .map(|call| Given::new(call.number(&numbers)))
                        .collect();
                    (Find::Window(Window::new(&series, right.calls)), given)
                }
            };
            Ok(JoinStage {
                inner: plan.inner,
                keys,
                lower,
                upper,
                series,
                operands: given.iter().map(Given::operand).collect(),
                given,
                find,
                counters,
            })
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let find = match &self.find {
            Find::Nearest { asof, .. } => asof.bytes(),
            Find::Window(window) => window.bytes(),
        };
        self.keys.bytes() + self.series.bytes() + find
    }

    /// Rows of the right side.
    pub fn rows(&self) -> usize {
        self.series.len()
    }

    /// Finds what the selected rows of a vector of the left side are given, and leaves out rows that have no part in the join.
    ///
    /// # Errors
    /// Those of keys, bounds and aggregates.
    pub fn find(&mut self, frame: &Frame<'_>, selection: &mut Selection) -> Evaluation<()> {
        let mut matching = *selection;
        let evaluate = |bound: &mut Option<(Value, bool)>, matching: &mut Selection| {
            let Some((value, inclusive)) = bound else {
                return Ok(None);
            };
            let times = value.evaluate(frame, selection)?;
            *matching = times.valid(matching);
            Ok(Some(Bound {
                number: value.number(),
                times,
                inclusive: *inclusive,
            }))
        };
        let lower = evaluate(&mut self.lower, &mut matching)?;
        let upper = evaluate(&mut self.upper, &mut matching)?;
        let ids = self.keys.assign(Side::Left, frame, &mut matching)?;
        match &mut self.find {
            Find::Nearest { asof, backward } => {
                let (near, far) = if *backward {
                    (upper, lower)
                } else {
                    (lower, upper)
                };
                let Some(near) = near else {
                    return Ok(());
                };
                // SAFETY: bounds and ids are of this vector.
                let found = unsafe { asof.find(&self.series, ids, &near, far.as_ref(), &matching) };
                for (given, column) in self.given.iter_mut().zip(&self.series.columns) {
                    given.gather(column, asof.places(), &found);
                }
                if self.inner {
                    *selection = found;
                }
                Ok(())
            }
            // SAFETY: as above.
            Find::Window(window) => unsafe {
                window.aggregate(
                    &self.series,
                    ids,
                    lower.as_ref(),
                    upper.as_ref(),
                    selection,
                    &matching,
                    &mut self.given,
                )
            },
        }
    }

    /// What the rows of the vector were given.
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }
}
