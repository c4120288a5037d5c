//! A random query, and when it is evaluated.

use crate::broken;
use crate::vectors;
use crate::writer::Writer;
use lanes_support::seed::Random;
use rand::RngExt;
use rand::seq::IndexedRandom;
use std::collections::BTreeSet;
use std::fmt;

/// A query, when it is evaluated, and what is known about it.
#[derive(Debug, Clone)]
pub struct Query {
    /// The text.
    pub text: String,
    /// The kind of its outermost expression.
    pub kind: &'static str,
    /// The names of the functions, aggregations and other forms that it uses.
    pub uses: BTreeSet<&'static str>,
    /// When it is evaluated.
    pub times: Times,
    /// The age up to which a sample counts, in milliseconds, unless it is the default of 5 minutes.
    pub lookback: Option<i64>,
}

/// When a query is evaluated, in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub enum Times {
    /// At one time.
    At(i64),
    /// At each step from a first time up to a last one.
    Steps {
        /// The first time.
        start: i64,
        /// The last time at which it may be evaluated.
        end: i64,
        /// The time from one evaluation to the next.
        step: i64,
    },
}

/// What the queries of a run are about.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    /// The time of the first sample, in milliseconds since 1970.
    pub start: i64,
    /// The length of time with samples, in milliseconds.
    pub length: i64,
    /// Whether evaluations may be at whole seconds, where samples and edges of ranges coincide.
    pub may_be_aligned: bool,
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |time: i64| time as f64 / 1000.0;
        write!(f, "{}\n  ", self.text)?;
        match self.times {
            Times::At(at) => write!(f, "at {:.3}", seconds(at))?,
            Times::Steps { start, end, step } => {
                let (start, end, step) = (seconds(start), seconds(end), seconds(step));
                write!(f, "from {start:.3} to {end:.3} by {step:.3} s")?;
            }
        }
        match self.lookback {
            Some(lookback) => write!(f, ", look-back {:.3} s", seconds(lookback)),
            None => Ok(()),
        }
    }
}

impl Query {
    /// Whether the answer's series are ordered by their values.
    pub fn is_sorted(&self) -> bool {
        matches!(self.times, Times::At(_)) && self.kind == "sort"
    }

    /// Whether the answer's series are ordered by their groups, and by their values in each.
    pub fn is_sorted_in_groups(&self) -> bool {
        let is_top = self.kind == "topk" && !self.uses.contains("any tie");
        matches!(self.times, Times::At(_)) && is_top
    }
}

/// Makes a query.
pub fn query(random: &mut Random, scene: Scene) -> Query {
    let mut writer = Writer::new(random, scene);
    let (text, kind) = match writer.chance(8) {
        true => broken::query(&mut writer),
        false => vectors::query(&mut writer),
    };
    let lookback = writer.chance(8).then(|| {
        writer.note("look-back");
        writer.pick(&[1_000, 61_500, 900_000])
    });
    let uses = std::mem::take(&mut writer.uses);
    // Ranges and strings have a value at one time only; over a range of times they are refused.
    let at_percent = match kind {
        "range" | "string" => 85,
        _ => 50,
    };
    Query {
        text,
        kind,
        uses,
        times: times(random, scene, at_percent),
        lookback,
    }
}

fn times(random: &mut Random, scene: Scene, at_percent: u32) -> Times {
    const MINUTE: i64 = 60_000;
    let start = scene.start + random.random_range(-MINUTE..scene.length + 4 * MINUTE);
    let start = scene.placed(random, start);
    if random.random_ratio(at_percent, 100) {
        return Times::At(start);
    }
    const STEPS: [i64; 7] = [15_000, 60_000, 37_000, 61_700, 300_000, 7_000, 100_100];
    let step = *STEPS.choose(random).unwrap_or(&MINUTE);
    let length = match random.random_range(0..8) {
        0 => 0,
        1 => random.random_range(0..step),
        _ => random.random_range(0..step * 40),
    };
    Times::Steps {
        start,
        end: start + length,
        step,
    }
}

impl Scene {
    /// Moves a time to a whole minute or second, or away from whole seconds if times may not be
    /// aligned. Steps of whole tenths of seconds keep away from them too.
    pub fn placed(self, random: &mut Random, time: i64) -> i64 {
        let size = match random.random_range(0..4) {
            0 => 60_000,
            1 => 1000,
            _ => 1,
        };
        match self.may_be_aligned {
            true => time - time % size,
            false => time - time % 100 + 37,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanes_promql::parser::{ParserOptions, parse};
    use rand::SeedableRng;
    use std::collections::BTreeMap;

    const SCENE: Scene = Scene {
        start: 1_700_000_000_000,
        length: 7_200_000,
        may_be_aligned: true,
    };

    fn queries(seed: u64) -> Vec<Query> {
        let mut random = Random::seed_from_u64(seed);
        (0..4000).map(|_| query(&mut random, SCENE)).collect()
    }

    #[test]
    fn queries_follow_the_seed() {
        let texts = |seed| -> Vec<String> { queries(seed).iter().map(Query::to_string).collect() };
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(1), texts(2));
    }

    #[test]
    fn queries_can_be_read_unless_they_are_broken() {
        for query in queries(3) {
            let parsed = parse(&query.text, ParserOptions::default());
            if !query.kind.starts_with("broken") {
                parsed.unwrap_or_else(|error| panic!("{query}: {error}"));
            }
        }
    }

    #[test]
    fn queries_use_every_stable_function_aggregation_and_operator() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in queries(4).iter().flat_map(|query| &query.uses) {
            *counts.entry(name).or_default() += 1;
        }
        let functions = lanes_promql::function::Function::all().iter();
        let stable = functions.filter(|function| !function.is_experimental);
        // They work on native histograms alone, of which there are none.
        // Five work on native histograms alone, of which there are none. Prometheus lacks the last.
        let never_asked = [
            "histogram_avg",
            "histogram_count",
            "histogram_stddev",
            "histogram_stdvar",
            "histogram_sum",
            "default_rollup",
        ];
        for function in stable.filter(|function| !never_asked.contains(&function.name)) {
            assert!(counts.contains_key(function.name), "{}", function.name);
        }
        for name in crate::aggregations::OPERATORS {
            assert!(counts.contains_key(name), "{name}");
        }
        for name in crate::operators::ALL {
            assert!(counts.contains_key(name), "{name}");
        }
        for name in crate::writer::FORMS {
            assert!(counts.contains_key(name), "{name}");
        }
    }

    #[test]
    fn times_that_may_not_be_aligned_are_never_at_whole_seconds() {
        let scene = Scene {
            may_be_aligned: false,
            ..SCENE
        };
        let mut random = Random::seed_from_u64(5);
        for _ in 0..1000 {
            match times(&mut random, scene, 50) {
                Times::At(at) => assert_ne!(at % 1000, 0),
                Times::Steps { start, end, step } => {
                    let mut times = (start..=end).step_by(step as usize);
                    assert!(times.all(|time| time % 1000 != 0));
                }
            }
        }
    }
}
