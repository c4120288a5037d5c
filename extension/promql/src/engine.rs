//! Queries to answers.

use crate::ast::ValueType;
use crate::error::{Error, execution};
use crate::eval::Evaluator;
use crate::explain;
use crate::labels::Labels;
use crate::parser::ParserOptions;
use crate::plan::{NodeKind, Plan};
use crate::prepared::{Prepared, Shape};
use crate::profile::Profile;
use crate::sample::is_absent;
use crate::source::Source;
use hashbrown::HashMap;

/// How queries are read and evaluated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// What a query may use beside the stable language.
    pub parser: ParserOptions,
    /// Milliseconds that a sample counts at most.
    pub lookback_delta: i64,
    /// Milliseconds of a step of a subquery that names none.
    pub subquery_step: i64,
    /// Whether names are dropped in the end instead of by each function.
    pub delayed_name_removal: bool,
    /// What a query may read and hold.
    pub limits: Limits,
}

/// What a query may read and hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Samples that are read.
    pub samples_max: u64,
    /// Series that are read; one counts for each selector that reads it.
    pub series_max: u64,
    /// Steps of a query or of a subquery.
    pub steps_max: usize,
    /// Bytes of intermediate results and of the answer.
    pub held_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            parser: ParserOptions::default(),
            lookback_delta: 300_000,
            subquery_step: 60_000,
            delayed_name_removal: false,
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            samples_max: 1_000_000_000,
            series_max: 1_000_000,
            steps_max: 1_000_000,
            held_bytes_max: 256 << 20,
        }
    }
}

/// When a query is evaluated. All times are milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryTime {
    /// At one time.
    At(i64),
    /// At each step from a first time up to a last one.
    Steps {
        /// The first time.
        start: i64,
        /// No time is later.
        end: i64,
        /// The milliseconds between two times.
        step: i64,
    },
}

/// A series of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The label set.
    pub labels: Labels,
    /// Milliseconds since 1970.
    pub timestamps: Vec<i64>,
    /// The values.
    pub values: Vec<f64>,
}

/// A sample of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The label set.
    pub labels: Labels,
    /// The value at the time of the query.
    pub value: f64,
}

/// The value of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Scalar(f64),
    /// A text.
    String(String),
    /// A sample of each series.
    Vector(Vec<Sample>),
    /// Samples of each series; sorted by labels.
    Matrix(Vec<Series>),
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The value.
    pub value: Value,
    /// Warnings, each with its place in the query.
    pub warnings: Vec<String>,
    /// Infos, each with its place in the query.
    pub infos: Vec<String>,
    /// What the query took.
    pub statistics: Statistics,
}

/// What a query took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Series that were read.
    pub series: u64,
    /// Samples that were read.
    pub samples: u64,
    /// The most bytes that were held at a time.
    pub held_bytes_peak: usize,
}

/// Evaluates queries over a source of series.
pub struct Engine<'e> {
    source: &'e dyn Source,
    options: Options,
    interrupt: &'e dyn Fn() -> Result<(), Error>,
}

impl<'e> Engine<'e> {
    /// An engine over a source.
    pub fn new(source: &'e dyn Source, options: Options) -> Engine<'e> {
        Engine {
            source,
            options,
            interrupt: &|| Ok(()),
        }
    }

    /// Calls a function every few milliseconds of an evaluation, which ends with its error.
    pub fn with_interrupt(mut self, interrupt: &'e dyn Fn() -> Result<(), Error>) -> Engine<'e> {
        self.interrupt = interrupt;
        self
    }

    /// Evaluates a query at one time, in milliseconds since 1970.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn instant(&self, query: &str, at: i64) -> Result<Answer, Error> {
        self.query(query, QueryTime::At(at))
    }

    /// Evaluates a query at each step from a first time up to a last one, in milliseconds.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn range(&self, query: &str, start: i64, end: i64, step: i64) -> Result<Answer, Error> {
        self.query(query, QueryTime::Steps { start, end, step })
    }

    /// Evaluates a query.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn query(&self, query: &str, time: QueryTime) -> Result<Answer, Error> {
        self.evaluate(&Prepared::new(query, time, &self.options)?)
    }

    /// Evaluates a query that was prepared with the options of this engine.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn evaluate(&self, prepared: &Prepared) -> Result<Answer, Error> {
        self.answer(prepared, None)
    }

    /// Evaluates a query, and describes its plan with what each part of it did and how long it
    /// took: a text of several lines.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn explain(&self, query: &str, time: QueryTime) -> Result<String, Error> {
        let prepared = Prepared::new(query, time, &self.options)?;
        let profile = Profile::start();
        let answer = self.answer(&prepared, Some(&profile))?;
        Ok(explain::text(
            query,
            &prepared.plan,
            &profile.finish(),
            &answer.statistics,
        ))
    }

    fn answer(&self, prepared: &Prepared, profile: Option<&Profile>) -> Result<Answer, Error> {
        let plan = &prepared.plan;
        let mut evaluator = Evaluator::new(plan, self.source, &self.options, self.interrupt);
        evaluator.profile = profile;
        let value = prepared.shape.evaluate(&evaluator)?;
        let (warnings, infos) = evaluator.annotations.borrow().texts(&prepared.query);
        let counts = &evaluator.counts;
        Ok(Answer {
            value,
            warnings,
            infos,
            statistics: Statistics {
                series: counts.series.get(),
                samples: counts.samples.get(),
                held_bytes_peak: counts.held_peak.get(),
            },
        })
    }
}

