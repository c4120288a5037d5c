//! The right side of a join by time: a table whose vectors are read in row order.

use lanes_columnar::aggregate::Key;
use lanes_columnar::aggregate::extreme::End;
use lanes_columnar::join::by_key::Ascending;
use lanes_columnar::join::keys::{JoinKeys, Side};
use lanes_columnar::join::reading::{RightVector, goes_on};
use lanes_columnar::join::series::{Series, SeriesBuilder};
use lanes_columnar::join::window::WindowCall;
use lanes_columnar::lane::LaneData;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};
use lanes_columnar::vector::{Evaluation, EvaluationError};
use pgrx::pg_sys;

use super::plan::{JoinPlan, Wanted};
use crate::expressions::aggregate_call;
use crate::expressions::translate::{Scalars, Translation, Translator, number_type};
use crate::pg::catalog;
use crate::pg::exec::table::OwnTable;
use crate::pg::kind::Kind;
use crate::pg::names::{function_name, type_name};
use crate::pg::snapshot::Snapshot;
use crate::pg::tree::{Aggref, View};
use crate::vectors::counters::Counters;
use crate::vectors::prune::Filter;
use crate::vectors::vector_source::VectorSource;

/// The right side of a join under execution.
pub struct RightSide {
    table: pg_sys::Oid,
    scalars: Vec<Option<Scalar>>,
    filter: Filter,
    /// The keys, until the join takes them.
    pub keys: Vec<Key>,
    time: Value,
    columns: Vec<Value>,
    /// For a window join, the aggregate for each output, over the columns.
    pub calls: Vec<WindowCall>,
    /// The attributes of the keys.
    key_attributes: Vec<usize>,
    /// All attributes that are read.
    attributes: Vec<usize>,
    scan: Option<RightScan>,
    /// Statistics of the scans so far.
    pub counters: Counters,
}

/// A scan in progress.
struct RightScan {
    table: OwnTable,
    source: VectorSource,
}

impl RightSide {
    /// Checks that the right side can be read as vectors.
    pub fn check(plan: &JoinPlan) -> Translation<()> {
        let outputs: Vec<usize> = match &plan.wanted {
            Wanted::Nearest { .. } => Vec::new(),
            Wanted::Aggregates(calls) => (0..calls.len()).collect(),
        };
        RightSide::of(plan, Scalars::Unknown, &outputs).map(drop)
    }

    /// Prepares the right side of a plan, with the outputs that the query needs.
    pub fn of(plan: &JoinPlan, scalars: Scalars, outputs: &[usize]) -> Translation<RightSide> {
        let mut translator = Translator::of_other_table(scalars);
        let column = |column: i16| {
            let type_of = catalog::column_type(plan.table, column);
            let number = number_type(type_of)
                .ok_or_else(|| format!("a column of type {}", type_name(type_of)));
            number.map(|number| Value::Column(number, column as usize - 1))
        };
        let filter = Filter::of(&mut translator, plan.table_quals.iter().map(View::as_ptr))?;
        let mut keys = Vec::new();
        let mut key_attributes = Vec::new();
        for key in &plan.keys {
            let attribute = key.column as usize - 1;
            key_attributes.push(attribute);
            keys.push(match key.kind {
                Kind::Text => Key::Text(attribute),
                Kind::Bool => Key::Truth(Predicate::Bool(attribute)),
                _ => Key::Number(column(key.column)?),
            });
        }
        let time = column(plan.time)?;
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
        // The translator knows the attributes of expressions; the attributes of plain
        // columns are added.
        let mut attributes = translator.attributes();
        attributes.extend_from_slice(&key_attributes);
        attributes.extend(time.column());
        attributes.extend(columns.iter().filter_map(Value::column));
        Ok(RightSide {
            table: plan.table,
            time,
            key_attributes,
            attributes,
            scalars: translator.scalars,
            filter,
            keys,
            columns,
            calls,
            scan: None,
            counters: Counters::default(),
        })
    }

    /// The type of the times.
    pub fn time_type(&self) -> NumberType {
        self.time.number()
    }

    /// The types of the columns.
    pub fn column_types(&self) -> Vec<NumberType> {
        self.columns.iter().map(Value::number).collect()
    }

    /// Starts a new scan.
    pub fn open(&mut self, snapshot: Option<Snapshot<'static>>) {
        self.close();
        let table = OwnTable::open(self.table, snapshot);
        let mut source = VectorSource::begin(table.table(), self.filter.zones_wanted.clone());
        source.want_only(self.attributes.clone());
        self.scan = Some(RightScan { table, source });
    }

