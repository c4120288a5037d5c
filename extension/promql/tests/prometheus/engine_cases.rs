//! Runs the scripts of Prometheus's engine tests.
//!
//! As Prometheus's own runner does, each instant evaluation is repeated as the middle step of a
//! range query, and at other times with `@` at all of its selectors.

use crate::comparison;
use crate::go_module;
use crate::script::{self, Command, Eval, Kind, Times};
use crate::skipped::Skipped;
use crate::storage::Storage;
use lanes_promql::ast::{At, Expr};
use lanes_promql::engine::{Engine, Options, Sample};
use lanes_promql::parser::{ParserOptions, parse};
use lanes_promql::{Answer, Error, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const PARSER: ParserOptions = ParserOptions {
    experimental_functions: true,
    fill_modifiers: true,
    unicode_names: true,
};

/// The folder of the scripts in the module.
const FOLDER: &str = "promql/promqltest/testdata";

fn options() -> Options {
    Options {
        parser: PARSER,
        delayed_name_removal: true,
        ..Options::default()
    }
}

/// Runs an evaluation in all its forms.
fn run(storage: &Storage, eval: &Eval) -> Result<(), String> {
    let engine = Engine::new(storage, options());
    match eval.times {
        Times::Range(start, end, step) => {
            compare(eval, engine.range(&eval.query, start, end, step)).map(|_| ())
        }
        Times::Instant(at) => {
            let at = eval.expected.range_vector.map_or(at, |(_, end, _)| end);
            let given = (eval.query.clone(), at);
            for (query, at) in std::iter::once(given).chain(fixed_queries(&eval.query, at)) {
                run_instant(&engine, eval, &query, at)
                    .map_err(|fault| format!("{fault} ({query} at {at})"))?;
            }
            Ok(())
        }
    }
}

/// Compares an answer or an error; returns the answer.
fn compare(eval: &Eval, result: Result<Answer, Error>) -> Result<Option<Answer>, String> {
    match result {
        Err(error @ Error::NativeHistogram(_)) => Err(error.to_string()),
        Err(error) if eval.expects(Kind::Fail) => {
            comparison::failure(eval, &error.to_string()).map(|()| None)
        }
        Err(error) => Err(format!("error {error}")),
        Ok(_) if eval.expects(Kind::Fail) => Err("no error".to_owned()),
        Ok(answer) => {
            comparison::annotations(eval, &answer)?;
            comparison::value(eval, &answer.value)?;
            Ok(Some(answer))
        }
    }
}

fn run_instant(engine: &Engine<'_>, eval: &Eval, query: &str, at: i64) -> Result<(), String> {
    let Some(answer) = compare(eval, engine.instant(query, at))? else {
        return Ok(());
    };
    let depends_on_query = ["start()", "end()", "range()", "step()"];
    let is_instant_only = eval.expected.range_vector.is_some() || eval.expected.string.is_some();
    if is_instant_only || depends_on_query.iter().any(|text| query.contains(text)) {
        return Ok(());
    }
    let minute = 60_000;
    let result = engine.range(query, at - minute, at + minute, minute);
    let series = match result {
        Err(error) => return Err(format!("error in range mode: {error}")),
        Ok(answer) => match answer.value {
            Value::Matrix(series) => series,
            other => return Err(format!("range mode returns {other:?}")),
        },
    };
    if eval.expects(Kind::Ordered) {
        return Ok(());
    }
    let sample = |series: &lanes_promql::engine::Series| {
        let place = series.timestamps.iter().position(|time| *time == at)?;
        Some(Sample {
            labels: series.labels.clone(),
            value: series.values[place],
        })
    };
    let samples: Vec<Sample> = series.iter().filter_map(sample).collect();
    let compared = match answer.value {
        Value::Scalar(_) => {
            let value = samples.first().map_or(f64::NAN, |sample| sample.value);
            comparison::value(eval, &Value::Scalar(value))
        }
        _ => comparison::vector(eval, &samples),
    };
    compared.map_err(|fault| format!("in range mode: {fault}"))
}

/// The query with `@` at all of its selectors, at several times at which it has one value.
fn fixed_queries(query: &str, at: i64) -> Vec<(String, i64)> {
    let Ok(mut expr) = parse(query, PARSER) else {
        return Vec::new();
    };
    if !fix_times(&mut expr, at) {
        return Vec::new();
    }
    let query = expr.to_string();
    let times = match at {
        0 => vec![-1000, 0, 1000],
        at => vec![-10 * at, 0, at / 5, at, 10 * at],
    };
    times
        .into_iter()
        .map(|time| (query.clone(), time))
        .collect()
}

/// Sets the time of each selector that has none; returns whether the value depends on it alone.
fn fix_times(expr: &mut Expr, at: i64) -> bool {
    let time = match expr {
        Expr::Selector(selector) => Some(&mut selector.time),
        Expr::Range(range) => Some(&mut range.selector.time),
        Expr::Subquery(subquery) => Some(&mut subquery.time),
        _ => None,
    };
    if let Some(time) = time {
        if !matches!(time.at, Some(At::Time(_))) {
            time.at = Some(At::Time(at));
        }
        // What is inside of a subquery with a time stays as it is.
        return true;
    }
    let mut is_fixed = match expr {
        Expr::Call(call) => !call.function.depends_on_time(),
        _ => true,
    };
    for child in expr.children_mut() {
        is_fixed &= fix_times(child, at);
    }
    is_fixed
}

fn scripts() -> Vec<String> {
    let folder = go_module::folder().join(FOLDER);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".test")).collect();
    names.sort_unstable();
    names
}

#[test]
fn evaluations_return_what_prometheus_returns() {
    let skipped = Skipped::read();
    let mut faults = String::new();
    let mut counts: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let mut seen = Vec::new();
    for name in scripts() {
        let mut storage = Storage::default();
        let count = counts.entry(name.clone()).or_default();
        for command in script::parse(&go_module::read(&format!("{FOLDER}/{name}"))) {
            match command {
                Command::Clear => storage = Storage::default(),
                Command::Load(load) => storage.load(&load),
                Command::Eval(eval) => {
                    let line = eval.line;
                    seen.push((name.clone(), line));
                    let result = run(&storage, &eval);
                    let reason = skipped.reason(&name, line);
                    count[usize::from(result.is_err())] += 1;
                    let query = &eval.query;
                    match (result, reason) {
                        (Ok(()), None) | (Err(_), Some(_)) => {}
                        (Err(fault), None) => {
                            let _ = writeln!(faults, "{name}:{line}: {query}: {fault}");
                        }
                        (Ok(()), Some(reason)) => {
                            let told = format!("passes but is skipped: {reason}");
                            let _ = writeln!(faults, "{name}:{line}: {query}: {told}");
                        }
                    }
                }
            }
        }
    }
    for (name, [passed, not_passed]) in &counts {
        println!("{name}: {passed} pass, {not_passed} are skipped");
    }
    assert!(
        seen.len() > 2000,
        "only {} evaluations were found",
        seen.len()
    );
    for unused in skipped.unused(&seen) {
        let _ = writeln!(faults, "{unused}: names no evaluation");
    }
    assert!(faults.is_empty(), "\n{faults}");
}