impl Shape {
    /// The value of a plan.
    fn evaluate(self, evaluator: &Evaluator<'_>) -> Result<Value, Error> {
        let plan = evaluator.plan;
        match self {
            Shape::Steps => range_matrix(evaluator),
            Shape::Instant(ValueType::Matrix) => instant_matrix(evaluator),
            Shape::Instant(ValueType::String) => Ok(Value::String(text_of(plan))),
            Shape::Instant(ValueType::Scalar) => {
                let column = evaluator.scalar(&plan.root, plan.grid)?;
                Ok(Value::Scalar(column.first().copied().unwrap_or(f64::NAN)))
            }
            Shape::Instant(ValueType::Vector) => instant_vector(evaluator),
        }
    }
}

fn text_of(plan: &Plan) -> String {
    match &plan.root.kind {
        NodeKind::Text(text) => text.clone(),
        _ => String::new(),
    }
}

/// The series of an answer by their labels; rows of one label set become one series.
struct SeriesSet<'s, 'e> {
    evaluator: &'s Evaluator<'e>,
    series: Vec<Series>,
    places: HashMap<Labels, usize>,
}

impl<'s, 'e> SeriesSet<'s, 'e> {
    fn new(evaluator: &'s Evaluator<'e>) -> SeriesSet<'s, 'e> {
        SeriesSet {
            evaluator,
            series: Vec::new(),
            places: HashMap::new(),
        }
    }

    fn add(
        &mut self,
        labels: &Labels,
        drops_name: bool,
        samples: impl Iterator<Item = (i64, f64)>,
    ) -> Result<(), Error> {
        let is_delayed = self.evaluator.options.delayed_name_removal && drops_name;
        let labels = if is_delayed {
            labels.without_metadata()
        } else {
            labels.clone()
        };
        let next = self.series.len();
        let label_bytes = labels.bytes();
        let place = *self.places.entry(labels.clone()).or_insert(next);
        if place == next {
            self.series.push(Series {
                labels,
                timestamps: Vec::new(),
                values: Vec::new(),
            });
        }
        let series = &mut self.series[place];
        let before = series.values.len();
        for (time, value) in samples {
            series.timestamps.push(time);
            series.values.push(value);
        }
        let sample_bytes = 16 * (series.values.len() - before);
        self.evaluator.hold(label_bytes + sample_bytes + 64)?;
        if before > 0 {
            merge_samples(series)?;
        }
        Ok(())
    }

    fn sorted(mut self) -> Vec<Series> {
        self.series.retain(|series| !series.values.is_empty());
        self.series.sort_unstable_by(|a, b| a.labels.cmp(&b.labels));
        self.series
    }
}

/// Sorts the samples of a series that come from several rows.
fn merge_samples(series: &mut Series) -> Result<(), Error> {
    let columns = series
        .timestamps
        .iter()
        .copied()
        .zip(series.values.iter().copied());
    let mut samples: Vec<(i64, f64)> = columns.collect();
    samples.sort_by_key(|(time, _)| *time);
    if samples.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return execution("vector cannot contain metrics with the same labelset");
    }
    (series.timestamps, series.values) = samples.into_iter().unzip();
    Ok(())
}

fn range_matrix(evaluator: &Evaluator<'_>) -> Result<Value, Error> {
    let (plan, grid) = (evaluator.plan, evaluator.plan.grid);
    let mut set = SeriesSet::new(evaluator);
    evaluator.stream(&plan.root, grid, &mut |row| {
        let values = row.values.iter().enumerate();
        let present = values.filter(|(_, value)| !is_absent(**value));
        let samples = present.map(|(step, value)| (grid.time(step), *value));
        set.add(row.labels, row.drops_name, samples)
    })?;
    Ok(Value::Matrix(set.sorted()))
}

fn instant_vector(evaluator: &Evaluator<'_>) -> Result<Value, Error> {
    let plan = evaluator.plan;
    let mut set = SeriesSet::new(evaluator);
    evaluator.stream(&plan.root, plan.grid, &mut |row| {
        let value = row
            .values
            .iter()
            .copied()
            .filter(|value| !is_absent(*value));
        let samples = value.map(|value| (plan.grid.start, value));
        let mut samples = samples.peekable();
        match samples.peek().is_some() {
            true => set.add(row.labels, row.drops_name, samples),
            false => Ok(()),
        }
    })?;
    let samples = set.series.into_iter().filter_map(|series| {
        let value = *series.values.first()?;
        Some(Sample {
            labels: series.labels,
            value,
        })
    });
    Ok(Value::Vector(samples.collect()))
}

/// The samples of a range or a subquery that is the whole query.
fn instant_matrix(evaluator: &Evaluator<'_>) -> Result<Value, Error> {
    let mut set = SeriesSet::new(evaluator);
    evaluator.raw_samples(&evaluator.plan.root, &mut |labels, drops_name, samples| {
        let columns = samples
            .timestamps
            .iter()
            .copied()
            .zip(samples.values.iter().copied());
        set.add(labels, drops_name, columns)
    })?;
    Ok(Value::Matrix(set.sorted()))
}
