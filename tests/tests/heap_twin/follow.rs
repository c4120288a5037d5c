//! A standby that follows. Once it has replayed everything, both sides' tables have equal answers
//! on it. A snapshot on it stays consistent, or is cancelled.

use super::answer::{Answer, answer, difference};
use super::generate::Statement;
use super::model;
use super::queries::{digest, query};
use super::twin::Twin;
use lanes_support::cluster::Stop;
use postgres::Client;
use postgres::error::SqlState;
use rand::RngExt;

/// The number of attempts of a query that conflicts with replay.
const ATTEMPTS_MAX: u32 = 20;
/// The number of queries of a comparison besides those that read everything.
const QUERIES: u32 = 3;

/// Two sessions on the standby, one per side, with a snapshot each, and the content of the tables
/// in it.
pub struct OldSnapshot {
    clients: [Client; 2],
    seen: Vec<(String, [Answer; 2])>,
}

impl Twin<'_> {
    /// Compares the two sides on the standby while no statement is active. Sometimes the standby
    /// crashes first.
    pub fn compare_on_standby(&mut self) {
        let Some(standby) = self.stage.standby.as_mut() else {
            return;
        };
        if self.random.random_ratio(1, 8) {
            standby.stop(Stop::Immediate).unwrap();
            standby.start().unwrap();
            self.tell("the standby crashed");
        }
        self.check_old_snapshot();
        let Some(standby) = self.stage.standby.as_mut() else {
            return;
        };
        standby.wait_replayed(&self.stage.cluster).unwrap();
        self.tell("the standby has replayed everything");
        let mut clients = [0, 1].map(|side: usize| self.connect_to_standby(side));
        let tables = match model::read(&mut clients[0]) {
            Ok(tables) => tables,
            Err(error) => self.fail(&format!("the standby's catalog cannot be read: {error:?}")),
        };
        let digests: Vec<String> = tables.iter().map(|table| digest(&table.name)).collect();
        let mut questions = digests.clone();
        questions.extend(
            tables
                .iter()
                .map(|table| format!("SELECT x FROM {} x", table.name)),
        );
        if !tables.is_empty() {
            questions.extend((0..QUERIES).map(|_| query(&mut self.random, &tables)));
        }
        // Unlogged tables and tables that a transaction has locked cannot be read.
        let mut readable = Vec::new();
        for question in questions {
            let [mut heap, mut lanes] = self.ask_both(&mut clients, &question);
            let mut is_excused = false;
            if self.crashes > 0 && [&heap, &lanes].into_iter().any(is_lock_timeout) {
                is_excused = self.keeps_locks_left_over();
                [heap, lanes] = self.ask_both(&mut clients, &question);
                is_excused &= [&heap, &lanes].into_iter().any(is_lock_timeout);
            }
            if heap != lanes && !is_excused {
                self.fail(&format!(
                    "on the standby: {question}\n{}",
                    difference(&heap, &lanes)
                ));
            }
            if matches!(heap, Answer::Lines(_)) && digests.contains(&question) {
                readable.push(question);
            }
        }
        if self.old_snapshot.is_none() {
            self.take_snapshot(clients, readable);
        }
    }

    /// Makes the standby release the locks of transactions that ended with the cluster, which it
    /// may have received from one side only. WAL contains no end of such a transaction. A standby
    /// releases its locks at a record of the running transactions, which each checkpoint writes, if
    /// all of them are newer. Returns whether locks may remain: a prepared transaction keeps its
    /// locks.
    fn keeps_locks_left_over(&mut self) -> bool {
        let cluster = &self.stage.cluster;
        cluster.psql("postgres", "CHECKPOINT").unwrap();
        if let Some(standby) = &mut self.stage.standby {
            standby.wait_replayed(cluster).unwrap();
        }
        let prepared = cluster.psql("postgres", "SELECT count(*) FROM pg_prepared_xacts");
        prepared.unwrap().trim() != "0"
    }

    fn take_snapshot(&mut self, mut clients: [Client; 2], questions: Vec<String>) {
        for client in &mut clients {
            let begun = client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ");
            if begun.is_err() {
                return;
            }
        }
        let mut seen = Vec::new();
        for question in questions {
            let answers = [0, 1].map(|side: usize| ask(&mut clients[side], &question));
            if let [Answer::Lines(_), Answer::Lines(_)] = answers {
                seen.push((question, answers));
            } else {
                // The query conflicted with replay.
                return;
            }
        }
        self.old_snapshot = Some(OldSnapshot { clients, seen });
    }

    /// Repeats the queries of an old snapshot on every table, and sometimes ends the snapshot.
    fn check_old_snapshot(&mut self) {
        let Some(mut old) = self.old_snapshot.take() else {
            return;
        };
        let mut is_alive = self.random.random_ratio(3, 4);
        for (question, before) in &old.seen {
            for side in [0, 1] {
                let now = ask(&mut old.clients[side], question);
                if is_cancelled(&now) {
                    is_alive = false;
                } else if now != before[side] {
                    let side = ["heap", "lanes"][side];
                    self.fail(&format!(
                        "an old snapshot on the standby, {side}: {question}\nbefore: {:?}\nnow:    {now:?}",
                        before
                    ));
                }
            }
        }
        if is_alive {
            self.old_snapshot = Some(old);
        }
    }

    fn ask_both(&self, clients: &mut [Client; 2], question: &str) -> [Answer; 2] {
        [0, 1].map(|side| self.ask_standby(clients, side, question))
    }

    /// Runs a query on one side of the standby, and repeats it as long as it conflicts with replay.
    fn ask_standby(&self, clients: &mut [Client; 2], side: usize, question: &str) -> Answer {
        for _ in 0..ATTEMPTS_MAX {
            let answer = ask(&mut clients[side], question);
            if !is_cancelled(&answer) {
                return answer;
            }
            clients[side] = self.connect_to_standby(side);
        }
        self.fail(&format!(
            "replay conflicts with every attempt of {question}"
        ))
    }
}

fn ask(client: &mut Client, question: &str) -> Answer {
    answer(client, &Statement::Sql(question.to_owned()), str::to_owned)
}

fn is_lock_timeout(answer: &Answer) -> bool {
    matches!(answer, Answer::Error(state) if state == SqlState::LOCK_NOT_AVAILABLE.code())
}

/// Whether replay, or a crash of the standby, ended a query.
fn is_cancelled(answer: &Answer) -> bool {
    match answer {
        Answer::Lost(_) => true,
        Answer::Error(state) => [
            SqlState::T_R_SERIALIZATION_FAILURE.code(),
            SqlState::IN_FAILED_SQL_TRANSACTION.code(),
            SqlState::ADMIN_SHUTDOWN.code(),
        ]
        .contains(&state.as_str()),
        _ => false,
    }
}
