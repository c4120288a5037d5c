//! A query on all stores: every answer is compared, then the stores are timed in turns, forwards
//! and backwards.

use super::draw::Draw;
use super::query::{Dialect, Query};
use super::store::Store;
use crate::sql::answer::{Answer, verify};
use crate::sql::peer::Timing;
use crate::statistics::Times;
use std::time::Duration;

/// The result of a query on a store.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The store.
    pub system: String,
    /// Whether the store is pg_lanes.
    pub is_ours: bool,
    /// The times of all draws, or the reason why there are none.
    pub times: Result<Times, String>,
    /// The number of rows of the first draw's answer.
    pub rows: usize,
}

const ONCE: Timing = Timing {
    warm_up: 0,
    repeat: 1,
    repeat_min: 1,
    budget: Duration::ZERO,
};

/// Compares and times a query with these draws on all stores that have a text for it.
pub fn measure(
    stores: &mut [&mut dyn Store],
    query: &Query,
    draws: &[Draw],
    timing: Timing,
) -> Vec<Outcome> {
    let mut stores: Vec<&mut &mut dyn Store> = stores
        .iter_mut()
        .filter(|store| query.text(store.dialect()).is_some())
        .collect();
    let texts: Vec<Vec<String>> = stores
        .iter()
        .map(|store| {
            let text = query.text(store.dialect()).unwrap_or_default();
            let draws = draws.iter();
            draws.map(|draw| draw.fill(text, store.dialect())).collect()
        })
        .collect();
    let mut times: Vec<Result<Vec<f64>, String>> = stores
        .iter_mut()
        .map(|store| store.begin(query).map(|()| Vec::new()))
        .collect();
    let expected = compare_all(&mut stores, &texts, draws.len(), &mut times);
    for place in (0..stores.len()).chain((0..stores.len()).rev()) {
        for (draw, expected) in expected.iter().enumerate() {
            let (Ok(so_far), Some((expected, by))) = (&mut times[place], expected) else {
                continue;
            };
            match stores[place].ask(&texts[place][draw], timing) {
                Ok((answer, of_draw)) => match compare(expected, stores[*by].name(), &answer) {
                    Ok(()) => so_far.extend(of_draw),
                    Err(reason) => times[place] = Err(reason),
                },
                Err(reason) => times[place] = Err(reason),
            }
        }
    }
    let first = expected.into_iter().flatten().next();
    let rows = first.map_or(0, |(answer, _)| answer.len());
    let outcomes = stores.iter().zip(times);
    outcomes
        .map(|(store, times)| Outcome {
            system: store.name().to_owned(),
            is_ours: store.dialect() == Dialect::Lanes,
            times: times.and_then(|times| Times::new(times).ok_or("no executions".to_owned())),
            rows,
        })
        .collect()
}

/// Runs each draw once on all stores and compares the answers. Returns the answer to each draw, and
/// the store that it comes from. A store with a wrong answer gets the reason instead of times.
fn compare_all(
    stores: &mut [&mut &mut dyn Store],
    texts: &[Vec<String>],
    draws: usize,
    times: &mut [Result<Vec<f64>, String>],
) -> Vec<Option<(Answer, usize)>> {
    let is_ours: Vec<bool> = stores
        .iter()
        .map(|store| store.dialect() == Dialect::Lanes)
        .collect();
    // pg_lanes is last, because its answer has to be compared with another store's.
    let mut order: Vec<usize> = (0..stores.len()).collect();
    order.sort_by_key(|place| is_ours[*place]);
    let mut expected: Vec<Option<(Answer, usize)>> = vec![None; draws];
    for (draw, expected) in expected.iter_mut().enumerate() {
        for place in &order {
            if times[*place].is_err() {
                continue;
            }
            let asked = stores[*place].ask(&texts[*place][draw], ONCE);
            if let Err(reason) = asked.and_then(|(answer, _)| match expected {
                Some((expected, by)) => compare(expected, stores[*by].name(), &answer),
                None if is_ours[*place] => {
                    Err("no other store has an answer to compare".to_owned())
                }
                None => {
                    *expected = Some((answer, *place));
                    Ok(())
                }
            }) {
                times[*place] = Err(reason);
            }
        }
    }
    expected
}

