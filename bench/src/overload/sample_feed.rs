//! Remote write from a fleet whose series are known, and few enough for the gateway's cache. Each
//! request contains the scrape of one target at a distinct time.

use super::feed::{Feed, Stored};
use super::probe::ProbeRequest;
use crate::fleet::bodies::{Body, SampleTotals};
use crate::fleet::shape::TargetShape;
use crate::load::{self, Outcome, Plan, Source};
use crate::peers::http::now_milliseconds;
use crate::remote_write::phase::ATTEMPTS_TO_KNOW;
use crate::remote_write::requests::Requests;
use crate::remote_write::sender::{Fleet, Sender};
use crate::scenario::system::System;
use lanes_support::error::{Error, Result};
use lanes_support::remote_write::{Series, body};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The number of requests of a trial: enough to be measured, few enough to be created quickly.
const TRIAL_REQUESTS: usize = 3000;
/// The longest time of a trial. A trial normally ends with its list of requests.
const TRIAL_TIME_MAX: Duration = Duration::from_secs(120);
/// 2000-01-01, before all samples of the load, so that the probes' samples can be distinguished.
const PROBE_START: i64 = 946_684_800_000;

/// Remote write requests of a fleet.
pub struct SampleFeed<'a> {
    fleet: &'a Fleet,
    targets: usize,
    ack: String,
    sender: Sender<'a>,
    is_known: bool,
    /// The time in milliseconds since 1970 and the content of each of the overload's requests.
    sent: Vec<(i64, SampleTotals)>,
}

impl<'a> SampleFeed<'a> {
    /// Creates the requests of a number of targets at a level of acknowledgement.
    ///
    /// # Errors
    /// Two requests would have the same time.
    pub fn new(
        shape: &'a TargetShape,
        fleet: &'a Fleet,
        targets: usize,
        ack: &str,
    ) -> Result<SampleFeed<'a>> {
        if fleet.targets_per_request != 1 || targets as f64 > fleet.interval_seconds * 1000.0 {
            return Err(Error::Other(
                "each request has one target, and a scrape cannot have more targets than milliseconds"
                    .to_owned(),
            ));
        }
        Ok(SampleFeed {
            fleet,
            targets,
            ack: ack.to_owned(),
            sender: Sender::new(shape, fleet, targets, now_milliseconds()),
            is_known: false,
            sent: Vec::new(),
        })
    }

    fn headers(&self) -> Vec<(String, String)> {
        vec![("x-lanes-ack".to_owned(), self.ack.clone())]
    }

    fn source(&self, system: &System, bodies: Vec<Body>) -> Arc<dyn Source> {
        let port = system.address().port();
        Arc::new(Requests::at(port, &self.headers(), Arc::new(bodies)))
    }

    /// Sends one scrape until all of it is acknowledged, so that its series are known.
    fn make_known(&mut self, system: &System, plan: &Plan) -> Result<()> {
        if self.is_known {
            return Ok(());
        }
        let bodies = self.sender.scrape(self.targets)?;
        let outcome = load::run(&Plan {
            source: self.source(system, bodies),
            warm_up: Duration::ZERO,
            window: TRIAL_TIME_MAX,
            attempts_again: ATTEMPTS_TO_KNOW,
            connections: 16,
            ..plan.clone()
        })?;
        match outcome.failed() {
            0 => {
                self.is_known = true;
                Ok(())
            }
            _ => Err(Error::Other(format!(
                "the series cannot be registered: {}",
                outcome.labels().join("; ")
            ))),
        }
    }
}

impl Feed for SampleFeed<'_> {
    fn trial(&mut self, system: &System, plan: &Plan) -> Result<Outcome> {
        self.make_known(system, plan)?;
        let since = self.sender.time();
        let scrapes = TRIAL_REQUESTS.div_ceil(self.targets);
        let bodies = self.sender.scrapes(self.targets, scrapes)?;
        let mut sent = SampleTotals::default();
        bodies.iter().for_each(|body| sent.add(body.holds));
        let outcome = load::run(&Plan {
            source: self.source(system, bodies),
            warm_up: Duration::ZERO,
            window: TRIAL_TIME_MAX,
            ..plan.clone()
        })?;
        let row = system.connect()?.query_one(
            "SELECT count(*), coalesce(sum(value), 0) FROM lanes.samples WHERE ts >= to_timestamp($1)",
            &[&(since as f64 / 1000.0)],
        )?;
        let held = SampleTotals {
            samples: row.get::<_, i64>(0) as u64,
            sum: row.get(1),
        };
        match outcome.failed() > 0 || held.agrees(&sent) {
            true => Ok(outcome),
            false => Err(Error::Other(format!(
                "acknowledged {sent:?}, but {held:?} is stored"
            ))),
        }
    }

    fn requests(&mut self, system: &System, count: u64) -> Result<Arc<dyn Source>> {
        let interval = (self.fleet.interval_seconds * 1000.0) as i64;
        let targets = self.targets as i64;
        let mut bodies = Vec::new();
        self.sent.clear();
        while (bodies.len() as u64) < count {
            let start = self.sender.time();
            for (place, body) in (0..).zip(self.sender.scrape(self.targets)?) {
                self.sent
                    .push((start + interval * place / targets, body.holds));
                bodies.push(body);
            }
        }
        Ok(self.source(system, bodies))
    }

    fn probe(&self) -> ProbeRequest {
        let mut headers = self.headers();
        for (name, value) in [
            ("content-type", "application/x-protobuf"),
            ("content-encoding", "snappy"),
            ("x-prometheus-remote-write-version", "0.1.0"),
        ] {
            headers.push((name.to_owned(), value.to_owned()));
        }
        ProbeRequest {
            path: "/api/v1/write".to_owned(),
            headers,
            body: Box::new(|number| {
                let sample = (PROBE_START + number as i64, number as f64);
                body(&[Series::new("overload_probe", &[], vec![sample])])
            }),
        }
    }

    fn stored(&mut self, system: &System) -> Result<BTreeMap<u64, Stored>> {
        let Some((first, _)) = self.sent.first() else {
            return Err(Error::Other("nothing was sent".to_owned()));
        };
        let rows = system.connect()?.query(
            "SELECT (extract(epoch FROM ts) * 1000)::int8, samples, sum FROM
             (SELECT ts, count(*) AS samples, sum(value) AS sum FROM lanes.samples WHERE ts >= to_timestamp($1) GROUP BY ts) AS by_time",
            &[&(*first as f64 / 1000.0)],
        )?;
        let numbers: BTreeMap<i64, u64> = (0..)
            .zip(&self.sent)
            .map(|(number, (time, _))| (*time, number))
            .collect();
        let mut stored = BTreeMap::new();
        for row in rows {
            let time: i64 = row.get(0);
            let found = SampleTotals {
                samples: row.get::<_, i64>(1) as u64,
                sum: row.get(2),
            };
            let number = *numbers.get(&time).ok_or_else(|| {
                Error::Other(format!(
                    "samples of time {time} are stored but were not sent"
                ))
            })?;
            let is_whole = found.agrees(&self.sent[number as usize].1);
            stored.insert(
                number,
                if is_whole {
                    Stored::Whole
                } else {
                    Stored::Otherwise
                },
            );
        }
        Ok(stored)
    }
}
