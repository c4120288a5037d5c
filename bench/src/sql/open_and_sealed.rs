//! Compares queries on the same rows in five forms: open, sealed in the order of arrival, and
//! sealed by key and time. The two sealed forms are also measured with the arena kept from decoding
//! them. Each query runs on all forms in turns, forwards and backwards.
//!
//! The compared figures are medians of the time until the last row has arrived. Where a row's bar
//! is for the executor's own time, they are medians of that time: there the round trip takes longer
//! than the query.

use super::definition::{self, Definition, Engine};
use super::generate::Data;
use super::judge::FLOOR;
use super::load::load;
use super::measurement::{Kind, Measurement};
use super::options::{Options, command};
use super::postgres_run::{self, Question, System};
use super::reference;
use lanes_support::cluster::Cluster;
use lanes_support::error::{Error, Result};
use postgres::Client;
use std::time::Duration;

const DATABASE: &str = "postgres";
/// The forms of the tables, each with the storage parameter `order_by` of trades and quotes, and
/// that of events.
const FORMS: [Form; 5] = [
    Form {
        schema: "on_open",
        name: "open",
        order: None,
        as_stored: false,
    },
    Form {
        schema: "on_sealed",
        name: "sealed in order of arrival",
        order: Some(None),
        as_stored: false,
    },
    Form {
        schema: "on_sorted",
        name: "sealed by key and time",
        order: Some(BY_KEY),
        as_stored: false,
    },
    Form {
        schema: "on_sealed_stored",
        name: "sealed in order of arrival, in memory as stored",
        order: Some(None),
        as_stored: true,
    },
    Form {
        schema: "on_sorted_stored",
        name: "sealed by key and time, in memory as stored",
        order: Some(BY_KEY),
        as_stored: true,
    },
];
const BY_KEY: Option<(&str, &str)> = Some(("sym, ts", "service, ts"));
/// Queries that need the rows in the order of arrival, which sorting destroys.
const OF_ROW_ORDER: [&str; 1] = ["ema"];

struct Form {
    schema: &'static str,
    name: &'static str,
    order: Option<Option<(&'static str, &'static str)>>,
    /// Whether the arena is kept from decoding the rows, however often they are read.
    as_stored: bool,
}

/// The settings of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The number of trades and of quotes; there are five times as many events.
    pub rows: usize,
    /// The number of timed executions of each query in each turn, unless the budget ends first.
    pub repeat: usize,
    /// The time for these executions.
    pub budget: Duration,
}

/// The times of one query.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The row's name in the table of queries.
    pub row: String,
    /// Milliseconds on open rows: the mean of the medians of all turns.
    pub open: std::result::Result<f64, String>,
    /// Milliseconds on sealed rows, by the form in which they are sealed.
    pub sealed: Vec<(&'static str, std::result::Result<f64, String>)>,
}

impl Compared {
    /// A query without an expected answer, with which nothing can be compared.
    fn failed(definition: &Definition, error: &Error) -> Compared {
        let reason = postgres_run::first_line(&error.to_string());
        Compared {
            row: definition.row.clone(),
            open: Err(reason),
            sealed: Vec::new(),
        }
    }
}

/// Loads and seals the tables and compares the queries. Each answer is verified.
///
/// # Errors
/// The cluster does not start, or a table cannot be loaded.
pub fn compare(settings: &Settings, wants: impl Fn(&str) -> bool) -> Result<Vec<Compared>> {
    let defaults = Options::from_matches(&command().get_matches_from(["sql"]))?;
    let options = Options {
        rows: settings.rows,
        repeat: settings.repeat,
        budget: settings.budget,
        ..defaults
    };
    let definitions: Vec<Definition> = definition::read_all()?
        .into_iter()
        .filter(|definition| definition.row != FLOOR && wants(&definition.row))
        .collect();
    if definitions.is_empty() {
        return Ok(Vec::new());
    }
    let data = Data::generate(settings.rows);
    let cluster = start()?;
    let mut client = cluster.connect(DATABASE)?;
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS lanes")?;
    for form in &FORMS {
        load(&mut client, &data, form.schema, "lanes")?;
        seal(&mut client, form)?;
    }
    client.batch_execute("CHECKPOINT")?;
    drop(client);
    let mut compared = Vec::new();
    for definition in &definitions {
        if let Some(one) = one(&cluster, definition, &data, &options) {
            compared.push(one);
        }
    }
    Ok(compared)
}

