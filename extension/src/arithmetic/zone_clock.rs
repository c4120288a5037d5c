//! A time zone's clock that caches offsets. PostgreSQL needs half a microsecond to compute one, and
//! each bucket needs two or three.
//!
//! The cache holds the offsets at the starts of days in UTC. If two successive days start with one
//! offset, it is the offset of the whole day between, because clocks are assumed not to change
//! twice within two days. Otherwise PostgreSQL computes the offset.

use super::bucket::DAY_MICROS;

/// The longest zone name that is cached, in bytes.
const NAME_BYTES_MAX: usize = 63;
/// The number of days that are cached. A day's place is its number modulo this.
const DAYS: usize = 512;
/// The largest distance in days from 2000-01-01 at which offsets are cached, far from the ends of PostgreSQL's
/// timestamps.
const DAY_MAX: i64 = 700_000;
const SECOND_MICROS: i64 = 1_000_000;

/// The offsets of one zone.
#[derive(Clone, Copy)]
pub struct ZoneClock {
    name_bytes: u8,
    name: [u8; NAME_BYTES_MAX],
    days: [DayStart; DAYS],
}

#[derive(Clone, Copy)]
struct DayStart {
    is_known: bool,
    day: i32,
    offset_seconds: i32,
}

const NOTHING: DayStart = DayStart {
    is_known: false,
    day: 0,
    offset_seconds: 0,
};

impl Default for ZoneClock {
    fn default() -> ZoneClock {
        ZoneClock {
            name_bytes: 0,
            name: [0; NAME_BYTES_MAX],
            days: [NOTHING; DAYS],
        }
    }
}

impl ZoneClock {
    /// Sets the zone, and clears the cache if it is another one. Returns whether the zone can be cached.
    pub fn set_zone(&mut self, name: &[u8]) -> bool {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return false;
        }
        if &self.name[..self.name_bytes as usize] != name {
            self.name[..name.len()].copy_from_slice(name);
            self.name_bytes = name.len() as u8;
            self.days = [NOTHING; DAYS];
        }
        true
    }

    /// The local time at an instant, both in microseconds. `ask` computes it where the cache cannot.
    #[inline]
    pub fn local(&mut self, instant: i64, ask: impl Fn(i64) -> i64) -> i64 {
        let day = instant.div_euclid(DAY_MICROS);
        if day.abs() < DAY_MAX {
            let offset = self.offset_seconds(day, &ask);
            if offset == self.offset_seconds(day + 1, &ask) {
                return instant + offset as i64 * SECOND_MICROS;
            }
        }
        ask(instant)
    }

    #[inline]
    fn offset_seconds(&mut self, day: i64, ask: impl Fn(i64) -> i64) -> i32 {
        let at = &mut self.days[day.rem_euclid(DAYS as i64) as usize];
        if !at.is_known || at.day as i64 != day {
            let start = day * DAY_MICROS;
            *at = DayStart {
                is_known: true,
                day: day as i32,
                offset_seconds: ((ask(start) - start) / SECOND_MICROS) as i32,
            };
        }
        at.offset_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_day_without_change_is_computed_once() {
        let mut clock = ZoneClock::default();
        assert!(clock.set_zone(b"Here"));
        assert_eq!(clock.local(5, |instant| instant + 3_000_000), 3_000_005);
        assert_eq!(clock.local(7, |_| unreachable!("known")), 3_000_007);
        assert!(clock.set_zone(b"There"));
        assert_eq!(clock.local(7, |instant| instant - 1_000_000), -999_993);
        assert!(!clock.set_zone(&[b'x'; NAME_BYTES_MAX + 1]) && !clock.set_zone(b""));
    }

    proptest! {
        /// The clock shows the zone's time, whatever is cached.
        #[test]
        fn the_clock_shows_the_zones_time(
            change in -9 * DAY_MICROS..9 * DAY_MICROS,
            before in -50_000i64..50_000,
            after in -50_000i64..50_000,
            instants in prop::collection::vec((-12i64..12, 0..DAY_MICROS, 0..3i64), 1..40),
        ) {
            let zone = |instant: i64| instant + SECOND_MICROS * if instant < change { before } else { after };
            let mut clock = ZoneClock::default();
            for (day, micros, turns) in instants {
                let instant = (day + turns * DAYS as i64) * DAY_MICROS + micros;
                prop_assert_eq!(clock.local(instant, zone), zone(instant));
            }
        }
    }
}
