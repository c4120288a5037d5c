//! Time zones, and when their offsets from UTC change.

use pgrx::pg_sys;

use super::functions::{Place, process, values};
use super::tree::view::views;

views! {
    /// A time zone.
    Zone of pg_tz {} {} {}
}

/// A time zone. PostgreSQL keeps it as long as the process.
pub type TimeZone = Zone<'static>;

/// The offset of a zone at a time, and until when it holds.
#[derive(Clone, Copy, Debug)]
pub struct Offset {
    /// Seconds that the local time is ahead of UTC.
    pub seconds: i64,
    /// The time of the next change of the offset, in seconds since 1970; `None` if it never changes.
    pub changes_at: Option<i64>,
}

impl TimeZone {
    /// The zone of a name, if the name can mean nothing else. A name without a slash may be an abbreviation.
    pub fn named(name: &[u8]) -> Option<TimeZone> {
        if !name.contains(&b'/') && name != b"UTC" {
            return None;
        }
        let name = std::ffi::CString::new(name).ok()?;
        if name.as_bytes().len() >= pg_sys::TZ_STRLEN_MAX as usize {
            return None;
        }
        process::pg_tzset(&name)
    }

    /// The session's zone.
    pub fn of_session() -> Option<TimeZone> {
        process::session_timezone()
    }

    /// The offset at a time, in seconds since 1970; `None` if the zone has no data for it.
    pub fn offset_at(self, second: i64) -> Option<Offset> {
        let (mut before, mut after, mut boundary) = (0, 0, 0);
        let (mut is_summer, mut is_summer_after) = (0, 0);
        let mut second = second;
        let found = process::pg_next_dst_boundary(
            Place(&mut second),
            Place(&mut before),
            Place(&mut is_summer),
            Place(&mut boundary),
            Place(&mut after),
            Place(&mut is_summer_after),
            self,
        );
        let changes_at = match found {
            0 => None,
            1 => Some(boundary),
            _ => return None,
        };
        Some(Offset {
            seconds: before,
            changes_at,
        })
    }
}

/// The name of a time zone, as an argument that SQL declares as text.
#[derive(Clone, Copy)]
pub struct ZoneName(pub(super) pg_sys::Datum);

/// The local time of a zone, which is a text, at an instant, both in microseconds: `timezone(text, timestamptz)`. It is
/// an error if the zone does not exist.
pub fn local(zone: pg_sys::Datum, instant: i64) -> i64 {
    values::timestamptz_zone(ZoneName(zone), instant)
}