/// Starts a cluster with room for all tables, without background work and without automatic
/// sealing.
fn start() -> Result<Cluster> {
    Cluster::builder("bench-sealed")
        .setting("shared_buffers", "1GB")
        .setting("work_mem", "256MB")
        .setting("max_wal_size", "8GB")
        .setting("autovacuum", "off")
        .setting("lanes.arena_size", "2GB")
        .setting("lanes.seal_naptime", "0")
        .setting("lanes.seal_rows", &i32::MAX.to_string())
        .start()
}

fn seal(client: &mut Client, form: &Form) -> Result<()> {
    let Some(order) = form.order else {
        return Ok(());
    };
    for table in ["trades", "quotes", "events"] {
        if let Some((of_symbols, of_events)) = order {
            let order = if table == "events" {
                of_events
            } else {
                of_symbols
            };
            client.batch_execute(&format!("ALTER TABLE {table} SET (order_by = '{order}')"))?;
        }
        client.batch_execute(&format!("SELECT lanes.seal('{table}')"))?;
        client.batch_execute(&format!("VACUUM ANALYZE {table}"))?;
    }
    Ok(())
}

fn one(
    cluster: &Cluster,
    definition: &Definition,
    data: &Data,
    options: &Options,
) -> Option<Compared> {
    let query = definition.query(Engine::Lanes)?;
    let parameters = definition.parameters(data);
    let expected = match &definition.answer {
        Some(answer) => reference::answer(answer, data)?,
        // Without a reference, sealed rows have to give the answer of open ones.
        None => {
            match postgres_run::answer(cluster, DATABASE, FORMS[0].schema, query, &parameters) {
                Ok(answer) => answer,
                Err(error) => return Some(Compared::failed(definition, &error)),
            }
        }
    };
    let question = Question {
        definition,
        query,
        parameters: &parameters,
        expected: &expected,
    };
    let forms: Vec<&Form> = FORMS
        .iter()
        .filter(|form| {
            !matches!(form.order, Some(Some(_))) || !OF_ROW_ORDER.contains(&definition.row.as_str())
        })
        .collect();
    let mut runs: Vec<(&str, std::result::Result<f64, String>)> = Vec::new();
    let never = [format!("lanes.decode_after = {}", i32::MAX)];
    for form in forms.iter().chain(forms.iter().rev()) {
        let system = System {
            name: form.name,
            kind: Kind::Ours,
            schema: form.schema,
            workers: 0,
            settings: if form.as_stored { &never } else { &[] },
        };
        let measured = postgres_run::measure(cluster, DATABASE, system, &question, options);
        runs.push((form.name, median(&measured)));
    }
    let of = |form: &Form| mean(&runs, form.name);
    let mut sealed = Vec::new();
    for form in forms.iter().filter(|form| form.order.is_some()) {
        sealed.push((form.name, of(form)));
    }
    Some(Compared {
        row: definition.row.clone(),
        open: of(&FORMS[0]),
        sealed,
    })
}

/// Returns the median of the last measurement: the executor's own time if that was measured.
fn median(measurements: &[Measurement]) -> std::result::Result<f64, String> {
    let last = measurements.last().ok_or("nothing was measured")?;
    last.times
        .as_ref()
        .map(|times| times.median())
        .map_err(Clone::clone)
}

fn mean(
    runs: &[(&str, std::result::Result<f64, String>)],
    name: &str,
) -> std::result::Result<f64, String> {
    let of_form: Vec<f64> = runs
        .iter()
        .filter(|(form, _)| *form == name)
        .map(|(_, run)| run.clone())
        .collect::<std::result::Result<_, _>>()?;
    match of_form.len() {
        0 => Err("nothing was measured".to_owned()),
        count => Ok(of_form.iter().sum::<f64>() / count as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forms_time_is_the_mean_of_its_turns_unless_one_fails() {
        let runs = [
            ("open", Ok(1.0)),
            ("sealed", Ok(4.0)),
            ("sealed", Err("wrong".to_owned())),
            ("open", Ok(3.0)),
        ];
        assert_eq!(mean(&runs, "open"), Ok(2.0));
        assert_eq!(mean(&runs, "sealed"), Err("wrong".to_owned()));
        assert!(mean(&runs, "none").is_err());
    }

    #[test]
    fn rows_that_need_the_order_of_arrival_exist() {
        let definitions = definition::read_all().unwrap();
        let is_there = |row: &&str| definitions.iter().any(|definition| definition.row == **row);
        assert!(OF_ROW_ORDER.iter().all(is_there));
    }
}
