//! The scenario `devops`: the fleet's queries, then star joins of each size.

use super::draw::{Draw, draws};
use super::fleet_data::{Fleet, FleetSize};
use super::judge::{QueryBar, records};
use super::peer_store::PeerStore;
use super::postgres_store::{PostgresStore, lanes_storage};
use super::query::{Dialect, Query};
use super::star_data;
use super::store::Store;
use super::table::Table;
use super::turns::measure;
use crate::scenario::system::Setup;
use crate::scenario::{Findings, Options, Run};
use crate::sql::column_files;
use crate::sql::peer::{Start, Timing, is_available};
use crate::sql::random::SplitMix64;
use crate::sql::run::scripts;
use lanes_support::cluster::Cluster;
use lanes_support::error::{Error, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The scenario's part of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// The number of draws of a query.
    draws: usize,
    /// The greatest number of executions of a draw that do not count.
    warm_up: usize,
    /// The greatest number of executions of a draw in one turn.
    repeat: usize,
    /// The time after which a draw's turn ends, in seconds.
    budget_seconds: f64,
    /// The number of threads of DuckDB and of Polars.
    threads: usize,
    fleet: FleetSize,
    stars: Stars,
    bars: Bars,
    setup: Setup,
    queries: Vec<Query>,
    star_queries: Vec<Query>,
}

/// Star joins.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stars {
    /// The numbers of facts.
    rows: Vec<usize>,
    /// The greatest number of facts with which heap takes part.
    heap_rows_most: usize,
}

/// The bars of pg_lanes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bars {
    queries: QueryBar,
    stars: QueryBar,
}

/// Returns the order in which a table's rows are sealed, or `None` for a table that stays in heap.
fn order_of(table: &str) -> Option<&'static str> {
    match table {
        "cpu" => Some("tags_id, time"),
        "facts" => Some(""),
        _ => None,
    }
}

/// Returns the statements that create, in PostgreSQL, the fleet's rows with hosts by text and by
/// uuid.
fn other_keys(dialect: Dialect) -> Vec<String> {
    let storage = match dialect {
        Dialect::Lanes => lanes_storage("host, time"),
        _ => String::new(),
    };
    let mut statements = vec![UUID_TAGS.to_owned()];
    for (table, key, kind) in [
        ("cpu_by_name", "hostname", "text"),
        ("cpu_by_uuid", "uuid", "uuid"),
    ] {
        statements.push(format!(
            "CREATE TABLE {table} (time timestamptz NOT NULL, host {kind}, usage_user float8) {storage};
             INSERT INTO {table} SELECT c.time, t.{key}, c.usage_user
               FROM cpu c JOIN tags t ON t.id = c.tags_id ORDER BY c.time"
        ));
    }
    statements
}

const UUID_TAGS: &str = "ALTER TABLE tags ALTER COLUMN uuid TYPE uuid USING uuid::varchar::uuid";
/// The keys of the small tables, which are heap tables on both sides.
const KEYS: &str = "
    ALTER TABLE tags ADD PRIMARY KEY (id); CREATE UNIQUE INDEX ON tags (hostname); CREATE UNIQUE INDEX ON tags (uuid);
    ALTER TABLE teams ADD PRIMARY KEY (team); ALTER TABLE owners ADD PRIMARY KEY (tags_id);
    ALTER TABLE ratings ADD PRIMARY KEY (usage)";
const HEAP_INDEXES: &str = "
    CREATE INDEX ON cpu (tags_id, time DESC); CREATE INDEX ON cpu (time DESC);
    CREATE INDEX ON cpu_by_name (host, time DESC); CREATE INDEX ON cpu_by_name (time DESC);
    CREATE INDEX ON cpu_by_uuid (host, time DESC); CREATE INDEX ON cpu_by_uuid (time DESC)";
const STAR_KEYS: &str =
    "ALTER TABLE dimension ADD PRIMARY KEY (key); CREATE UNIQUE INDEX ON dimension (code)";
/// The statements by which DuckDB creates the tables of [`other_keys`].
const DUCKDB_OTHER_KEYS: [&str; 2] = [
    "CREATE TABLE cpu_by_name AS SELECT c.time, t.hostname AS host, c.usage_user
       FROM cpu c JOIN tags t ON t.id = c.tags_id ORDER BY c.time",
    "CREATE TABLE cpu_by_uuid AS SELECT c.time, t.uuid AS host, c.usage_user
       FROM cpu c JOIN tags t ON t.id = c.tags_id ORDER BY c.time",
];
const SEED_OF_DRAWS: u64 = 31;
/// The least number of executions of a draw in a turn, however long they take.
const REPEAT_MIN: usize = 1;
const PLANS: &str = "devops-plans.txt";

