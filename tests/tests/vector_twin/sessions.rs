//! A session per side, and the comparison of their answers.

use super::queries::Query;
use super::tables::SIDES;
use lanes_support::cluster::Cluster;
use postgres::types::Type;
use postgres::{Client, SimpleQueryMessage};

/// Two floats with a smaller relative difference are sums of the same numbers in different orders.
pub const TOLERANCE: f64 = 1e-9;
/// The tolerance of `real`, whose sums are rounded to 24 bits at every step.
const REAL_TOLERANCE: f64 = 1e-4;
/// The number of rows of a difference in a message.
const SHOWN_ROWS: usize = 8;

/// Statements that end whatever a query left behind.
const TIDY: &str = "ROLLBACK; DEALLOCATE ALL; CLOSE ALL; SET plan_cache_mode = auto";

/// The answer of a side to one statement.
#[derive(Debug, Clone, PartialEq)]
enum Answer {
    Rows(Vec<Vec<Option<String>>>),
    /// SQLSTATE and message.
    Error(String, String),
    /// The connection to the server is lost.
    Lost(String),
}

impl Answer {
    /// Whether this is a plan of groups that several processes compute.
    fn is_by_workers(&self) -> bool {
        let Answer::Rows(lines) = self else {
            return false;
        };
        let mut lines = lines.iter().flatten().flatten();
        lines.any(|line| line.contains("Parallel Custom Scan (LanesAggregate)"))
    }
}

