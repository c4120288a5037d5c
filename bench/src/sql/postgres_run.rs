//! Queries through a local connection: a prepared statement over the Unix socket, timed from
//! sending it until its last row is received.
//!
//! A session belongs to one row and one system, so settings and plans do not leak into another row.
//! The executions before the timed ones are enough for the plan cache to have chosen between custom
//! and generic plans.

use crate::sql::answer::{Answer, verify};
use crate::sql::decode::{row_values, to_literal, to_sql};
use crate::sql::definition::{Definition, Query};
use crate::sql::measurement::{Kind, Measurement};
use crate::sql::options::Options;
use crate::sql::reference::Parameter;
use crate::statistics::Times;
use lanes_support::cluster::Cluster;
use lanes_support::error::{Error, Result};
use lanes_support::process::POLL_INTERVAL;
use postgres::types::ToSql;
use postgres::{Client, Row, SimpleQueryMessage, Statement};
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of executions before the timed ones. The plan cache first tries five custom plans.
const WARM_UP: usize = 6;
/// The least number of timed executions, however long they take.
const REPEAT_MIN: usize = 3;
/// A statement that takes longer is cancelled.
const STATEMENT_SECONDS_MAX: u32 = 60;

/// The time for a crash recovery.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// A PostgreSQL side of the comparison.
#[derive(Debug, Clone, Copy)]
pub struct System<'a> {
    /// The system's name in the table.
    pub name: &'a str,
    /// Lanes or a peer.
    pub kind: Kind,
    /// The schema of its tables.
    pub schema: &'a str,
    /// `max_parallel_workers_per_gather`.
    pub workers: u32,
    /// Additional settings, each as `name = value`.
    pub settings: &'a [String],
}

/// A query with its parameters and its expected answer.
pub struct Question<'a> {
    /// The row of the table.
    pub definition: &'a Definition,
    /// The query, and the statements before it.
    pub query: &'a Query,
    /// The parameters, `$1` first.
    pub parameters: &'a [Parameter],
    /// The expected answer.
    pub expected: &'a Answer,
}

/// Times a query on a system. A failure is recorded in the measurement.
pub fn measure(
    cluster: &Cluster,
    database: &str,
    system: System,
    question: &Question,
    options: &Options,
) -> Vec<Measurement> {
    let row = &question.definition.row;
    let failed = |error: Error| {
        Measurement::new(
            row,
            system.name,
            system.kind,
            Err(first_line(&error.to_string())),
        )
    };
    let session = Session::open(cluster, database, system, question);
    let mut session = match session {
        Ok(session) => session,
        Err(error) => return vec![failed(error)],
    };
    let mut measurements = vec![
        session
            .round_trips(system, question, options)
            .unwrap_or_else(failed),
    ];
    let wants_engine = system.kind == Kind::Ours
        && question
            .definition
            .bar
            .as_ref()
            .is_some_and(|bar| bar.engine);
    if wants_engine && measurements[0].times.is_ok() {
        let name = format!("{} (engine)", system.name);
        let times = session
            .engine_times(question, options)
            .map_err(|error| first_line(&error.to_string()));
        measurements.push(Measurement::new(row, &name, Kind::OursInEngine, times));
    }
    if system.kind == Kind::Ours && measurements[0].times.is_ok() {
        let reason = session.reason_not_vectorised();
        measurements[0].notes.extend(reason);
    }
    measurements
}

struct Session {
    client: Client,
    backend: i32,
    statement: Statement,
    parameters: Vec<SqlValue>,
}

/// The value of a parameter.
type SqlValue = Box<dyn ToSql + Sync>;

