//! A pair of sessions, one per side, and the comparison of their answers.

use super::answer::{Answer, answer, both_serve, difference};
use super::follow::OldSnapshot;
use super::generate::{Counters, Scene, Session, Statement};
use super::model;
use super::queries::digest;
use super::stage::Stage;
use lanes_support::cluster::Cluster;
use lanes_support::objects::{Objects, forget_recalled};
use lanes_support::place;
use lanes_support::seed::Random;
use postgres::error::SqlState;
use postgres::{Client, SimpleQueryMessage};
use rand::RngExt;
use rand::seq::IndexedRandom;
use std::path::PathBuf;

/// Long enough for a free lock, and short for a conflicting one.
const LOCK_TIMEOUT_MS: u32 = 10;
/// The number of statements in a failure's message.
const SHOWN_STATEMENTS: usize = 20;
const SHOWN_STATEMENT_CHARS: usize = 200;

/// The two sides in two sessions each, and the script so far.
pub struct Twin<'a> {
    pub(super) stage: &'a mut Stage,
    pub(super) random: Random,
    pub(super) administrator: Client,
    /// The number of offloaded parts.
    pub offloaded: usize,
    /// The number of crashes.
    pub crashes: usize,
    sides: [String; 2],
    clients: [[Client; 2]; 2],
    sessions: [Session; 2],
    counters: Counters,
    /// The settings of the sessions on both sides.
    settings: String,
    pub(super) old_snapshot: Option<OldSnapshot>,
    script: Vec<String>,
    /// The file that a `COPY … FROM` reads. It is a server's file, because a `COPY … FROM STDIN`
    /// that fails at once breaks the client's protocol.
    file: PathBuf,
}

