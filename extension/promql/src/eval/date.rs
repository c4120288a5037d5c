//! Dates of the Gregorian calendar in UTC.

/// A date and time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DateTime {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    /// From 1.
    pub(crate) day: i64,
    /// Days since 1970.
    days: i64,
    /// Seconds of the day.
    seconds: i64,
}

/// The seconds from the first year that Go can count, -292277022399, to 1970.
const SECONDS_BEFORE_1970: u64 = 9_223_372_028_715_321_600;

impl DateTime {
    /// The date and time of a value of a query, which counts seconds since 1970. As in Go, what is
    /// no 64-bit number becomes the least one.
    pub(crate) fn of_value(value: f64) -> DateTime {
        let limit = 2.0_f64.powi(63);
        DateTime::of(match value >= -limit && value < limit {
            true => value as i64,
            false => i64::MIN,
        })
    }

    /// The date and time of seconds since 1970.
    pub(crate) fn of(seconds: i64) -> DateTime {
        // Go counts from a year long ago in 64 bits without sign, and a time before it comes last.
        let counted = (seconds as u64).wrapping_add(SECONDS_BEFORE_1970);
        let seconds = i128::from(counted) - i128::from(SECONDS_BEFORE_1970);
        // A count of days has far fewer than 64 bits.
        let days = seconds.div_euclid(86_400) as i64;
        // Years begin in March, so that the leap day is the last one; eras have 400 years.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let month = if march_month < 10 {
            march_month + 3
        } else {
            march_month - 9
        };
        DateTime {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * march_month + 2) / 5 + 1,
            days,
            seconds: seconds.rem_euclid(86_400) as i64,
        }
    }

    fn is_leap_year(&self) -> bool {
        self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0)
    }

    /// The day of the week, from Sunday as 0.
    pub(crate) fn weekday(&self) -> i64 {
        (self.days + 4).rem_euclid(7)
    }

    /// The day of the year, from 1.
    pub(crate) fn day_of_year(&self) -> i64 {
        const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let leap_day = i64::from(self.month > 2 && self.is_leap_year());
        BEFORE[self.month as usize - 1] + leap_day + self.day
    }

    /// The number of days of the month.
    pub(crate) fn days_in_month(&self) -> i64 {
        match self.month {
            2 if self.is_leap_year() => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    /// The hour of the day.
    pub(crate) fn hour(&self) -> i64 {
        self.seconds / 3600
    }

    /// The minute of the hour.
    pub(crate) fn minute(&self) -> i64 {
        self.seconds / 60 % 60
    }
}

/// The function of a date that PromQL has under a name.
pub(crate) fn function(name: &str) -> Option<fn(&DateTime) -> i64> {
    Some(match name {
        "days_in_month" => DateTime::days_in_month,
        "day_of_month" => |date| date.day,
        "day_of_week" => DateTime::weekday,
        "day_of_year" => DateTime::day_of_year,
        "hour" => DateTime::hour,
        "minute" => DateTime::minute,
        "month" => |date| date.month,
        "year" => |date| date.year,
        _ => return None,
    })
}

/// Milliseconds since 1970 as `2006-01-02T15:04:05Z`.
pub(crate) fn rfc3339(millis: i64) -> String {
    let date = DateTime::of(millis / 1000);
    let (year, month, day) = (date.year, date.month, date.day);
    let (hour, minute, second) = (date.hour(), date.minute(), date.seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::{DateTime, rfc3339};

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_709_210_096_000), "2024-02-29T12:34:56Z");
        let leap = DateTime::of(1_709_210_096);
        assert_eq!(
            (leap.weekday(), leap.day_of_year(), leap.days_in_month()),
            (4, 60, 29)
        );
        let before = DateTime::of(-1);
        assert_eq!(
            (before.year, before.month, before.day, before.hour()),
            (1969, 12, 31, 23)
        );
    }

    #[test]
    fn values_that_are_no_time_become_the_date_that_go_makes_of_them() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 9.3e18, -9.3e18] {
            let date = DateTime::of_value(value);
            let day = (date.year, date.month, date.day, date.weekday(), date.hour());
            assert_eq!(day, (292_277_026_596, 12, 4, 0, 15), "{value}");
        }
        assert_eq!(DateTime::of_value(1e18).year, 31_688_740_476);
        assert_eq!(DateTime::of_value(-1e18).year, -31_688_736_537);
        assert_eq!(
            DateTime::of_value(-9.223_372_028_715_32e18).year,
            -292_277_022_399
        );
        assert_eq!(DateTime::of_value(-0.9), DateTime::of(0));
    }
}
