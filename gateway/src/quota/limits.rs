//! The limits of a user, and the defaults of all.

use std::time::Duration;

use super::bucket::Rate;

/// How long a user that sent nothing may make up for it. Scrapes come once a minute or more often,
/// each at once.
const BURST: Duration = Duration::from_secs(60);

/// The greatest number of series or names that is counted.
pub const COUNTED_MAX: u64 = 100_000_000;

/// The greatest rate of samples.
pub const SAMPLES_MAX: u64 = 1_000_000_000;

/// The limits of a user. 0 means no limit.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Samples and events a second, in the mean of a minute.
    pub samples_per_second: u64,
    /// Series of one day.
    pub series_max: u64,
    /// Series that are registered in a minute.
    pub new_series_per_minute: u64,
    /// Names of metrics.
    pub metric_names_max: u64,
}

impl Limits {
    /// Whether there is any limit.
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// Whether series have a limit.
    pub fn has_series(&self) -> bool {
        self.series_max + self.new_series_per_minute + self.metric_names_max > 0
    }

    /// The rate of samples; `None` without a limit.
    pub fn samples(&self) -> Option<Rate> {
        let per_second = self.samples_per_second as f64;
        (per_second > 0.0).then_some(Rate {
            per_second,
            capacity: per_second * BURST.as_secs_f64(),
        })
    }

    /// The rate of new series; `None` without a limit.
    pub fn new_series(&self) -> Option<Rate> {
        let capacity = self.new_series_per_minute as f64;
        (capacity > 0.0).then_some(Rate {
            per_second: capacity / 60.0,
            capacity,
        })
    }
}

/// The limits that the file of users gives one of them. What is missing is the default.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct OwnLimits {
    /// See [`Limits::samples_per_second`].
    pub samples_per_second: Option<u64>,
    /// See [`Limits::series_max`].
    pub series_max: Option<u64>,
    /// See [`Limits::new_series_per_minute`].
    pub new_series_per_minute: Option<u64>,
    /// See [`Limits::metric_names_max`].
    pub metric_names_max: Option<u64>,
}

impl OwnLimits {
    /// Returns the limits with the defaults for what is missing.
    pub fn or(&self, defaults: Limits) -> Limits {
        Limits {
            samples_per_second: self
                .samples_per_second
                .unwrap_or(defaults.samples_per_second),
            series_max: self.series_max.unwrap_or(defaults.series_max),
            new_series_per_minute: self
                .new_series_per_minute
                .unwrap_or(defaults.new_series_per_minute),
            metric_names_max: self.metric_names_max.unwrap_or(defaults.metric_names_max),
        }
    }

    /// Checks each value against the greatest.
    ///
    /// # Errors
    /// Returns the key of a value that is too large, and the greatest.
    pub fn check(&self) -> Result<(), (&'static str, u64)> {
        for (key, value, most) in [
            ("samples_per_second", self.samples_per_second, SAMPLES_MAX),
            ("series_max", self.series_max, COUNTED_MAX),
            (
                "new_series_per_minute",
                self.new_series_per_minute,
                COUNTED_MAX,
            ),
            ("metric_names_max", self.metric_names_max, COUNTED_MAX),
        ] {
            if value.is_some_and(|value| value > most) {
                return Err((key, most));
            }
        }
        Ok(())
    }
}

/// Why something is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::samples_per_second`].
    Samples,
    /// [`Limits::series_max`].
    Series,
    /// [`Limits::new_series_per_minute`].
    NewSeries,
    /// [`Limits::metric_names_max`].
    MetricNames,
}

impl Limit {
    /// The name in metrics, which is also the key of the setting.
    pub fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples_per_second",
            Self::Series => "series_max",
            Self::NewSeries => "new_series_per_minute",
            Self::MetricNames => "metric_names_max",
        }
    }

    /// The reason for a series that is refused.
    pub fn reason(self, user: &str, limits: &Limits) -> String {
        match self {
            Self::Samples => format!(
                "user {user:?} may write {} samples a second in the mean of a minute (samples_per_second); send less, \
                    or ask for a higher limit",
                limits.samples_per_second
            ),
            Self::Series => format!(
                "user {user:?} has written {} series today, and may add no more before midnight UTC (series_max)",
                limits.series_max
            ),
            Self::NewSeries => format!(
                "user {user:?} may add {} series a minute (new_series_per_minute)",
                limits.new_series_per_minute
            ),
            Self::MetricNames => format!(
                "user {user:?} has written {} metric names, and may add no more (metric_names_max)",
                limits.metric_names_max
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_defaults_for_what_is_missing() {
        let defaults = Limits {
            samples_per_second: 1,
            series_max: 2,
            new_series_per_minute: 3,
            metric_names_max: 4,
        };
        assert_eq!(OwnLimits::default().or(defaults), defaults);
        let own = OwnLimits {
            samples_per_second: Some(0),
            series_max: Some(9),
            ..OwnLimits::default()
        };
        let expected = Limits {
            samples_per_second: 0,
            series_max: 9,
            ..defaults
        };
        assert_eq!(own.or(defaults), expected);
        assert!(!Limits::default().is_any() && expected.is_any());
        assert_eq!(expected.samples(), None);
    }
}