impl<'a> Twin<'a> {
    /// Creates schemas and sessions for one script.
    pub fn new(stage: &'a mut Stage, number: u64, mut random: Random) -> Twin<'a> {
        let sides = ["heap", "lanes"].map(|method| format!("{method}_{number}"));
        let decode_after = [0, 1, 8].choose(&mut random).unwrap();
        // Plans that a setting below forbids look so costly that each of them would be compiled.
        let mut settings = format!("SET jit = off; SET lanes.decode_after = {decode_after}");
        for method in ["seqscan", "indexscan", "bitmapscan"] {
            if random.random_ratio(1, 3) {
                settings.push_str(&format!("; SET enable_{method} = off"));
            }
        }
        if random.random_bool(0.5) {
            // Index scans compete with the scans that PostgreSQL has.
            settings.push_str("; SET lanes.vectorize = off");
        }
        let mut administrator = stage.cluster.connect("postgres").unwrap();
        administrator
            .batch_execute(
                "DO $$ BEGIN CREATE TYPE public.mood AS ENUM ('sad', 'ok', 'happy'); CREATE TYPE public.pair AS (x int, y text); \
                 EXCEPTION WHEN duplicate_object THEN NULL; END $$",
            )
            .unwrap();
        let sealable = administrator
            .query_one(
                "SELECT count(*) FROM pg_extension WHERE extname = 'lanes'",
                &[],
            )
            .map(|row| row.get::<_, i64>(0) > 0)
            .unwrap();
        for side in &sides {
            let is_lanes = sealable && side.starts_with("lanes");
            administrator
                .batch_execute(&helpers(side, is_lanes))
                .unwrap();
        }
        let clients = [0, 1]
            .map(|_| [0, 1].map(|side: usize| connect(&stage.cluster, &sides[side], &settings)));
        Twin {
            administrator: connect(&stage.cluster, &sides[1], &settings),
            file: stage.cluster.folder().join("copy"),
            stage,
            random,
            offloaded: 0,
            crashes: 0,
            sides,
            clients,
            sessions: Default::default(),
            counters: Counters::default(),
            script: vec![format!("/* all sessions */ {settings};")],
            settings,
            old_snapshot: None,
        }
    }

    /// Opens an additional session on the lanes side.
    pub(super) fn connect_beside(&self) -> Client {
        connect(&self.stage.cluster, &self.sides[1], &self.settings)
    }

    /// Opens a session on one side of the standby.
    pub(super) fn connect_to_standby(&self, side: usize) -> Client {
        let standby = self.stage.standby.as_ref();
        connect(
            standby.expect("there is a standby"),
            &self.sides[side],
            &self.settings,
        )
    }

    /// Opens sessions after a crash, which has ended the transactions of the old ones, except for
    /// prepared ones.
    pub(super) fn reconnect(&mut self) {
        self.administrator = self.connect_beside();
        for who in [0, 1] {
            self.clients[who] = [0, 1]
                .map(|side: usize| connect(&self.stage.cluster, &self.sides[side], &self.settings));
            self.sessions[who] = Session {
                prepared: std::mem::take(&mut self.sessions[who].prepared),
                ..Session::default()
            };
        }
    }

    /// Generates a statement, runs it on both sides, and compares.
    pub fn step(&mut self) {
        if let Some(objects) = self.stage.objects.clone()
            && self.random.random_ratio(1, 4)
        {
            self.move_away(&objects);
        }
        if let Some(steps) = self.stage.steps_a_crash
            && self.random.random_ratio(1, steps)
        {
            self.crash();
        }
        if self.random.random_ratio(1, 8) {
            self.compare_on_standby();
        }
        // The second session runs fewer statements: it reads old snapshots and holds locks.
        let who = usize::from(self.random.random_ratio(1, 5));
        let session = &self.sessions[who];
        let tables = if session.aborted {
            Vec::new()
        } else {
            // Both sides read the model, although one answer would suffice: under REPEATABLE READ
            // the first query takes the snapshot.
            let read = [0, 1].map(|side: usize| model::read(&mut self.clients[who][side]));
            match read.into_iter().collect::<Result<Vec<_>, _>>() {
                Ok(mut tables) => tables.swap_remove(0),
                Err(error) => self.fail(&format!("the catalog cannot be read: {error}")),
            }
        };
        let statement = Scene {
            random: &mut self.random,
            session: &self.sessions[who],
            counters: &mut self.counters,
            tables: &tables,
            may_freeze: !(self.sessions[1 - who].in_transaction
                && self.sessions[1 - who].has_cursor),
        }
        .next();
        let succeeded = self.run(who, &statement);
        self.follow(who, &statement, succeeded);
        if !self.sessions[who].aborted {
            for table in tables.iter().map(|table| table.name.clone()) {
                if self.random.random_ratio(1, 4) {
                    // The query fails alike on both sides if the statement dropped the table. A
                    // failure would abort the transaction.
                    let exists = format!("to_regclass('{table}') IS NOT NULL");
                    if self.ask(who, &format!("SELECT {exists}")) == Some(true) {
                        let check = Statement::Sql(digest(&table));
                        let succeeded = self.run(who, &check);
                        self.follow(who, &check, succeeded);
                        if self.sessions[who].aborted {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Seals a lanes table and moves its sealed parts to object storage, if no lock of the script
    /// conflicts. Sometimes removes recalled segments.
    fn move_away(&mut self, objects: &Objects) {
        let table = model::TABLES[self.random.random_range(0..model::TABLES.len())];
        // The setting is changed only once, because its lock is rarely free. Without room in the
        // arena, queries recall their segments each time, which is slow.
        let budget = if table == "b" {
            ", arena_budget = '1kB'"
        } else {
            ""
        };
        let want = format!(
            "DO $$ BEGIN IF NOT (SELECT coalesce(array_to_string(reloptions, ' '), '') ~ 'hot=' FROM pg_class WHERE oid = '{table}'::regclass) THEN \
                 ALTER TABLE {table} SET (hot = '1 day'{budget}); \
             END IF; END $$"
        );
        let moved = self
            .administrator
            .batch_execute(&want)
            .and_then(|()| {
                let seal = format!("SELECT lanes.seal('{table}')");
                self.administrator.batch_execute(&seal)
            })
            .and_then(|()| objects.offload_table(&mut self.administrator, table));
        match moved {
            Ok(parts) => self.offloaded += parts,
            // The table does not exist, or is locked.
            Err(error) => assert!(
                [
                    Some(&SqlState::LOCK_NOT_AVAILABLE),
                    Some(&SqlState::UNDEFINED_TABLE)
                ]
                .contains(&error.code()),
                "{error:?}"
            ),
        }
        if self.random.random_ratio(1, 3) {
            forget_recalled(&self.stage.cluster);
            self.stage.standby.iter().for_each(forget_recalled);
        }
        self.tell(&format!("{table}: sealed segments are offloaded"));
    }

    /// Ends open transactions and compares the tables.
    pub fn finish(&mut self) {
        for who in [0, 1] {
            if self.sessions[who].in_transaction {
                let end = if self.random.random_bool(0.5) {
                    "COMMIT"
                } else {
                    "ROLLBACK"
                };
                self.run(who, &Statement::Sql(end.to_owned()));
            }
        }
        for name in self
            .sessions
            .iter_mut()
            .flat_map(|session| std::mem::take(&mut session.prepared))
            .collect::<Vec<_>>()
        {
            self.run(0, &Statement::Sql(format!("COMMIT PREPARED '{name}'")));
        }
        self.compare_all();
        self.compare_on_standby();
        // The snapshot would delay the replay of the following WAL.
        self.old_snapshot = None;
        let mut drop = String::new();
        for side in &self.sides {
            drop.push_str(&format!("DROP SCHEMA {side} CASCADE;"));
        }
        self.administrator
            .batch_execute(&format!("SET lock_timeout = 0; {drop}"))
            .unwrap();
    }

    /// Compares the complete tables, outside of transactions.
    pub(super) fn compare_all(&mut self) {
        for table in model::TABLES {
            if self.ask(0, &format!("SELECT to_regclass('{table}') IS NOT NULL")) == Some(true) {
                self.run(0, &Statement::Sql(format!("SELECT x FROM {table} x")));
                self.run(0, &Statement::Sql(format!("SELECT count(*) FROM {table}")));
            }
        }
        if self.ask(0, "SELECT to_regproc('lanes.check') IS NOT NULL") == Some(true) {
            self.check_tables();
        }
    }

    /// Asserts that `lanes.check` finds nothing in the tables of the lanes side.
    fn check_tables(&mut self) {
        let find = "SELECT c.relname || ', ' || f.place || ': ' || f.problem \
                      FROM pg_class c JOIN pg_am a ON a.oid = c.relam AND a.amname = 'lanes' \
                           CROSS JOIN LATERAL lanes.check(c.oid) f \
                     WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'm')";
        let rows = match self.administrator.query(find, &[]) {
            // A prepared transaction keeps a table locked. The last check comes after all of them.
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => return,
            found => found.unwrap(),
        };
        let findings: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert!(
            findings.is_empty(),
            "{findings:#?}\n{}",
            self.script.join("\n")
        );
    }

    /// Adds a note to the script about an event beside it.
    pub(super) fn tell(&mut self, what: &str) {
        self.script.push(format!("/* {what} */"));
    }

    /// Runs a query on the heap side that returns a boolean, beside the script.
    fn ask(&mut self, who: usize, sql: &str) -> Option<bool> {
        let messages = self.clients[who][0].simple_query(sql).ok()?;
        messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(|text| text == "t"),
            _ => None,
        })
    }

    /// Runs a statement on both sides. Returns whether it succeeded, or fails the test.
    fn run(&mut self, who: usize, statement: &Statement) -> bool {
        let text = match statement {
            Statement::Sql(sql) | Statement::CopyOut(sql) => sql.clone(),
            Statement::CopyIn(sql, lines) => {
                std::fs::write(&self.file, lines).unwrap();
                format!("{sql}\n{lines}\\.")
            }
        };
        self.script.push(format!("/* session {who} */ {text};"));
        let file = self.file.to_string_lossy().into_owned();
        let clients = &mut self.clients[who];
        let mut answer_of = |side: usize| {
            let place = |sql: &str| {
                sql.replace("{side}", &self.sides[side])
                    .replace("{file}", &file)
            };
            answer(&mut clients[side], statement, place)
        };
        let lanes = answer_of(1);
        if lanes == Answer::Stale && self.sessions[who].in_transaction {
            // A cursor of the transaction is older than a sealing. Heap has no such error, so its
            // transaction is made to fail too.
            return self.clients[who][0].simple_query("SELECT 1 / 0").is_ok();
        }
        let heap = answer_of(0);
        let is_lost = matches!(heap, Answer::Lost(_));
        if !is_lost && (heap == lanes || both_serve(&heap, &lanes)) {
            return !matches!(heap, Answer::Error(_));
        }
        let mut reason = difference(&heap, &lanes);
        for table in model::TABLES {
            // A failing query would abort the transaction, and all later answers would agree.
            let exists = format!("SELECT to_regclass('{table}') IS NOT NULL");
            if self.ask(who, &exists) == Some(true) {
                let whole = Statement::Sql(format!("SELECT x FROM {table} x"));
                let [heap, lanes] = [0, 1]
                    .map(|side: usize| answer(&mut self.clients[who][side], &whole, str::to_owned));
                if heap != lanes {
                    reason.push_str(&format!("\ntable {table}, {}", difference(&heap, &lanes)));
                }
            }
        }
        self.fail(&reason)
    }

    /// Tracks the state of the session's transaction.
    fn follow(&mut self, who: usize, statement: &Statement, succeeded: bool) {
        let session = &mut self.sessions[who];
        let text = match statement {
            Statement::Sql(sql) => sql.as_str(),
            _ => "",
        };
        if !succeeded {
            session.aborted = session.in_transaction;
            if text.starts_with("PREPARE TRANSACTION") {
                *session = Session {
                    prepared: std::mem::take(&mut session.prepared),
                    ..Session::default()
                };
            }
            return;
        }
        let number = |prefix: &str| {
            text.strip_prefix(prefix)
                .and_then(|rest| rest.parse::<u32>().ok())
        };
        if text.starts_with("BEGIN") {
            (session.in_transaction, session.has_cursor) = (true, false);
        } else if text.starts_with("DECLARE") {
            session.has_cursor = true;
        } else if let Some(savepoint) = number("SAVEPOINT s") {
            session.savepoints = savepoint;
        } else if let Some(savepoint) = number("RELEASE s") {
            session.savepoints = savepoint - 1;
        } else if let Some(savepoint) = number("ROLLBACK TO s") {
            (session.savepoints, session.aborted) = (savepoint, false);
        } else if let Some(name) = text.strip_prefix("PREPARE TRANSACTION '") {
            session
                .prepared
                .push(name.trim_end_matches('\'').to_owned());
            (session.in_transaction, session.savepoints) = (false, 0);
        } else if text.contains(" PREPARED '") {
            session.prepared.clear();
        } else if text == "COMMIT" || text == "ROLLBACK" {
            (session.in_transaction, session.aborted, session.savepoints) = (false, false, 0);
        }
    }

    /// Fails the test. The whole script is written to a file, and its end to the message, because
    /// test runners truncate long output.
    pub(super) fn fail(&self, reason: &str) -> ! {
        let file = place::target().join("heap-twin-script.sql");
        let wrote = std::fs::write(&file, self.script.join("\n"));
        let written = wrote.map_or_else(|error| error.to_string(), |()| file.display().to_string());
        let end = self.script.len().saturating_sub(SHOWN_STATEMENTS);
        let last: String = self.script[end..]
            .iter()
            .flat_map(|line| {
                line.chars()
                    .take(SHOWN_STATEMENT_CHARS)
                    .chain(std::iter::once('\n'))
            })
            .collect();
        panic!(
            "heap and lanes differ at the last of these statements (all of them, for a schema of its own on each side: {written})\n\
             {last}{reason}"
        );
    }
}

/// Opens a session on one side of a cluster.
fn connect(cluster: &Cluster, side: &str, settings: &str) -> Client {
    let method = side.split('_').next().unwrap_or_default();
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(&format!(
            "SET search_path = {side}, public; SET default_table_access_method = {method}; \
             SET lock_timeout = {LOCK_TIMEOUT_MS}; SET client_min_messages = error; SET timezone = 'UTC'; \
             SET extra_float_digits = 3; {settings}"
        ))
        .unwrap();
    client
}

/// Returns a side's schema with functions that only have an effect on lanes tables: `seal(table)`,
/// and `arrange(table, keys)`, which sets the order of sealing. On heap they take the same locks
/// and refuse the same arguments.
fn helpers(side: &str, is_lanes: bool) -> String {
    let [seal, arrange] = if is_lanes {
        [
            "PERFORM lanes.seal(target);",
            "EXECUTE format('ALTER TABLE %s SET (order_by = %L)', target, keys);",
        ]
    } else {
        [
            "",
            "EXECUTE format('LOCK TABLE %s', target); EXECUTE format('ALTER TABLE %s SET (fillfactor = 90)', target);",
        ]
    };
    format!(
        "CREATE SCHEMA {side}; \
         CREATE FUNCTION {side}.seal(target regclass) RETURNS void LANGUAGE plpgsql AS $$ BEGIN \
             EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', target); \
             IF EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND relation = target AND mode = 'AccessExclusiveLock') THEN \
                 RAISE 'locked exclusively' USING ERRCODE = '25001'; \
             END IF; {seal} END $$; \
         CREATE FUNCTION {side}.arrange(target regclass, keys text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN {arrange} END $$"
    )
}