/// Runs the scenario.
///
/// # Errors
/// PostgreSQL does not start, or cannot be loaded. A query without a figure is a record that says
/// so.
pub fn run(run: &Run) -> Result<Findings> {
    let definition: Definition = run.definition()?;
    let servers = &run.options.servers;
    let cluster = servers.starting(|| {
        let mut builder = Cluster::builder("devops");
        for (setting, value) in &definition.setup.postgres {
            builder = builder.setting(setting, value);
        }
        builder.start()
    })?;
    let version = cluster.scalar("postgres", "SELECT split_part(version(), ' on ', 1)")?;
    cluster
        .connect("postgres")?
        .batch_execute("CREATE EXTENSION lanes")?;
    let mut devops = Devops {
        options: &run.options,
        definition: &definition,
        cluster: &cluster,
        folder: run.options.folder.join("devops"),
        findings: Findings {
            systems: vec![version],
            ..Findings::default()
        },
        plans: String::new(),
    };
    let filled = devops.fleet().and_then(|()| {
        for rows in &definition.stars.rows {
            devops.star(*rows)?;
        }
        Ok(())
    });
    // The peers' files take a gigabyte in the full form.
    let _ = std::fs::remove_dir_all(&devops.folder);
    filled?;
    let file = run.options.folder.join(PLANS);
    std::fs::write(&file, &devops.plans).map_err(Error::file("write", &file))?;
    Ok(devops.findings)
}

struct Devops<'a> {
    options: &'a Options,
    definition: &'a Definition,
    cluster: &'a Cluster,
    /// The folder of the peers' data.
    folder: PathBuf,
    findings: Findings,
    /// The plans of queries that missed their bar.
    plans: String,
}

impl<'a> Devops<'a> {
    fn fleet(&mut self) -> Result<()> {
        let queries = self.wanted(&self.definition.queries);
        if queries.is_empty() {
            return Ok(());
        }
        let (size, definition) = (self.definition.fleet, self.definition);
        let fleet = Fleet::generate(size);
        let mut random = SplitMix64(SEED_OF_DRAWS);
        let asked = queries.into_iter().map(|query| {
            let draws = draws(&query, definition.draws, size, &fleet, &mut random)?;
            Ok((query, draws))
        });
        let asked = asked.collect::<Result<Vec<_>>>()?;
        let load = |dialect, indexes: &[&str]| -> Result<PostgresStore<'a>> {
            let mut store = PostgresStore::make(self.cluster, dialect)?;
            let mut statements = other_keys(dialect);
            statements.extend(indexes.iter().map(|text| (*text).to_owned()));
            store.load(&fleet.tables, order_of, &statements)?;
            Ok(store)
        };
        let mut lanes = load(Dialect::Lanes, &[KEYS])?;
        let mut heap = load(Dialect::Heap, &[KEYS, HEAP_INDEXES])?;
        let files = self.files("fleet", &fleet.tables);
        let mut statements = vec![UUID_TAGS.to_owned()];
        statements.extend(DUCKDB_OTHER_KEYS.map(str::to_owned));
        let start = self.start("duckdb-2", "duckdb", &files);
        let mut duckdb = PeerStore::new(start, Dialect::DuckDb, &statements);
        let stores: &mut [&mut dyn Store] = &mut [&mut lanes, &mut heap, &mut duckdb];
        for (query, draws) in &asked {
            self.ask(stores, query, draws, definition.bars.queries);
        }
        self.note_versions(&[&duckdb]);
        Ok(())
    }

    /// Runs the star joins of a number of facts.
    fn star(&mut self, rows: usize) -> Result<()> {
        let queries: Vec<Query> = self.definition.star_queries.to_vec();
        let named = queries.into_iter().map(|query| Query {
            name: query.name.replace("$rows", &in_millions(rows)),
            ..query
        });
        let queries = self.wanted(&named.collect::<Vec<_>>());
        if queries.is_empty() {
            return Ok(());
        }
        let tables = star_data::generate(rows);
        let load = |dialect| -> Result<PostgresStore<'a>> {
            let mut store = PostgresStore::make(self.cluster, dialect)?;
            store.load(&tables, order_of, &[STAR_KEYS.to_owned()])?;
            Ok(store)
        };
        let mut lanes = load(Dialect::Lanes)?;
        let mut heap = match rows <= self.definition.stars.heap_rows_most {
            true => Some(load(Dialect::Heap)?),
            false => None,
        };
        let files = self.files("star", &tables);
        drop(tables);
        let duckdb = self.start("duckdb-2", "duckdb", &files);
        let mut duckdb = PeerStore::new(duckdb, Dialect::DuckDb, &[]);
        let polars = self.start("polars", "polars", &files);
        let mut polars = PeerStore::new(polars, Dialect::Polars, &[]);
        let mut stores: Vec<&mut dyn Store> = vec![&mut lanes];
        stores.extend(heap.as_mut().map(|heap| heap as &mut dyn Store));
        stores.push(&mut duckdb);
        stores.push(&mut polars);
        // Their queries have no draws.
        let (size, mut random) = (self.definition.fleet, SplitMix64(SEED_OF_DRAWS));
        let fleet = Fleet::generate(FleetSize { hours: 1, ..size });
        for query in &queries {
            let draws = draws(query, 1, size, &fleet, &mut random)?;
            self.ask(&mut stores, query, &draws, self.definition.bars.stars);
        }
        self.note_versions(&[&duckdb, &polars]);
        Ok(())
    }

    fn wanted(&self, queries: &[Query]) -> Vec<Query> {
        let queries = queries.iter();
        queries
            .filter(|query| self.options.wants(&query.name))
            .cloned()
            .collect()
    }

    fn ask(&mut self, stores: &mut [&mut dyn Store], query: &Query, draws: &[Draw], bar: QueryBar) {
        let timing = Timing {
            warm_up: self.definition.warm_up,
            repeat: self.definition.repeat,
            repeat_min: REPEAT_MIN,
            budget: Duration::from_secs_f64(self.definition.budget_seconds),
        };
        let outcomes = measure(stores, query, draws, timing);
        for record in records(&query.name, &outcomes, bar) {
            if record.met == Some(false) {
                self.keep_plan(stores, query, draws);
            }
            self.findings.add(record);
        }
    }

    /// Records the plan of a query that missed its bar.
    fn keep_plan(&mut self, stores: &mut [&mut dyn Store], query: &Query, draws: &[Draw]) {
        let Some(draw) = draws.first() else {
            return;
        };
        let text = draw.fill(&query.sql, Dialect::Lanes);
        let mut ours = stores
            .iter_mut()
            .filter(|store| store.dialect() == Dialect::Lanes);
        if let Some(plan) = ours.next().and_then(|store| store.plan(&text)) {
            let name = &query.name;
            self.plans
                .push_str(&format!("{name}\n\n{}\n\n{plan}\n\n\n", text.trim()));
        }
    }

    /// Writes the peers' files and returns their folder, or a path that does not exist if that
    /// failed.
    fn files(&self, name: &str, tables: &[Table]) -> PathBuf {
        let folder = self.folder.join(name);
        let files: Vec<_> = tables
            .iter()
            .map(|table| (table.name, table.files()))
            .collect();
        let written = match is_available(&python(self.options)) {
            true => column_files::write_tables(&files, &folder, &python(self.options), &scripts()),
            false => Err(Error::Other(format!(
                "{} is missing; `make bench ARGS=devops` creates it",
                python(self.options).display()
            ))),
        };
        if let Err(error) = written {
            // The records of the peers report the failure again.
            println!("  the peers have no data: {error}");
        }
        folder
    }

    fn start(&self, system: &'static str, script: &'static str, data: &Path) -> Start<'static> {
        Start {
            system,
            script,
            threads: self.definition.threads,
            scripts: scripts(),
            data: data.to_owned(),
            python: python(self.options),
            logs: self.options.folder.clone(),
        }
    }

    /// Records the versions of the peers.
    fn note_versions(&mut self, peers: &[&PeerStore]) {
        for version in peers.iter().filter_map(|peer| peer.version()) {
            let systems = &mut self.findings.systems;
            if systems.iter().all(|system| system != version) {
                systems.push(version.to_owned());
            }
        }
    }
}

