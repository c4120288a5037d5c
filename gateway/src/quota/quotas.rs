//! The limits and the use of all users.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::bucket::Bucket;
use super::holdings::{Holdings, Moment};
use super::limits::{Limit, Limits, OwnLimits};
use super::metrics::QuotaMetrics;
use crate::clock;
use crate::http::Refusal;
use crate::series::{LabelSet, SeriesId};

/// The number of users whose use is kept: more than a file of users can have. Beyond it, as after
/// many changes of the file, that of all is dropped.
const USERS_MAX: usize = 50_000;

const DAY_MS: i64 = 86_400_000;

/// The use of one user. It stays when the file of users changes.
#[derive(Default)]
struct Use {
    samples: Mutex<Bucket>,
    holdings: Mutex<Holdings>,
}

/// The use of all users, shared by all workers.
pub struct Quotas {
    defaults: Limits,
    metrics: Arc<QuotaMetrics>,
    users: Mutex<HashMap<String, Arc<Use>>>,
}

/// The limits of the user of a request, and what it has used of them.
#[derive(Clone)]
pub struct Quota {
    user: Arc<str>,
    limits: Limits,
    used: Arc<Use>,
    metrics: Arc<QuotaMetrics>,
}

impl fmt::Debug for Quota {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Quota")
            .field("user", &self.user)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Quotas {
    /// Returns quotas with the limits of users that the file gives none.
    pub fn new(defaults: Limits, metrics: Arc<QuotaMetrics>) -> Self {
        Self {
            defaults,
            metrics,
            users: Mutex::default(),
        }
    }

    /// Returns the quota of a user, by its name and its own limits; `None` if it has no limits.
    pub fn of(&self, user: &str, own: &OwnLimits) -> Option<Quota> {
        let limits = own.or(self.defaults);
        if !limits.is_any() {
            return None;
        }
        let mut users = self.users.lock();
        if users.len() >= USERS_MAX && !users.contains_key(user) {
            users.clear();
            self.metrics.series.reset();
            self.metrics.metric_names.reset();
        }
        let used = match users.get(user) {
            Some(used) => Arc::clone(used),
            None => Arc::clone(users.entry(user.to_owned()).or_default()),
        };
        Some(Quota {
            user: user.into(),
            limits,
            used,
            metrics: Arc::clone(&self.metrics),
        })
    }

    /// Drops the gauges of users that are not among these any more, or have lost the limit. A user
    /// is its name and its own limits.
    pub fn keep_gauges_of<'a>(&self, users: impl Iterator<Item = (&'a str, &'a OwnLimits)>) {
        let limits: HashMap<&str, Limits> = users
            .map(|(name, own)| (name, own.or(self.defaults)))
            .collect();
        for name in self.users.lock().keys() {
            let limits = limits.get(name.as_str()).copied().unwrap_or_default();
            for (limit, gauges) in [
                (Limit::Series, &self.metrics.series),
                (Limit::MetricNames, &self.metrics.metric_names),
            ] {
                if limits[limit] == 0 {
                    // It is an error if there is no such gauge.
                    let _ = gauges.remove_label_values(&[name]);
                }
            }
        }
    }
}

impl Quota {
    /// Whether series have a limit.
    pub fn has_series(&self) -> bool {
        self.limits.has_series()
    }

    /// Checks that the user may send now, before its request is read.
    ///
    /// # Errors
    /// Returns a 429 if it may not.
    pub fn check(&self) -> Result<(), Refusal> {
        let Some(rate) = self.limits.samples() else {
            return Ok(());
        };
        match self.used.samples.lock().lacks(rate, clock::now()) {
            None => Ok(()),
            Some(wait) => Err(self.too_many(wait)),
        }
    }

    /// Counts the samples or events of a request.
    ///
    /// # Errors
    /// Returns a 429 if the user has to wait. They are not counted in this case.
    pub fn take(&self, samples: usize) -> Result<(), Refusal> {
        let Some(rate) = self.limits.samples() else {
            return Ok(());
        };
        let taken = self.used.samples.lock().take(samples, rate, clock::now());
        taken.map_err(|wait| {
            self.count_samples(Limit::Samples, samples);
            self.too_many(wait)
        })
    }

