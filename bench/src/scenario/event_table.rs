//! The table of the events of one load, and the comparison of its content with what was
//! acknowledged.

use super::event_batch::{COLUMNS, EventRequests, SERVICES, START, START_TEXT, Sums};
use super::system::System;
use crate::load::Outcome;
use lanes_support::error::{Error, Result};
use lanes_support::provision::GATEWAY;
use postgres::Client;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Each load has a table of its own. With a reused name the gateway would first have to notice the
/// new table's identity, which is not part of the measurement.
pub struct EventTable {
    client: Client,
    name: String,
}

impl EventTable {
    /// Creates a table, and drops those of earlier loads.
    ///
    /// # Errors
    /// PostgreSQL fails.
    pub fn create(system: &System, logged: bool) -> Result<EventTable> {
        let mut client = system.connect()?;
        let kind = if logged { "" } else { "UNLOGGED" };
        for row in client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename ~ '^events_[0-9]+$'", &[])? {
            client.batch_execute(&format!("DROP TABLE public.{}", row.get::<_, &str>(0)))?;
        }
        static TABLES: AtomicU64 = AtomicU64::new(0);
        let name = format!("events_{}", TABLES.fetch_add(1, Ordering::Relaxed));
        client.batch_execute(&format!(
            "SET search_path = public;
             CREATE {kind} TABLE {name} ({COLUMNS}) USING lanes;
             GRANT INSERT, SELECT ON {name} TO {GATEWAY}"
        ))?;
        // Dirty pages of an earlier load would be written during this one.
        client.batch_execute("CHECKPOINT")?;
        Ok(EventTable { client, name })
    }

    /// Returns the table's name in URLs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Compares count and sums with those of the acknowledged requests.
    ///
    /// # Errors
    /// They differ. If requests failed without a response, it is unknown whether they were stored.
    /// Then no acknowledged event may be missing, and there may not be more events than were sent.
    pub fn verify(mut self, requests: &EventRequests, outcome: &Outcome) -> Result<()> {
        let row = self.client.query_one(
            &format!("SELECT count(*), coalesce(sum(duration::float8), 0), count(*) FILTER (WHERE is_error) FROM {}", self.name),
            &[],
        )?;
        let found: (i64, f64, i64) = (row.get(0), row.get(1), row.get(2));
        let acknowledged = outcome.acknowledged();
        let expected = requests.sums(acknowledged, outcome.tally.checksum);
        if acknowledged == 0 {
            return Err(Error::Other(format!(
                "nothing was acknowledged: {}",
                outcome.labels().join("; ")
            )));
        }
        if outcome.failed() > 0 {
            let most = expected.rows + outcome.failed() * requests.rows() as u64;
            return match (expected.rows..=most).contains(&(found.0 as u64)) {
                true => Ok(()),
                false => Err(Error::Other(format!(
                    "{} events are stored; {} were acknowledged and {most} sent",
                    found.0, expected.rows
                ))),
            };
        }
        if found
            != (
                expected.rows as i64,
                expected.durations,
                expected.errors as i64,
            )
        {
            return Err(Error::Other(format!(
                "(events, sum of durations, errors): {found:?} stored, {expected:?} acknowledged"
            )));
        }
        self.verify_services(requests, acknowledged)
    }

    /// Returns how much of each request is stored, by number. Events before those of all requests
    /// do not count.
    ///
    /// # Errors
    /// PostgreSQL fails.
    pub fn requests_stored(&mut self, requests: &EventRequests) -> Result<BTreeMap<u64, Sums>> {
        let batch = requests.rows() as i64;
        // All times of a request are in one bucket.
        let rows = self.client.query(
            &format!(
                "SELECT (extract(epoch FROM bucket) * 1000000)::int8, events, durations, errors FROM
                 (SELECT date_bin(interval '{batch} microseconds', ts, timestamptz '{START_TEXT}') AS bucket, count(*) AS events,
                         sum(duration::float8) AS durations, count(*) FILTER (WHERE is_error) AS errors
                  FROM {} WHERE ts >= timestamptz '{START_TEXT}' GROUP BY 1) AS by_request",
                self.name
            ),
            &[],
        )?;
        let of_row = |row: &postgres::Row| {
            let number = (row.get::<_, i64>(0) - START) / batch;
            let (events, durations, errors): (i64, f64, i64) = (row.get(1), row.get(2), row.get(3));
            let sums = Sums {
                rows: events as u64,
                durations,
                errors: errors as u64,
            };
            (number as u64, sums)
        };
        Ok(rows.iter().map(of_row).collect())
    }

    /// Checks that each name has as many events as its places in the batches.
    fn verify_services(&mut self, requests: &EventRequests, acknowledged: u64) -> Result<()> {
        let rows = self.client.query(
            &format!(
                "SELECT service, count(*) FROM {} GROUP BY service",
                self.name
            ),
            &[],
        )?;
        let mut found: Vec<(String, i64)> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        found.sort();
        let count = |place: usize| {
            requests.rows() / SERVICES.len() + usize::from(place < requests.rows() % SERVICES.len())
        };
        let mut expected: Vec<(String, i64)> = SERVICES
            .iter()
            .enumerate()
            .map(|(place, name)| {
                (
                    (*name).to_owned(),
                    (count(place) as u64 * acknowledged) as i64,
                )
            })
            .filter(|(_, count)| *count > 0)
            .collect();
        expected.sort();
        match found == expected {
            true => Ok(()),
            false => Err(Error::Other(format!(
                "events by service: {found:?} stored, {expected:?} acknowledged"
            ))),
        }
    }
}
