//! The limits of a user, and the defaults of all.

use std::ops::Index;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::bucket::Rate;

/// How long a user that sent nothing may make up for it. Scrapes come once a minute or more often,
/// each at once.
const BURST: Duration = Duration::from_secs(60);

/// The greatest number of series or names that is counted.
const COUNTED_MAX: u64 = 100_000_000;

/// The greatest rate of samples.
const SAMPLES_MAX: u64 = 1_000_000_000;

/// A limit, which is also the reason for what is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Samples and events a second, in the mean of a minute.
    Samples,
    /// Series of one day.
    Series,
    /// Series that are registered in a minute.
    NewSeries,
    /// Names of metrics.
    MetricNames,
}

/// All limits in the order of their declaration: the key in files, settings and metrics, and the
/// greatest value.
const TABLE: [(Limit, &str, u64); 4] = [
    (Limit::Samples, "samples_per_second", SAMPLES_MAX),
    (Limit::Series, "series_max", COUNTED_MAX),
    (Limit::NewSeries, "new_series_per_minute", COUNTED_MAX),
    (Limit::MetricNames, "metric_names_max", COUNTED_MAX),
];

/// The keys, for errors.
const NAMES: [&str; TABLE.len()] = [TABLE[0].1, TABLE[1].1, TABLE[2].1, TABLE[3].1];

impl Limit {
    /// The key.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The greatest value.
    pub fn most(self) -> u64 {
        TABLE[self as usize].2
    }

    /// The reason for a series that is refused.
    pub fn reason(self, user: &str, limits: &Limits) -> String {
        let (value, name) = (limits[self], self.name());
        match self {
            Self::Samples => format!(
                "user {user:?} may write {value} samples a second in the mean of a minute ({name}); send less, \
                    or ask for a higher limit"
            ),
            Self::Series => format!(
                "user {user:?} has written {value} series today, and may add no more before midnight UTC ({name})"
            ),
            Self::NewSeries => format!("user {user:?} may add {value} series a minute ({name})"),
            Self::MetricNames => format!(
                "user {user:?} has written {value} metric names, and may add no more ({name})"
            ),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = String::deserialize(deserializer)?;
        let mut table = TABLE.iter();
        let found = table.find(|(_, name, _)| *name == key);
        let limit = found.map(|(limit, ..)| *limit);
        limit.ok_or_else(|| D::Error::unknown_field(&key, &NAMES))
    }
}

/// The limits of a user, by [`Limit`]. 0 means no limit.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Limits([u64; TABLE.len()]);

impl Index<Limit> for Limits {
    type Output = u64;

    fn index(&self, limit: Limit) -> &u64 {
        &self.0[limit as usize]
    }
}

impl Limits {
    /// Returns limits with the value of each.
    ///
    /// # Errors
    /// Returns the first error of a value.
    pub fn of<E>(mut value: impl FnMut(Limit) -> Result<u64, E>) -> Result<Self, E> {
        let mut limits = Self::default();
        for (limit, ..) in TABLE {
            limits.0[limit as usize] = value(limit)?;
        }
        Ok(limits)
    }

    /// Whether there is any limit.
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// Whether series have a limit.
    pub fn has_series(&self) -> bool {
        [Limit::Series, Limit::NewSeries, Limit::MetricNames]
            .iter()
            .any(|limit| self[*limit] > 0)
    }

    /// The rate of samples; `None` without a limit.
    pub fn samples(&self) -> Option<Rate> {
        let per_second = self[Limit::Samples] as f64;
        (per_second > 0.0).then_some(Rate {
            per_second,
            capacity: per_second * BURST.as_secs_f64(),
        })
    }

    /// The rate of new series; `None` without a limit.
    pub fn new_series(&self) -> Option<Rate> {
        let capacity = self[Limit::NewSeries] as f64;
        (capacity > 0.0).then_some(Rate {
            per_second: capacity / 60.0,
            capacity,
        })
    }
}

/// The limits that the file of users gives one of them. What is missing is the default.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct OwnLimits([Option<u64>; TABLE.len()]);

impl OwnLimits {
    /// Returns limits with these values.
    ///
    /// # Errors
    /// Returns a limit whose value is too large.
    pub fn of(values: impl IntoIterator<Item = (Limit, Option<u64>)>) -> Result<Self, Limit> {
        let mut limits = Self::default();
        for (limit, value) in values {
            if value.is_some_and(|value| value > limit.most()) {
                return Err(limit);
            }
            limits.0[limit as usize] = value;
        }
        Ok(limits)
    }

    /// Returns the limits with the defaults for what is missing.
    pub fn or(&self, defaults: Limits) -> Limits {
        let values = self.0.iter().zip(defaults.0);
        let mut limits = defaults;
        for (limit, (own, default)) in limits.0.iter_mut().zip(values) {
            *limit = own.unwrap_or(default);
        }
        limits
    }
}

#[cfg(test)]
impl Limits {
    /// The limits with another value of one.
    pub fn with(mut self, limit: Limit, value: u64) -> Self {
        self.0[limit as usize] = value;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_declaration() {
        for (place, (limit, ..)) in TABLE.into_iter().enumerate() {
            assert_eq!(limit as usize, place);
        }
    }

    #[test]
    fn a_user_has_the_defaults_for_what_is_missing() {
        let defaults = Limits([1, 2, 3, 4]);
        assert_eq!(OwnLimits::default().or(defaults), defaults);
        let own = OwnLimits::of([(Limit::Samples, Some(0)), (Limit::Series, Some(9))]);
        let expected = Limits([0, 9, 3, 4]);
        assert_eq!(own.unwrap().or(defaults), expected);
        assert!(!Limits::default().is_any() && expected.is_any());
        assert_eq!(expected.samples(), None);
    }
}