    /// Ends the scan.
    pub fn close(&mut self) {
        if let Some(scan) = self.scan.take() {
            self.counters = self.counters.plus(&scan.source.counters());
            scan.source.end();
            scan.table.close();
        }
    }

    /// Whether the table has rows and they come in the order of their times. The first row has
    /// not been read yet. Zone maps decide this for most vectors; the times of other vectors are
    /// read.
    pub fn is_in_order(&mut self) -> bool {
        let (Some(scan), Some(attribute)) = (&mut self.scan, self.time.column()) else {
            return false;
        };
        let mut latest = i64::MIN;
        let mut in_order = self.time.number() == NumberType::I64;
        let mut is_empty = true;
        let mut looked_at = self.filter.attributes.clone();
        looked_at.push(attribute);
        scan.source.begin_look_ahead(looked_at);
        while in_order && scan.source.advance(&mut self.filter, &self.scalars) {
            is_empty = false;
            let zone = scan.source.zone(attribute);
            let ends = zone.map(|zone| (zone.minimum.signed(), zone.maximum.signed(), zone.sorted));
            if let Some((Some(minimum), Some(maximum), true)) = ends {
                in_order = latest <= minimum;
                latest = latest.max(maximum);
                continue;
            }
            scan.source.fill(Some(&[attribute]));
            let frame = scan.source.frame(&self.scalars);
            if frame.present(attribute, scan.source.visible().0).is_empty() {
                continue;
            }
            let times = frame.values::<i64>(attribute);
            in_order = times.is_some_and(|times| goes_on(times, &mut latest));
        }
        scan.source.end_look_ahead(self.attributes.clone());
        in_order && !is_empty
    }

    /// Whether the table has rows and they come in the order of their keys. The first row has
    /// not been read yet.
    ///
    /// # Errors
    /// Errors in the evaluation of keys.
    pub fn is_by_key(&mut self, keys: &mut JoinKeys) -> Evaluation<bool> {
        let Some(scan) = self.scan.as_mut().filter(|_| keys.have_order()) else {
            return Ok(false);
        };
        let looked_at = [&self.filter.attributes[..], &self.key_attributes].concat();
        scan.source.begin_look_ahead(looked_at);
        let mut ascending = Ascending::new();
        let (mut is_empty, mut by_key) = (true, true);
        while by_key && scan.source.advance(&mut self.filter, &self.scalars) {
            is_empty = false;
            scan.source.fill(Some(&self.key_attributes));
            let frame = scan.source.frame(&self.scalars);
            let mut selection = *scan.source.visible().0;
            let ids = keys.assign(Side::Right, &frame, &mut selection)?;
            by_key = ascending.enter(&ids, &selection, frame.rows)
                && ascending.holds(|a, b| keys.order(a, b));
        }
        scan.source.end_look_ahead(self.attributes.clone());
        Ok(by_key && !is_empty)
    }

    /// The number of segments that the scan has opened.
    pub fn windows(&self) -> u64 {
        self.scan
            .as_ref()
            .map_or(0, |scan| scan.source.counters().segments)
    }