/// Returns the Python program that has the peers' packages.
fn python(options: &Options) -> PathBuf {
    options.folder.join("venv/bin/python")
}

/// Formats a number as `20M`, or with all its digits.
fn in_millions(rows: usize) -> String {
    match rows.is_multiple_of(1_000_000) {
        true => format!("{}M", rows / 1_000_000),
        false => rows.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_is_valid_and_every_placeholder_is_known() {
        for run in Run::both_forms("devops") {
            let definition: Definition = run.definition().unwrap();
            let size = definition.fleet;
            let fleet = Fleet::generate(FleetSize {
                interval_seconds: 3600,
                ..size
            });
            let mut random = SplitMix64(1);
            let mut names = std::collections::BTreeSet::new();
            for query in definition.queries.iter().chain(&definition.star_queries) {
                let draws = draws(query, 1, size, &fleet, &mut random).unwrap();
                for dialect in [Dialect::Lanes, Dialect::Heap, Dialect::DuckDb] {
                    let text = draws[0].fill(query.text(dialect).unwrap(), dialect);
                    assert!(!text.contains('$'), "{text}");
                }
                assert!(names.insert(&query.name), "{} occurs twice", query.name);
            }
            assert!(definition.queries.len() >= 50);
            let stars = definition.star_queries.iter();
            assert!(stars.clone().count() >= 2);
            for query in stars {
                assert!(query.polars.is_some() && query.name.contains("$rows"));
                assert!(!query.is_drawn());
            }
        }
    }

    #[test]
    fn sizes_are_formatted_in_millions() {
        let told = [1_000_000, 20_000_000, 1234].map(in_millions);
        assert_eq!(told, ["1M", "20M", "1234"]);
    }
}
