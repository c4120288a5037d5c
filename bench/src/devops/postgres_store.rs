//! PostgreSQL as a store: the tables of one schema, queried over the Unix socket.

use super::query::{Dialect, Query};
use super::store::Store;
use super::table::Table;
use crate::sql::answer::Answer;
use crate::sql::decode::row_values;
use crate::sql::peer::Timing;
use crate::sql::postgres_run::{connect, first_line};
use lanes_support::cluster::Cluster;
use lanes_support::error::{Error, Result};
use postgres::{Client, Row, SimpleQueryMessage};
use std::time::Instant;

/// The database of all schemas.
pub const DATABASE: &str = "postgres";
/// A statement that takes longer is cancelled.
const STATEMENT_SECONDS_MAX: u32 = 60;

/// A schema and its session.
pub struct PostgresStore<'a> {
    cluster: &'a Cluster,
    client: Client,
    name: &'static str,
    dialect: Dialect,
}

impl PostgresStore<'_> {
    /// Creates the empty schema of the lanes tables or of the heap tables.
    ///
    /// # Errors
    /// PostgreSQL fails.
    pub fn make(cluster: &Cluster, dialect: Dialect) -> Result<PostgresStore<'_>> {
        let name = match dialect {
            Dialect::Lanes => "lanes",
            _ => "heap",
        };
        let mut client = session(cluster, name)?;
        client.batch_execute(&format!(
            "DROP SCHEMA IF EXISTS on_{name} CASCADE; CREATE SCHEMA on_{name}"
        ))?;
        Ok(PostgresStore {
            cluster,
            client,
            name,
            dialect,
        })
    }

    /// Fills the schema: tables, then statements. Then lanes tables are sealed and all tables are
    /// vacuumed. `order_of` returns the order in which a table's rows are sealed; a table without
    /// one stays in heap.
    ///
    /// # Errors
    /// PostgreSQL fails, or rows stay open.
    pub fn load(
        &mut self,
        tables: &[Table],
        order_of: impl Fn(&str) -> Option<&'static str>,
        statements: &[String],
    ) -> Result<()> {
        let is_ours = self.dialect == Dialect::Lanes;
        for table in tables {
            let storage = match order_of(table.name) {
                Some(order) if is_ours => lanes_storage(order),
                _ => String::new(),
            };
            table.load(&mut self.client, &storage)?;
        }
        for statement in statements {
            self.client.batch_execute(statement)?;
        }
        let names = self.client.query(
            "SELECT c.oid::regclass::text, a.amname = 'lanes' FROM pg_class c JOIN pg_am a ON a.oid = c.relam
              WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'",
            &[],
        )?;
        for row in &names {
            let (name, is_lanes): (String, bool) = (row.get(0), row.get(1));
            if is_lanes {
                self.seal(&name)?;
            }
            self.client
                .batch_execute(&format!("VACUUM (ANALYZE) {name}"))?;
        }
        Ok(self.client.batch_execute("CHECKPOINT")?)
    }

    fn seal(&mut self, table: &str) -> Result<()> {
        self.client
            .execute("SELECT lanes.seal($1::text::regclass)", &[&table])?;
        let open = self.client.query_one(
            "SELECT count(*) FROM lanes.arena_segments($1::text::regclass)
              WHERE state ~ 'open|in part' AND rows > rows_dead",
            &[&table],
        )?;
        match open.get::<_, i64>(0) {
            0 => Ok(()),
            open => Err(Error::Other(format!(
                "{open} segments of {table} stay open"
            ))),
        }
    }

    fn execute(&mut self, text: &str) -> std::result::Result<Vec<Row>, String> {
        let rows = self.client.query_typed(text, &[]);
        rows.map_err(|error| first_line(&Error::from(error).to_string()))
    }
}

/// Returns the clause of CREATE TABLE for a lanes table that is sealed in this order, which may be
/// empty.
pub fn lanes_storage(order: &str) -> String {
    match order {
        "" => "USING lanes".to_owned(),
        order => format!("USING lanes WITH (order_by = '{order}')"),
    }
}

fn session(cluster: &Cluster, name: &str) -> Result<Client> {
    let mut client = connect(cluster, DATABASE)?;
    client.batch_execute(&format!(
        "SET search_path = on_{name}, public; SET timezone = 'UTC'; SET statement_timeout = '{STATEMENT_SECONDS_MAX}s'"
    ))?;
    Ok(client)
}

impl Store for PostgresStore<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn begin(&mut self, query: &Query) -> std::result::Result<(), String> {
        // An earlier statement may have ended the session.
        let ready = match self.client.is_closed() {
            true => session(self.cluster, self.name).map(|client| self.client = client),
            false => Ok(()),
        };
        let prepared = ready.and_then(|()| {
            self.client
                .batch_execute("DEALLOCATE ALL; RESET plan_cache_mode")?;
            if let Some(statement) = &query.prepare {
                self.client.batch_execute(&format!(
                    "SET plan_cache_mode = force_generic_plan; {statement}"
                ))?;
            }
            Ok(())
        });
        prepared.map_err(|error| first_line(&error.to_string()))
    }

    fn ask(
        &mut self,
        text: &str,
        timing: Timing,
    ) -> std::result::Result<(Answer, Vec<f64>), String> {
        let begin = Instant::now();
        for number in 0..timing.warm_up {
            if number > 0 && begin.elapsed() > timing.budget / 4 {
                break;
            }
            self.execute(text)?;
        }
        let (mut times, mut rows) = (Vec::new(), Vec::new());
        let begin = Instant::now();
        while times.len() < timing.repeat
            && (times.len() < timing.repeat_min || begin.elapsed() < timing.budget)
        {
            let start = Instant::now();
            rows = self.execute(text)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        let answer = rows
            .iter()
            .map(row_values)
            .collect::<std::result::Result<_, _>>();
        Ok((answer?, times))
    }

    fn plan(&mut self, text: &str) -> Option<String> {
        let messages = self
            .client
            .simple_query(&format!("EXPLAIN (ANALYZE) {text}"))
            .ok()?;
        let lines = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        Some(lines.collect::<Vec<_>>().join("\n"))
    }
}
