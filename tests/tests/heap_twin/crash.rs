//! A crash of the cluster in the middle of a script.
//!
//! Both sides of a script are in one cluster, and the next statement waits for both answers.
//! Committed changes are therefore committed on both sides, and open ones are lost on both. The
//! work in progress at the crash is chosen so that its result does not depend on whether it
//! finished: sealing and the like, or a transaction that does not commit.

use super::model::TABLES;
use super::twin::Twin;
use lanes_support::cluster::Stop;
use lanes_support::objects::Sealed;
use rand::RngExt;
use rand::seq::IndexedRandom;
use std::thread::JoinHandle;
use std::time::Duration;

/// The work in progress on the lanes side, on a table `{t}`.
const UNDER_WAY: [&str; 8] = [
    "SELECT seal('{t}')",
    "VACUUM {t}",
    "VACUUM (FREEZE) {t}",
    "VACUUM FULL {t}",
    "CHECKPOINT",
    "BEGIN; UPDATE {t} SET id = id + 1; DELETE FROM {t} WHERE id % 3 = 0; SELECT pg_sleep(60)",
    "BEGIN; INSERT INTO {t} SELECT * FROM {t}; SAVEPOINT s; DELETE FROM {t}; ROLLBACK TO s; DELETE FROM {t}; SELECT pg_sleep(60)",
    "BEGIN; TRUNCATE {t}; INSERT INTO {t} (id) SELECT g FROM generate_series(1, 3000) g; SELECT pg_sleep(60)",
];

/// The error of a piece of work, and the connection that it ended.
type Ended = JoinHandle<Result<(), postgres::Error>>;

impl Twin<'_> {
    /// Crashes the cluster, starts it again, and compares everything.
    pub fn crash(&mut self) {
        self.crashes += 1;
        let mut under_way: Vec<Ended> = Vec::new();
        let table = *TABLES.choose(&mut self.random).unwrap();
        let statement = UNDER_WAY
            .choose(&mut self.random)
            .unwrap()
            .replace("{t}", table);
        if self.random.random_bool(0.7) {
            let (mut client, statement) = (self.connect_beside(), statement.clone());
            under_way.push(std::thread::spawn(move || client.batch_execute(&statement)));
        }
        let moved = match self.random.random_ratio(1, 3) {
            true => self.read_sealed(),
            false => None,
        };
        // The images are kept by the session that reads the keys after the crash.
        let moved = moved.map(|sealed| {
            let mut client = self.connect_beside();
            std::thread::spawn(move || {
                let committed = sealed.commit(&mut client);
                (sealed, committed)
            })
        });
        std::thread::sleep(Duration::from_millis(self.random.random_range(0..30)));
        let end = *["immediate stop", "kill of all", "kill of the postmaster"]
            .choose(&mut self.random)
            .unwrap();
        let cluster = &mut self.stage.cluster;
        match end {
            "immediate stop" => cluster.stop(Stop::Immediate),
            "kill of all" => cluster.kill9(),
            _ => cluster.kill9_postmaster(),
        }
        .unwrap();
        self.tell(&format!("{end}, meanwhile: {statement}"));
        for ended in under_way {
            let ended = ended.join().unwrap();
            self.check_ended(ended);
        }
        let moved = moved.map(|moved| moved.join().unwrap());
        self.start_again();
        self.reconnect();
        if let (Some((sealed, committed)), Some(objects)) = (moved, self.stage.objects.clone()) {
            objects.keep(&mut self.administrator, sealed).unwrap();
            self.check_ended(committed.map(|_| ()));
        }
        self.compare_all();
    }

    /// Starts the cluster after a crash. PostgreSQL may fail once, with heap tables too. An aborted
    /// transaction that gave an unlogged table a new file leaves the file there, empty, until the
    /// next checkpoint. If the WAL contains the file's initial fork but not yet the abort, recovery
    /// cannot copy the one over the other. The failed attempt lets the next start succeed.
    fn start_again(&mut self) {
        let cluster = &mut self.stage.cluster;
        if let Err(error) = cluster.start() {
            let text = error.to_string();
            let is_left_over =
                text.contains("could not create file") && text.contains("File exists");
            assert!(is_left_over, "{text}");
            cluster.start().unwrap();
        }
    }

    /// Returns the sealed segments of some table, if they can be read now.
    fn read_sealed(&mut self) -> Option<Sealed> {
        self.stage.objects.as_ref()?;
        let table = *TABLES.choose(&mut self.random).unwrap();
        Sealed::read(&mut self.administrator, table).ok()
    }

    /// Fails if a piece of work ended with an error that indicates damage.
    fn check_ended(&self, ended: Result<(), postgres::Error>) {
        if let Err(error) = ended
            && error
                .code()
                .is_some_and(|state| state.code().starts_with("XX"))
        {
            self.fail(&format!("the work in progress failed: {error:?}"));
        }
    }
}