    /// Moves on to the next vector with rows that pass the conditions. `leave_window` is called,
    /// perhaps several times, before the lanes of the current segment may become invalid.
    ///
    /// # Errors
    /// Errors in the evaluation of conditions and keys.
    pub fn next<'a>(
        &mut self,
        keys: &'a mut JoinKeys,
        mut leave_window: impl FnMut(),
    ) -> Evaluation<Option<RightVector<'a>>> {
        let Some(scan) = &mut self.scan else {
            return Ok(None);
        };
        loop {
            if scan.source.is_window_done() || self.filter.may_rule_out() {
                leave_window();
            }
            if !scan.source.advance(&mut self.filter, &self.scalars) {
                break;
            }
            let Some(mut selection) = scan.source.narrow(&mut self.filter, &self.scalars)? else {
                continue;
            };
            let frame = scan.source.frame(&self.scalars);
            let times = self.time.evaluate(&frame, &selection)?;
            selection = times.valid(&selection);
            if selection.is_empty() {
                continue;
            }
            let (rows, place) = (frame.rows, frame.place);
            let ids = keys.assign(Side::Right, &frame, &mut selection)?;
            return Ok(Some(RightVector {
                ids,
                number: self.time.number(),
                times,
                selection,
                rows,
                place,
            }));
        }
        Ok(None)
    }

    /// Whether all columns are plain columns, so that [`RightSide::window_columns`] contains all
    /// of them.
    pub fn has_plain_columns(&self) -> bool {
        self.columns.iter().all(|column| column.column().is_some())
    }

    /// The plain columns of the current segment, from its first row on.
    pub fn window_columns(&self) -> Vec<Operand> {
        let Some(scan) = &self.scan else {
            return Vec::new();
        };
        let frame = scan.source.frame(&self.scalars);
        let operand = |attribute: usize| {
            let lane = frame.lane(attribute);
            match lane.data {
                LaneData::Fixed { values, .. } => Operand::Each {
                    values,
                    validity: lane.validity,
                },
                _ => Operand::Null,
            }
        };
        let columns = self.columns.iter();
        columns
            .map(|column| column.column().map_or(Operand::Null, operand))
            .collect()
    }

    /// Reads the whole table into a series. The series and the keys may take `limit` bytes.
    ///
    /// # Errors
    /// Errors in the evaluation of conditions and keys, and too much memory. Errors in the
    /// evaluation of columns are stored in the series, which raises them for the rows that are
    /// found.
    pub fn series(
        &mut self,
        snapshot: Option<Snapshot<'static>>,
        keys: &mut JoinKeys,
        limit: usize,
    ) -> Evaluation<Series> {
        self.open(snapshot);
        let series = self.gather(keys, limit);
        self.close();
        series
    }

    /// Reads all rows of the scan.
    fn gather(&mut self, keys: &mut JoinKeys, limit: usize) -> Evaluation<Series> {
        let mut builder = SeriesBuilder::new(&self.column_types(), limit);
        loop {
            let (known_keys, key_bytes) = (keys.len(), keys.bytes());
            let Some(vector) = self.next(keys, || ())? else {
                break;
            };
            let rows = vector.selection.count();
            builder.make_room(rows, known_keys + rows, key_bytes)?;
            let Some(scan) = &self.scan else {
                break;
            };
            let frame = scan.source.frame(&self.scalars);
            let mut operands = Vec::with_capacity(self.columns.len());
            let mut failures = Vec::new();
            for (index, column) in self.columns.iter_mut().enumerate() {
                let mut selection = vector.selection;
                let operand = column.evaluate(&frame, &selection).or_else(|_| {
                    // No left row may ever find these rows, so the error is not raised yet.
                    failures.push((index, failing_rows(column, &frame, &mut selection)));
                    column.evaluate(&frame, &selection)
                });
                operands.push(operand?);
            }
            builder.add(
                &vector.ids,
                (vector.number, vector.times),
                &operands,
                &vector.selection,
                vector.rows,
            )?;
            for (column, failures) in failures {
                builder.fail(column, &failures, &vector.selection);
            }
        }
        Ok(builder.finish(keys.len()))
    }
}

/// Deselects and returns the rows for which a column cannot be evaluated.
fn failing_rows(
    column: &mut Value,
    frame: &Frame<'_>,
    selection: &mut Selection,
) -> Vec<(usize, EvaluationError)> {
    let mut failures = Vec::new();
    let all = *selection;
    all.for_each(|row| {
        let alone = all.within(row, row + 1);
        if let Err(failure) = column.evaluate(frame, &alone) {
            failures.push((row, failure));
            *selection = selection.and_not(&alone);
        }
    });
    failures
}

/// Translates an aggregate of a window. Its argument becomes a column of the series.
fn window_call(
    translator: &mut Translator,
    call: Aggref<'_>,
    columns: &mut Vec<Value>,
) -> Translation<WindowCall> {
    let function = call.aggfnoid().to_u32();
    let plain = call.aggdistinct().is_empty()
        && call.aggorder().is_empty()
        && call.aggfilter().is_none()
        && call.is_normal()
        && !call.aggvariadic();
    let refused = || Err(format!("{} in a window join", function_name(function)));
    if !plain {
        return refused();
    }
    if function == pg_sys::F_COUNT_ {
        return Ok(WindowCall::Rows);
    }
    let Some(argument) = call.args().first() else {
        return refused();
    };
    let argument = translator.value(argument.expr())?;
    let column = columns.len();
    let wanted = match function {
        pg_sys::F_COUNT_ANY => WindowCall::Count(column),
        pg_sys::F_SUM_INT2 | pg_sys::F_SUM_INT4 | pg_sys::F_SUM_FLOAT4 | pg_sys::F_SUM_FLOAT8 => {
            WindowCall::Sum(column)
        }
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
