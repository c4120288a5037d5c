//! The order of a whole run: machine, data, expected answers, PostgreSQL, the peers one after
//! another, the report.

use crate::bandwidth::read_bandwidth;
use crate::machine::Machine;
use crate::sql::answer::Answer;
use crate::sql::column_files;
use crate::sql::definition::{self, Definition, Engine, Query};
use crate::sql::generate::Data;
use crate::sql::judge::{FLOOR, Yardstick, judge, judge_planning};
use crate::sql::load::{ON_HEAP, ON_LANES, load};
use crate::sql::measurement::{Kind, Measurement};
use crate::sql::options::Options;
use crate::sql::peer::{self, Peer};
use crate::sql::planning;
use crate::sql::postgres_run::{self, System};
use crate::sql::reference;
use crate::sql::report::{self, Section};
use lanes_support::cluster::Cluster;
use lanes_support::error::{Error, Result};
use lanes_support::place;
use serde_json::json;
use std::path::{Path, PathBuf};

const DATABASE: &str = "postgres";

/// The state of a run.
struct Run<'a> {
    options: &'a Options,
    definitions: Vec<Definition>,
    data: Data,
    /// The expected answers, in the order of the definitions. Those of the heap tables are unknown at first.
    answers: Vec<Option<Answer>>,
    machine: Machine,
    versions: Vec<String>,
    measurements: Vec<Measurement>,
}

/// Runs everything, prints the table and writes the files.
pub fn run(options: &Options) -> Result<()> {
    let definitions = chosen(definition::read_all()?, options)?;
    place::make_folder(&options.folder)?;
    println!("==> examining the machine");
    let machine = Machine::examine();
    println!("{}", machine.describe());
    println!("==> generating {} trades and quotes", options.rows);
    let data = Data::generate(options.rows);
    let answers = definitions
        .iter()
        .map(|definition| reference::answer(definition.answer.as_ref()?, &data))
        .collect();
    let mut run = Run {
        options,
        definitions,
        data,
        answers,
        machine,
        versions: Vec::new(),
        measurements: Vec::new(),
    };
    // Measure the bandwidth before anything else can use the memory bus.
    let yardsticks = run.yardsticks();
    run.postgres()?;
    run.peers()?;
    run.report(yardsticks)
}

/// Returns the selected definitions. The floor is always included, because bars refer to it.
fn chosen(mut definitions: Vec<Definition>, options: &Options) -> Result<Vec<Definition>> {
    let known = |name: &String| {
        name == planning::ROW || definitions.iter().any(|definition| definition.row == *name)
    };
    if let Some(unknown) = options.only.iter().find(|name| !known(name)) {
        let names: Vec<&str> = definitions
            .iter()
            .map(|definition| definition.row.as_str())
            .collect();
        return Err(Error::Other(format!(
            "unknown row `{unknown}`; known rows: {}, {}",
            names.join(", "),
            planning::ROW
        )));
    }
    definitions.retain(|definition| {
        options.only.is_empty() || definition.row == FLOOR || options.only.contains(&definition.row)
    });
    Ok(definitions)
}