/// The sessions on heap, on lanes row by row, and on lanes vectorised.
pub struct Sessions {
    sides: [(&'static str, Client); 3],
    /// The number of queries that also ran under `lanes.vectorize = require`.
    pub vectorised: u32,
    /// The number of queries whose groups several processes computed.
    pub by_workers: u32,
    /// Whether workers are as cheap as they can be on the vectorised side.
    has_workers: bool,
}

impl Sessions {
    /// Connects all sessions.
    pub fn new(cluster: &Cluster) -> Sessions {
        let [(heap, _), (lanes, _)] = SIDES;
        let side = |name, schema: &str, vectorize: &str| {
            let mut client = cluster.connect("postgres").unwrap();
            client
                .batch_execute(&format!(
                    "SET search_path = {schema}, public; SET lanes.vectorize = {vectorize}; \
                     SET client_min_messages = error; SET lock_timeout = '5s'; SET extra_float_digits = 3; SET jit = off"
                ))
                .unwrap();
            (name, client)
        };
        let sides = [
            side("heap", heap, "off"),
            side("lanes, vectorize off", lanes, "off"),
            side("lanes, vectorize on", lanes, "on"),
        ];
        Sessions {
            sides,
            vectorised: 0,
            by_workers: 0,
            has_workers: false,
        }
    }

    /// Sets the time zone on all sides.
    pub fn set_zone(&mut self, zone: &str) {
        for (_, client) in &mut self.sides {
            client
                .batch_execute(&format!("SET timezone = '{zone}'"))
                .unwrap();
        }
    }

    /// Sets the memory of sorts and hash tables.
    pub fn set_memory(&mut self, kilobytes: u32) {
        for (_, client) in &mut self.sides {
            let set = format!("SET work_mem = '{kilobytes}kB'; SET hash_mem_multiplier = 1");
            client.batch_execute(&set).unwrap();
        }
    }

    /// Makes the vectorised side start workers wherever it can, or nowhere.
    pub fn set_workers(&mut self, has_workers: bool) {
        self.has_workers = has_workers;
        let [.., (_, client)] = &mut self.sides;
        let settings = match has_workers {
            true => {
                "SET max_parallel_workers_per_gather = 2; SET min_parallel_table_scan_size = 0; \
                 SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0"
            }
            false => "SET max_parallel_workers_per_gather = 0",
        };
        client.batch_execute(settings).unwrap();
    }

    /// Runs a query on all sides. A difference is an error.
    pub fn compare(&mut self, query: &Query) -> Result<(), String> {
        let mut types = Vec::new();
        for statement in &query.statements {
            types.push(self.types(statement)?);
        }
        // The sides run one after the other, because two of them write to the same table.
        let mut answers = Vec::new();
        for (_, client) in &mut self.sides {
            let of_side: Vec<Answer> = query
                .statements
                .iter()
                .map(|statement| answer(client, statement))
                .collect();
            answers.push(of_side);
            client
                .batch_execute(TIDY)
                .map_err(|error| format!("after {:?}: {error:?}", query.statements))?;
        }
        for (number, statement) in query.statements.iter().enumerate() {
            for (side, answers_of_side) in answers.iter().enumerate().skip(1) {
                let (heap, other) = (&answers[0][number], &answers_of_side[number]);
                let agree = match (heap, other) {
                    (Answer::Rows(a), Answer::Rows(b)) => {
                        same_rows(a, b, &types[number], query.ordered)
                    }
                    // Of several errors, the one that a worker meets first is raised.
                    (Answer::Error(..), Answer::Error(..))
                        if query.any_error || self.has_workers =>
                    {
                        true
                    }
                    (a, b) => a == b,
                };
                if !agree {
                    let difference = difference(heap, other, query.ordered);
                    let side = self.sides[side].0;
                    return Err(format!("at: {statement}\nheap and {side}: {difference}"));
                }
            }
        }
        self.by_workers += u32::from(self.explain(&query.statements[0], &answers[2][0])?);
        let [.., (_, client)] = &mut self.sides;
        let explain = format!(
            "SET lanes.vectorize = require; EXPLAIN {}; ",
            query.statements[0]
        );
        let alone = query.statements.len() == 1;
        self.vectorised += u32::from(alone && client.simple_query(&explain).is_ok());
        client
            .batch_execute("SET lanes.vectorize = on")
            .map_err(|error| format!("{error:?}"))
    }

    /// Explains a statement on the vectorised side; one that returned rows is also measured. Returns whether workers
    /// group. An error while it is measured is a difference.
    fn explain(&mut self, statement: &str, answered: &Answer) -> Result<bool, String> {
        let [.., (_, client)] = &mut self.sides;
        let is_select = statement.starts_with("SELECT") || statement.starts_with("WITH");
        let is_measured = is_select && matches!(answered, Answer::Rows(_));
        let options = if is_measured { "(ANALYZE)" } else { "" };
        let plan = answer(client, &format!("EXPLAIN {options} {statement}"));
        match plan {
            Answer::Rows(_) => Ok(plan.is_by_workers()),
            error if is_measured => Err(format!("EXPLAIN (ANALYZE) {statement}\n{error:?}")),
            _ => Ok(false),
        }
    }

    /// Returns the types of a statement's columns, on which all sides agree, or `None` if it has no
    /// columns or cannot be parsed.
    fn types(&mut self, statement: &str) -> Result<Vec<Type>, String> {
        if !statement.starts_with("SELECT") && !statement.starts_with("WITH") {
            return Ok(Vec::new());
        }
        let types = self.sides.each_mut().map(|(_, client)| {
            client.prepare(statement).ok().map(|prepared| {
                let columns = prepared.columns().iter();
                columns
                    .map(|column| column.type_().clone())
                    .collect::<Vec<Type>>()
            })
        });
        // Whole rows have a separate type on each side.
        let names = |types: &Option<Vec<Type>>| {
            types.as_ref().map(|types| {
                types
                    .iter()
                    .map(|t| t.name().to_owned())
                    .collect::<Vec<_>>()
            })
        };
        if names(&types[0]) != names(&types[1]) || names(&types[1]) != names(&types[2]) {
            return Err(format!("the types of {statement}: {types:?}"));
        }
        Ok(types.into_iter().next().flatten().unwrap_or_default())
    }
}

fn answer(client: &mut Client, statement: &str) -> Answer {
    match client.simple_query(statement) {
        Ok(messages) => {
            let row = |message: &SimpleQueryMessage| match message {
                SimpleQueryMessage::Row(row) => {
                    let fields = (0..row.len()).map(|column| row.get(column).map(str::to_owned));
                    Some(fields.collect())
                }
                SimpleQueryMessage::CommandComplete(rows) => {
                    Some(vec![Some(format!("{rows} rows"))])
                }
                _ => None,
            };
            Answer::Rows(messages.iter().filter_map(row).collect())
        }
        Err(error) => match error.as_db_error() {
            Some(error) => {
                Answer::Error(error.code().code().to_owned(), error.message().to_owned())
            }
            None => Answer::Lost(format!("{error:?}")),
        },
    }
}

/// Whether rows are equal, in the same order or as a multiset.
fn same_rows(
    a: &[Vec<Option<String>>],
    b: &[Vec<Option<String>>],
    types: &[Type],
    ordered: bool,
) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let same = |a: &[Vec<Option<String>>], b: &[Vec<Option<String>>]| {
        a.iter().zip(b).all(|(a, b)| same_row(a, b, types))
    };
    if ordered {
        return same(a, b);
    }
    let sorted = |rows: &[Vec<Option<String>>]| {
        let mut rows = rows.to_vec();
        rows.sort_by_cached_key(|row| sort_key(row, types));
        rows
    };
    let (a, b) = (sorted(a), sorted(b));
    same(&a, &b)
}

fn is_float(types: &[Type], column: usize) -> bool {
    types.is_empty() || matches!(types.get(column), Some(&Type::FLOAT4 | &Type::FLOAT8))
}

/// Sorts floats last and rounded, so that rows that differ only by rounding are neighbours. The
/// exact values decide among rows that are equal when rounded.
fn sort_key(row: &[Option<String>], types: &[Type]) -> Vec<Option<String>> {
    let rounded = |text: &String| match text.parse::<f64>() {
        Ok(number) => format!("{:.5e}", number + 0.0),
        Err(_) => text.clone(),
    };
    let of = |float: bool| {
        row.iter()
            .enumerate()
            .filter(move |(c, _)| is_float(types, *c) == float)
    };
    of(false)
        .map(|(_, field)| field.clone())
        .chain(of(true).map(|(_, field)| field.as_ref().map(rounded)))
        .chain(of(true).map(|(_, field)| field.clone()))
        .collect()
}

fn same_row(a: &[Option<String>], b: &[Option<String>], types: &[Type]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .enumerate()
            .all(|(column, pair)| match pair {
                (Some(a), Some(b)) if a != b && is_float(types, column) => {
                    let tolerance = match types.get(column) {
                        Some(&Type::FLOAT8) => TOLERANCE,
                        _ => REAL_TOLERANCE,
                    };
                    close(a, b, tolerance)
                }
                (a, b) => a == b,
            })
}

/// Whether two numbers are equal except for the order of addition.
fn close(a: &str, b: &str, tolerance: f64) -> bool {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b || (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1e-6),
        _ => false,
    }
}

