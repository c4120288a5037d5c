//! PromQL against Prometheus itself: the same samples, the same random queries, the same answers.
//!
//! | module | one thing |
//! |---|---|
//! | [`samples`] | samples from a seed |
//! | [`query`] | a random query, and when it is evaluated |
//! | [`writer`] | the state of writing a query |
//! | [`selectors`], [`vectors`], [`aggregations`], [`operators`] | the grammar of queries |
//! | [`broken`] | queries that are refused |
//! | [`stores`] | the stores of one run, which hold the same samples |
//! | [`sides`], [`engine_side`] | who answers: Prometheus, the gateway, the database, the engine alone |
//! | [`requests`] | wrong requests, which both servers refuse |
//! | [`comparison`] | two replies, and their first difference |
//! | [`differences`] | queries that are not compared with an older Prometheus, and why |
//! | [`tally`] | the queries of a run by kind |
//!
//! Values agree within 1e-12; types, label sets, times, NaN, infinities and the signs of zeros are
//! equal, and so is the order of series where PromQL defines one. Invalid queries have to fail on
//! both sides. Errors, warnings and infos have the words of the newest Prometheus. Over HTTP, status
//! codes and kinds of errors are equal too.
//!
//! `LANES_SEED` replays a run, with the times of its samples; `LANES_ROUNDS` sets the number of
//! queries.

mod aggregations;
mod broken;
mod comparison;
mod differences;
mod engine_side;
mod operators;
mod query;
mod requests;
mod samples;
mod selectors;
mod sides;
mod stores;
mod tally;
mod vectors;
mod writer;

use comparison::{Strictness, compare, compare_over_http};
use lanes_support::budget::Budget;
use lanes_support::prometheus_receiver;
use lanes_support::seed::seeded;
use query::{Query, Scene};
use std::path::Path;
use stores::Stores;
use tally::Tally;

/// The numbers of queries.
const QUERIES: Budget = Budget {
    short: 500,
    long: 5_000,
};
/// The number of different answers after which a run ends.
const DIFFERENCES_MAX: usize = 10;

/// A version of Prometheus that answers are compared with, and which queries it can judge.
#[derive(Clone, Copy)]
struct Reference {
    /// Whether edges of ranges and samples may coincide, and errors and warnings are compared.
    is_newest: bool,
    /// Why a query is not compared, if it is not.
    skips: fn(&Query) -> Option<&'static str>,
}

/// Asks both sides the same queries, half of them when the samples are sealed.
fn run(test: &str, program: &Path, reference: Reference) {
    let (mut random, seed) = seeded(test);
    let samples = samples::generate(&mut random, reference.is_newest);
    let mut stores = Stores::start(test, program, &samples);
    let scene = Scene {
        start: samples.start,
        length: samples::LENGTH,
        may_be_aligned: reference.is_newest,
    };
    let strictness = Strictness {
        is_newest: reference.is_newest,
    };
    let mut tally = Tally::default();
    let mut differences = Vec::new();
    let queries = QUERIES.rounds();
    for round in 0..queries {
        if round == queries / 2 {
            stores.seal();
        }
        let query = query::query(&mut random, scene);
        if let Some(reason) = (reference.skips)(&query) {
            tally.skip(reason);
            continue;
        }
        let over_http = stores.prometheus.ask(&query);
        let expected = &over_http.reply;
        tally.count(&query, expected);
        let found = stores.lanes.ask(&query);
        let difference = match compare(&query, expected, &found, strictness) {
            Err(difference) => {
                let alone = compare(&query, expected, &stores.engine.ask(&query), strictness);
                let place = match alone {
                    Ok(()) => "reading the samples, because the engine alone agrees",
                    Err(_) => "the engine, which alone differs too",
                };
                Err(format!("{difference}\n  at fault: {place}"))
            }
            Ok(()) => {
                compare_over_http(&query, &over_http, &stores.gateway.ask(&query), strictness)
                    .map_err(|difference| format!("{difference}\n  at fault: the gateway"))
            }
        };
        if let Err(difference) = difference {
            let kind = query.kind;
            differences.push(format!(
                "round {round}, a query of the kind {kind}:\n{query}\n  {difference}"
            ));
        }
        if differences.len() == DIFFERENCES_MAX {
            break;
        }
    }
    differences.extend(requests::differences(&stores, reference.is_newest));
    println!("{tally}");
    assert!(
        differences.is_empty(),
        "answers differ (seed {seed})\n{}",
        differences.join("\n")
    );
    stores.stop();
}

#[test]
fn answers_are_those_of_debians_prometheus() {
    let program = prometheus_receiver::debian().unwrap();
    let reference = Reference {
        is_newest: false,
        skips: differences::with_debian,
    };
    run("promql_differential_debian", &program, reference);
}

#[test]
fn answers_are_those_of_the_newest_prometheus() {
    let program = prometheus_receiver::newest().unwrap();
    let reference = Reference {
        is_newest: true,
        skips: differences::with_newest,
    };
    run("promql_differential_newest", &program, reference);
}