impl Session {
    fn open(
        cluster: &Cluster,
        database: &str,
        system: System,
        question: &Question,
    ) -> Result<Session> {
        let mut client = connect(cluster, database)?;
        client.batch_execute(&format!(
            "SET search_path = {}, public; SET max_parallel_workers_per_gather = {};
             SET statement_timeout = '{STATEMENT_SECONDS_MAX}s'",
            system.schema, system.workers
        ))?;
        for setting in system.settings {
            let name = setting.split('=').next().unwrap_or_default().trim();
            // PostgreSQL accepts any name that contains a dot. A setting that nothing reads would
            // be reported as if it had an effect.
            if !has_setting(&mut client, name)? {
                return Err(Error::Other(format!("the server has no setting {name}")));
            }
            client.batch_execute(&format!("SET {setting}"))?;
        }
        for statement in &question.query.setup {
            client.batch_execute(statement)?;
        }
        let backend = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
        let statement = client.prepare(&question.query.text)?;
        Ok(Session {
            client,
            backend,
            parameters: values_for(&statement, question.parameters)?,
            statement,
        })
    }

    fn execute(&mut self) -> Result<Vec<Row>> {
        execute(&mut self.client, &self.statement, &self.parameters)
    }

    fn round_trips(
        &mut self,
        system: System,
        question: &Question,
        options: &Options,
    ) -> Result<Measurement> {
        let mut rows = self.execute()?;
        check(&rows, question.expected)?;
        repeat(WARM_UP - 1, 0, options.budget / 4, || {
            self.execute().map(drop)
        })?;
        let (server, client) = (cpu_of(self.backend), cpu_of_this_thread());
        let times = repeat(options.repeat, REPEAT_MIN, options.budget, || {
            rows = self.execute()?;
            Ok(())
        })?;
        let count = times.len() as f64;
        let each = |before: Option<f64>, after: Option<f64>| Some((after? - before?) / count);
        let server_cpu = each(server, cpu_of(self.backend));
        let client_cpu = each(client, cpu_of_this_thread());
        check(&rows, question.expected)?;
        let times = Times::new(times).ok_or_else(|| "no executions".to_owned());
        let mut measurement =
            Measurement::new(&question.definition.row, system.name, system.kind, times);
        // The workers of a parallel plan are separate processes, which have ended.
        measurement.server_cpu = server_cpu.filter(|_| system.workers == 0);
        measurement.client_cpu = client_cpu;
        Ok(measurement)
    }

    /// Returns the executor's own time (start to end, without planning and transport). EXPLAIN
    /// ANALYZE reports it for the same prepared statement, in microseconds.
    fn engine_times(&mut self, question: &Question, options: &Options) -> Result<Times> {
        self.client
            .batch_execute(&format!("PREPARE question AS {}", question.query.text))?;
        let values: Vec<String> = question.parameters.iter().map(to_literal).collect();
        let arguments = match values.is_empty() {
            true => String::new(),
            false => format!("({})", values.join(", ")),
        };
        let explain =
            format!("EXPLAIN (ANALYZE, TIMING OFF, SUMMARY ON) EXECUTE question {arguments}");
        for _ in 0..WARM_UP {
            explained(&mut self.client, &explain, "Execution Time: ")?;
        }
        let mut times = Vec::new();
        repeat(options.repeat, REPEAT_MIN, options.budget, || {
            times.push(explained(&mut self.client, &explain, "Execution Time: ")?);
            Ok(())
        })?;
        Times::new(times).ok_or_else(|| Error::Other("no executions".to_owned()))
    }

    /// Returns why the query did not run in the vectorised executor, in the executor's words.
    /// Returns nothing if it did, or if the system has no such executor.
    fn reason_not_vectorised(&mut self) -> Option<String> {
        if !has_setting(&mut self.client, "lanes.vectorize").unwrap_or(false) {
            return Some("the server has no vectorised executor".to_owned());
        }
        let result = self
            .client
            .batch_execute("SET lanes.vectorize = require; DISCARD PLANS");
        let result = result
            .map_err(Error::from)
            .and_then(|()| self.execute().map(drop));
        result
            .err()
            .map(|error| format!("not vectorised: {}", first_line(&error.to_string())))
    }
}

/// Returns the answer of a query on the tables of a schema.
///
/// # Errors
/// The query fails, or its answer has values that cannot be compared.
pub fn answer(
    cluster: &Cluster,
    database: &str,
    schema: &str,
    query: &Query,
    parameters: &[Parameter],
) -> Result<Answer> {
    let mut client = connect(cluster, database)?;
    client.batch_execute(&format!("SET search_path = {schema}, public"))?;
    let statement = client.prepare(&query.text)?;
    let values = values_for(&statement, parameters)?;
    answer_of(&execute(&mut client, &statement, &values)?).map_err(Error::Other)
}