fn difference(a: &Answer, b: &Answer, ordered: bool) -> String {
    let (Answer::Rows(a), Answer::Rows(b)) = (a, b) else {
        return format!("{}\nagainst\n{}", shown(a), shown(b));
    };
    let missing = |from: &[Vec<Option<String>>], of: &[Vec<Option<String>>]| {
        let mut rest = of.to_vec();
        let mut found = Vec::new();
        for row in from {
            match rest.iter().position(|other| other == row) {
                Some(at) => drop(rest.swap_remove(at)),
                None => found.push(line(row)),
            }
            if found.len() == SHOWN_ROWS {
                break;
            }
        }
        found.join("\n")
    };
    let order = if ordered {
        ", which come in an order"
    } else {
        ""
    };
    format!(
        "{} against {} rows{order}\nonly the first:\n{}\nonly the second:\n{}",
        a.len(),
        b.len(),
        missing(a, b),
        missing(b, a)
    )
}

fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Rows(rows) => rows
            .iter()
            .take(SHOWN_ROWS)
            .map(|row| line(row))
            .collect::<Vec<_>>()
            .join("\n"),
        other => format!("{other:?}"),
    }
}

fn line(row: &[Option<String>]) -> String {
    let fields: Vec<String> = row
        .iter()
        .map(|field| {
            field
                .as_ref()
                .map_or("<NULL>".to_owned(), |text| text.chars().take(60).collect())
        })
        .collect();
    fields.join(" | ")
}