fn compare(expected: &Answer, by: &str, answer: &Answer) -> Result<(), String> {
    verify(expected, answer).map_err(|reason| format!("wrong answer, beside {by}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::super::draw::draws;
    use super::super::fleet_data::{Fleet, FleetSize};
    use super::*;
    use crate::sql::answer::Value;
    use crate::sql::random::SplitMix64;
    use std::cell::RefCell;

    const TIMING: Timing = Timing {
        warm_up: 0,
        repeat: 2,
        repeat_min: 1,
        budget: Duration::ZERO,
    };

    struct Fake<'a> {
        name: &'static str,
        dialect: Dialect,
        answer: Result<i64, String>,
        asked: &'a RefCell<Vec<String>>,
    }

    impl Store for Fake<'_> {
        fn name(&self) -> &str {
            self.name
        }

        fn dialect(&self) -> Dialect {
            self.dialect
        }

        fn begin(&mut self, _query: &Query) -> Result<(), String> {
            Ok(())
        }

        fn ask(&mut self, _text: &str, timing: Timing) -> Result<(Answer, Vec<f64>), String> {
            let asked = format!("{} {}", self.name, timing.repeat);
            self.asked.borrow_mut().push(asked);
            let answer = vec![vec![Value::Integer(self.answer.clone()?)]];
            Ok((answer, vec![1.0; timing.repeat]))
        }
    }

    /// Returns the outcomes of three stores with these answers, and the texts that they ran.
    fn outcomes(answers: [Result<i64, &str>; 3], sql: &str) -> (Vec<Outcome>, Vec<String>) {
        let asked = RefCell::new(Vec::new());
        let [ours, heap, duckdb] = answers.map(|answer| answer.map_err(str::to_owned));
        let fake = |name, dialect, answer| Fake {
            name,
            dialect,
            answer,
            asked: &asked,
        };
        let mut lanes = fake("lanes", Dialect::Lanes, ours);
        let mut heap = fake("heap", Dialect::Heap, heap);
        let mut duckdb = fake("duckdb", Dialect::DuckDb, duckdb);
        let mut polars = fake("polars", Dialect::Polars, Ok(1));
        let query: Query = toml::from_str(&format!("name = 'q'\nsql = '{sql}'")).unwrap();
        let size = FleetSize {
            hosts: 2,
            hours: 1,
            interval_seconds: 600,
        };
        let (fleet, mut random) = (Fleet::generate(size), SplitMix64(1));
        let draws = draws(&query, 2, size, &fleet, &mut random).unwrap();
        let outcomes = measure(
            &mut [&mut lanes, &mut heap, &mut duckdb, &mut polars],
            &query,
            &draws,
            TIMING,
        );
        (outcomes, asked.into_inner())
    }

    #[test]
    fn all_stores_are_compared_once_and_then_timed_forwards_and_backwards() {
        let (outcomes, asked) = outcomes([Ok(1), Ok(1), Ok(1)], "one");
        let once = ["heap 1", "duckdb 1", "lanes 1"];
        let timed = [
            "lanes 2", "heap 2", "duckdb 2", "duckdb 2", "heap 2", "lanes 2",
        ];
        assert_eq!(asked, [&once[..], &timed].concat());
        assert_eq!(outcomes.len(), 3, "Polars has no text");
        for outcome in &outcomes {
            assert_eq!(outcome.times.as_ref().unwrap().count(), 4);
            assert_eq!(outcome.is_ours, outcome.system == "lanes");
        }
    }

    #[test]
    fn every_draw_is_timed() {
        let (outcomes, asked) = outcomes([Ok(1), Ok(1), Ok(1)], "$host");
        assert_eq!(asked.len(), 2 * 3 + 2 * 6);
        assert_eq!(outcomes[0].times.as_ref().unwrap().count(), 8);
    }

    #[test]
    fn a_wrong_answer_has_no_time() {
        for (answers, wrong) in [
            ([Ok(2), Ok(1), Ok(1)], "lanes"),
            ([Ok(1), Ok(1), Ok(2)], "duckdb"),
        ] {
            let (outcomes, asked) = outcomes(answers, "one");
            for outcome in &outcomes {
                let is_wrong = outcome.system == wrong;
                assert_eq!(outcome.times.is_err(), is_wrong, "{outcome:?}");
                if is_wrong {
                    let told = outcome.times.clone().unwrap_err();
                    assert!(told.starts_with("wrong answer, beside heap"), "{told}");
                }
            }
            assert!(!asked.contains(&format!("{wrong} 2")), "{asked:?}");
        }
    }

    #[test]
    fn pg_lanes_has_no_time_unless_another_store_answers() {
        let (some, _) = outcomes([Ok(1), Err("no"), Ok(1)], "one");
        assert!(some[0].times.is_ok() && some[1].times.is_err());
        let (none, _) = outcomes([Ok(1), Err("no"), Err("no")], "one");
        let told = none[0].times.clone().unwrap_err();
        assert!(told.contains("no other store"), "{told}");
    }
}