    fn too_many(&self, wait: std::time::Duration) -> Refusal {
        Refusal::TooMany {
            reason: Limit::Samples.reason(&self.user, &self.limits),
            // Rounded up: a sender that waits for so long finds room.
            seconds: wait.as_secs_f64().ceil().max(1.0) as u64,
        }
    }

    /// Adds registered series of which samples are sent.
    pub fn note_series(&self, ids: impl Iterator<Item = SeriesId>) {
        if self.limits[Limit::Series] == 0 {
            return;
        }
        let mut holdings = self.used.holdings.lock();
        holdings.note_series(ids, &self.limits, moment());
        self.publish(&holdings);
    }

    /// Admits those of `sets` that have no id. Returns the limits that others exceed, by index.
    pub fn admit(&self, sets: &[&LabelSet], ids: &[SeriesId]) -> Vec<(usize, Limit)> {
        let (mut refused, mut admitted) = (Vec::new(), 0);
        let moment = moment();
        let mut holdings = self.used.holdings.lock();
        for (set, _) in sets.iter().zip(ids).filter(|(_, id)| **id != 0) {
            holdings.note_name(&set.metric, &self.limits);
        }
        let new = sets.iter().zip(ids).enumerate();
        for (place, (set, _)) in new.filter(|(_, (_, id))| **id == 0) {
            match holdings.admit(&set.metric, admitted, &self.limits, moment) {
                Ok(()) => admitted += 1,
                Err(limit) => refused.push((place, limit)),
            }
        }
        self.publish(&holdings);
        refused
    }

    /// Counts a series that is refused, with its samples. Returns the reason.
    pub fn refuse(&self, limit: Limit, samples: usize) -> String {
        let labels = [&*self.user, limit.name()];
        self.metrics.series_refused.with_label_values(&labels).inc();
        self.count_samples(limit, samples);
        limit.reason(&self.user, &self.limits)
    }

    fn count_samples(&self, limit: Limit, samples: usize) {
        let labels = [&*self.user, limit.name()];
        let refused = self.metrics.samples_refused.with_label_values(&labels);
        refused.inc_by(samples as u64);
    }

    fn publish(&self, holdings: &Holdings) {
        let (series, names) = holdings.counts();
        let user = [&*self.user];
        if self.limits[Limit::Series] > 0 {
            self.metrics
                .series
                .with_label_values(&user)
                .set(series as i64);
        }
        if self.limits[Limit::MetricNames] > 0 {
            let gauge = self.metrics.metric_names.with_label_values(&user);
            gauge.set(names as i64);
        }
    }
}

fn moment() -> Moment {
    Moment {
        now: clock::now(),
        day: clock::unix_ms().div_euclid(DAY_MS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Families;

    fn series(max: u64) -> OwnLimits {
        OwnLimits::of([(Limit::Series, Some(max))]).unwrap()
    }

    #[test]
    fn gauges_of_users_that_are_gone_are_dropped() {
        let families = Families::default();
        let metrics = Arc::new(QuotaMetrics::new(&families));
        let quotas = Quotas::new(Limits::default(), metrics);
        for name in ["gone", "kept", "without"] {
            let quota = quotas.of(name, &series(9)).unwrap();
            quota.note_series([1, 2].into_iter());
        }
        let users = [
            ("kept", series(5)),
            ("without", series(0)),
            ("new", series(1)),
        ];
        quotas.keep_gauges_of(users.iter().map(|(name, own)| (*name, own)));
        let text = families.text();
        let lines = text.lines().filter(|line| line.contains("user_series{"));
        let lines: Vec<&str> = lines.collect();
        assert_eq!(lines, ["lanes_gateway_user_series{user=\"kept\"} 2"]);
    }
}
