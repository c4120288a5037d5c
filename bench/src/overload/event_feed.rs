//! Batches of events, stored in a separate table.

use super::feed::{Feed, Stored};
use super::probe::ProbeRequest;
use crate::load::{self, Outcome, Plan, Source};
use crate::scenario::event_batch::{EventRequests, Format};
use crate::scenario::event_table::EventTable;
use crate::scenario::system::System;
use lanes_support::error::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A time before all events of the load, so that the probes' events can be distinguished.
const PROBE: &str =
    r#"[{"ts": "2000-01-01T00:00:00Z", "service": "probe", "duration": 0, "is_error": false}]"#;

/// FlatBuffer batches into logged tables.
pub struct EventFeed {
    batch: usize,
    ack: String,
    /// The table of the overload.
    target: Option<(EventTable, Arc<EventRequests>)>,
}

impl EventFeed {
    /// Creates requests with a number of events, at a level of acknowledgement.
    pub fn new(batch: usize, ack: &str) -> EventFeed {
        EventFeed {
            batch,
            ack: ack.to_owned(),
            target: None,
        }
    }

    fn begin(&self, system: &System) -> Result<(EventTable, Arc<EventRequests>)> {
        let table = EventTable::create(system, true)?;
        let host = system.address().to_string();
        let requests = EventRequests::new(
            Format::FlatBuffer,
            self.batch,
            &host,
            table.name(),
            &self.ack,
        )?;
        Ok((table, Arc::new(requests)))
    }
}

impl Feed for EventFeed {
    fn trial(&mut self, system: &System, plan: &Plan) -> Result<Outcome> {
        let (table, requests) = self.begin(system)?;
        let outcome = load::run(&Plan {
            source: Arc::clone(&requests) as Arc<dyn Source>,
            ..plan.clone()
        })?;
        table.verify(&requests, &outcome)?;
        Ok(outcome)
    }

    fn requests(&mut self, system: &System, _count: u64) -> Result<Arc<dyn Source>> {
        let (table, requests) = self.begin(system)?;
        self.target = Some((table, Arc::clone(&requests)));
        Ok(requests)
    }

    fn probe(&self) -> ProbeRequest {
        let table = self.target.as_ref().map_or("", |(table, _)| table.name());
        ProbeRequest {
            path: format!("/api/v1/events/{table}"),
            headers: vec![
                ("content-type".to_owned(), "application/json".to_owned()),
                ("x-lanes-ack".to_owned(), self.ack.clone()),
            ],
            body: Box::new(|_| PROBE.as_bytes().to_vec()),
        }
    }

    fn stored(&mut self, _system: &System) -> Result<BTreeMap<u64, Stored>> {
        let (table, requests) = self
            .target
            .as_mut()
            .ok_or_else(|| Error::Other("nothing was sent".to_owned()))?;
        let stored = table.requests_stored(requests)?;
        Ok(stored
            .into_iter()
            .map(|(number, found)| {
                let is_whole = found == requests.sums(1, requests.weight(number));
                (
                    number,
                    if is_whole {
                        Stored::Whole
                    } else {
                        Stored::Otherwise
                    },
                )
            })
            .collect())
    }
}