/// The values of a statement's parameters.
fn values_for(statement: &Statement, parameters: &[Parameter]) -> Result<Vec<SqlValue>> {
    if statement.params().len() != parameters.len() {
        return Err(Error::Other(
            "the definition's parameters are not those of the query".to_owned(),
        ));
    }
    let pairs = parameters.iter().zip(statement.params());
    let values = pairs.map(|(parameter, kind)| to_sql(parameter, kind));
    let values: std::result::Result<_, String> = values.collect();
    values.map_err(Error::Other)
}

fn execute(client: &mut Client, statement: &Statement, values: &[SqlValue]) -> Result<Vec<Row>> {
    let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(AsRef::as_ref).collect();
    Ok(client.query(statement, &values)?)
}

fn answer_of(rows: &[Row]) -> std::result::Result<Answer, String> {
    rows.iter().map(row_values).collect()
}

/// Connects. If an earlier query has crashed its backend, waits until the cluster has recovered.
pub fn connect(cluster: &Cluster, database: &str) -> Result<Client> {
    let begin = Instant::now();
    loop {
        match cluster.connect(database) {
            Err(_) if begin.elapsed() < RECOVERY_TIMEOUT => std::thread::sleep(POLL_INTERVAL),
            result => return result,
        }
    }
}

fn has_setting(client: &mut Client, name: &str) -> Result<bool> {
    Ok(client
        .query_opt("SELECT FROM pg_settings WHERE name = $1", &[&name])?
        .is_some())
}

/// Runs a statement at most `count` times within the budget, but at least `least` times, and
/// returns the milliseconds of each execution.
fn repeat(
    count: usize,
    least: usize,
    budget: Duration,
    mut run: impl FnMut() -> Result<()>,
) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < count && (times.len() < least || begin.elapsed() < budget) {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(times)
}

fn check(rows: &[Row], expected: &Answer) -> Result<()> {
    answer_of(rows)
        .and_then(|answer| verify(expected, &answer))
        .map_err(|reason| Error::Other(format!("wrong answer: {reason}")))
}

/// Returns the milliseconds after a label in the output of EXPLAIN.
pub fn explained(client: &mut Client, sql: &str, label: &str) -> Result<f64> {
    for message in client.simple_query(sql)? {
        if let SimpleQueryMessage::Row(row) = message
            && let Some(value) = row
                .get(0)
                .and_then(|line| line.trim_start().strip_prefix(label))
            && let Ok(milliseconds) = value.trim_end_matches(" ms").parse()
        {
            return Ok(milliseconds);
        }
    }
    Err(Error::Other(format!("EXPLAIN did not print `{label}`")))
}

/// Returns the CPU time of a process with one thread, in milliseconds, or `None` if the kernel does
/// not report it.
fn cpu_of(process: i32) -> Option<f64> {
    cpu_in(Path::new(&format!("/proc/{process}/schedstat")))
}

fn cpu_of_this_thread() -> Option<f64> {
    cpu_in(Path::new("/proc/thread-self/schedstat"))
}

/// Reads the first number of the file, which is nanoseconds on a CPU.
fn cpu_in(path: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(path).ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e6)
}

pub fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_end_with_their_count_or_their_budget() {
        let count = |count, least, budget| repeat(count, least, budget, || Ok(())).unwrap().len();
        assert_eq!(count(5, 3, Duration::from_secs(60)), 5);
        assert_eq!(count(1000, 3, Duration::ZERO), 3);
        assert_eq!(count(1000, 0, Duration::ZERO), 0);
        assert_eq!(count(2, 3, Duration::ZERO), 2);
        let failed = repeat(5, 3, Duration::ZERO, || Err(Error::Other("no".to_owned())));
        assert!(failed.is_err());
    }

    #[test]
    fn an_error_is_formatted_in_one_line() {
        assert_eq!(first_line("ERROR: a\nHINT: b"), "ERROR: a");
        assert_eq!(first_line(""), "");
    }
}