impl Run<'_> {
    /// Returns the yardstick of each definition's bar, except for the floor, which is not measured
    /// yet.
    fn yardsticks(&self) -> Vec<Yardstick> {
        let yardstick = |definition: &Definition| {
            let bytes = definition
                .bar
                .as_ref()
                .and_then(|bar| bar.bytes(&self.data));
            Yardstick {
                full: self.options.is_full(),
                floor: None,
                bandwidth: bytes.map(|bytes| (bytes, read_bandwidth(bytes as usize))),
            }
        };
        self.definitions.iter().map(yardstick).collect()
    }

    fn postgres(&mut self) -> Result<()> {
        let options = self.options;
        let (lanes, heap) = (
            options.has_system("lanes") || options.has_system("lanes-parallel"),
            options.has_system("heap") || options.has_system("heap-parallel"),
        );
        let wants_answers = self.answers.contains(&None);
        if !lanes && !heap && !wants_answers {
            return Ok(());
        }
        let cluster = start(options)?;
        let mut client = cluster.connect(DATABASE)?;
        client.batch_execute("CREATE EXTENSION lanes")?;
        self.versions
            .push(cluster.scalar(DATABASE, "SELECT split_part(version(), ' on ', 1)")?);
        for (wanted, schema, access_method) in [
            (lanes, ON_LANES, "lanes"),
            (heap || wants_answers, ON_HEAP, "heap"),
        ] {
            if wanted {
                println!("==> loading the tables of {access_method}");
                load(&mut client, &self.data, schema, access_method)?;
            }
        }
        client.batch_execute("CHECKPOINT")?;
        drop(client);
        self.ask_for_answers(&cluster)?;
        let plain = |name, kind, schema, workers| System {
            name,
            kind,
            schema,
            workers,
            settings: &[],
        };
        for (system, engine) in [
            (plain("lanes", Kind::Ours, ON_LANES, 0), Engine::Lanes),
            // As many processes as the peers have threads.
            (
                plain("lanes-parallel", Kind::Ours, ON_LANES, 1),
                Engine::Lanes,
            ),
            (plain("heap", Kind::Peer, ON_HEAP, 0), Engine::Heap),
            (plain("heap-parallel", Kind::Peer, ON_HEAP, 2), Engine::Heap),
        ] {
            if options.has_system(system.name) {
                println!("==> {}", system.name);
                self.postgres_system(&cluster, system, engine);
            }
        }
        if lanes && (options.only.is_empty() || options.only.iter().any(|row| row == planning::ROW))
        {
            println!("==> planning time");
            self.measurements
                .extend(planning::measure(&cluster, DATABASE));
        }
        Ok(())
    }

    /// Asks PostgreSQL for the answers that have no reference, on heap tables.
    fn ask_for_answers(&mut self, cluster: &Cluster) -> Result<()> {
        for (definition, answer) in self.definitions.iter().zip(&mut self.answers) {
            if answer.is_none()
                && let Some(query) = definition.query(Engine::Heap)
            {
                println!("==> the answer of {}", definition.row);
                let parameters = definition.parameters(&self.data);
                let found = postgres_run::answer(cluster, DATABASE, ON_HEAP, query, &parameters)?;
                *answer = Some(found);
            }
        }
        Ok(())
    }

    fn postgres_system(&mut self, cluster: &Cluster, system: System, engine: Engine) {
        for (definition, expected) in self.definitions.iter().zip(&self.answers) {
            let (Some(query), Some(expected)) = (definition.query(engine), expected) else {
                continue;
            };
            let parameters = definition.parameters(&self.data);
            let ask = |system: System, query: &Query| {
                let question = postgres_run::Question {
                    definition,
                    query,
                    parameters: &parameters,
                    expected,
                };
                let measurements =
                    postgres_run::measure(cluster, DATABASE, system, &question, self.options);
                measurements.iter().for_each(progress);
                measurements
            };
            self.measurements.extend(ask(system, query));
            for variant in definition
                .variant
                .iter()
                .filter(|_| engine == Engine::Lanes)
            {
                let name = format!("{}, {}", system.name, variant.name);
                let query = Query {
                    setup: query.setup.clone(),
                    text: variant.text.clone().unwrap_or_else(|| query.text.clone()),
                };
                let system = System {
                    name: &name,
                    settings: &variant.settings,
                    ..system
                };
                self.measurements.extend(ask(system, &query));
            }
        }
    }

    fn peers(&mut self) -> Result<()> {
        let cores = self.machine.cores();
        let all = [
            ("duckdb-1", "duckdb", Engine::DuckDb, 1),
            ("duckdb-2", "duckdb", Engine::DuckDb, 2),
            ("polars", "polars", Engine::Polars, cores),
            ("chdb", "chdb", Engine::ChDb, cores),
        ];
        let wanted: Vec<_> = all
            .into_iter()
            .filter(|(system, ..)| self.options.has_system(system))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let scripts = scripts();
        let folder = self.options.folder.join("data");
        println!("==> writing the data for the peers");
        let written = match peer::is_available(&self.options.python) {
            true => column_files::write(&self.data, &folder, &self.options.python, &scripts),
            false => Err(Error::Other(format!(
                "{} is missing; `make bench-sql` creates it",
                self.options.python.display()
            ))),
        };
        for (system, script, engine, threads) in wanted {
            println!("==> {system}");
            let start = peer::Start {
                system,
                script,
                threads,
                scripts: scripts.clone(),
                data: folder.clone(),
                python: self.options.python.clone(),
                logs: self.options.folder.clone(),
            };
            match &written {
                Ok(()) => self.peer_system(&start, engine),
                Err(error) => self.fail_peer(system, engine, &error.to_string()),
            }
        }
        Ok(())
    }

    fn peer_system(&mut self, start: &peer::Start, engine: Engine) {
        let mut running: Option<Peer> = None;
        for (definition, expected) in self.definitions.iter().zip(&self.answers) {
            let (Some(query), Some(expected)) = (definition.query(engine), expected) else {
                continue;
            };
            let question = peer::Question {
                row: &definition.row,
                setup: query
                    .setup
                    .iter()
                    .map(|text| definition.with_values(text, &self.data))
                    .collect(),
                text: definition.with_values(&query.text, &self.data),
                expected,
            };
            let ready = match running.take() {
                Some(peer) => Ok(peer),
                None => Peer::start(start),
            };
            let measurement = match ready {
                Ok(mut peer) => {
                    if !self.versions.contains(&peer.version) {
                        self.versions.push(peer.version.clone());
                    }
                    let (measurement, usable) = peer.measure(start.system, &question, self.options);
                    running = usable.then_some(peer);
                    measurement
                }
                Err(error) => {
                    let reason = postgres_run::first_line(&error.to_string());
                    Measurement::new(&definition.row, start.system, Kind::Peer, Err(reason))
                }
            };
            progress(&measurement);
            self.measurements.push(measurement);
        }
    }

    fn fail_peer(&mut self, system: &str, engine: Engine, reason: &str) {
        let reason = postgres_run::first_line(reason);
        for definition in &self.definitions {
            if definition.query(engine).is_some() {
                self.measurements.push(Measurement::new(
                    &definition.row,
                    system,
                    Kind::Peer,
                    Err(reason.clone()),
                ));
            }
        }
    }

    fn report(self, yardsticks: Vec<Yardstick>) -> Result<()> {
        let of = |row: &str| -> Vec<Measurement> {
            let all = self.measurements.iter();
            all.filter(|measurement| measurement.row == row)
                .cloned()
                .collect()
        };
        let floor = of(FLOOR)
            .iter()
            .find(|measurement| measurement.kind == Kind::Ours)
            .and_then(Measurement::median);
        let mut sections = Vec::new();
        for (definition, yardstick) in self.definitions.iter().zip(yardsticks) {
            let yardstick = Yardstick { floor, ..yardstick };
            sections.push(Section::of(
                definition,
                judge(definition, of(&definition.row), &yardstick),
            ));
        }
        let planning = of(planning::ROW);
        if !planning.is_empty() {
            sections.push(Section {
                row: planning::ROW.to_owned(),
                title: "planning time of a join of two heap tables".to_owned(),
                note: None,
                lines: judge_planning(planning),
            });
        }
        println!("\n{}{}", self.machine.describe(), self.versions.join(", "));
        println!(
            "{} trades, {} quotes, {} events; bars are for 1000000 trades",
            self.data.trades.ts.len(),
            self.data.quotes.ts.len(),
            self.data.events.ts.len()
        );
        println!("{}", report::table(&sections));
        let path = self.options.folder.join("sql.json");
        report::write(&path, &report::to_json(&sections))?;
        let machine = json!({"machine": self.machine.to_json(), "versions": self.versions, "rows": self.options.rows});
        report::write(&self.options.folder.join("machine.json"), &machine)?;
        println!("written to {}", path.display());
        Ok(())
    }
}

/// Starts the private cluster, with enough memory for all tables and without background work.
fn start(options: &Options) -> Result<Cluster> {
    let mut builder = Cluster::builder("bench")
        .setting("shared_buffers", "2GB")
        .setting("work_mem", "256MB")
        .setting("maintenance_work_mem", "512MB")
        .setting("max_wal_size", "8GB")
        .setting("checkpoint_timeout", "1h")
        .setting("autovacuum", "off")
        .setting("lanes.arena_size", "1GB");
    for (name, value) in &options.settings {
        builder = builder.setting(name, value);
    }
    builder.start()
}

/// Returns the folder of the engines' scripts.
pub fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

fn progress(measurement: &Measurement) {
    match &measurement.times {
        Ok(times) => println!(
            "    {:<16}{:<34}{:>11.3} ms  ({} executions)",
            measurement.row,
            measurement.system,
            times.median(),
            times.count()
        ),
        Err(reason) => println!(
            "    {:<16}{:<34} error: {reason}",
            measurement.row, measurement.system
        ),
    }
}
