//! Time zones, and when their offsets from UTC change.

use pgrx::pg_sys;

/// A time zone. PostgreSQL keeps it as long as the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeZone(std::ptr::NonNull<pg_sys::pg_tz>);

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
        // SAFETY: a name of permitted length; the function returns null for an unknown zone.
        let zone = unsafe { pg_sys::pg_tzset(name.as_ptr()) };
        std::ptr::NonNull::new(zone).map(TimeZone)
    }

    /// The session's zone.
    pub fn of_session() -> Option<TimeZone> {
        // SAFETY: a read of a setting.
        std::ptr::NonNull::new(unsafe { pg_sys::session_timezone }).map(TimeZone)
    }

    /// The offset at a time, in seconds since 1970; `None` if the zone has no data for it.
    pub fn offset_at(self, second: i64) -> Option<Offset> {
        let (mut before, mut after, mut boundary) = (0, 0, 0);
        let (mut is_summer, mut is_summer_after) = (0, 0);
        // SAFETY: a live zone, and variables that the function writes.
        let found = unsafe {
            pg_sys::pg_next_dst_boundary(
                &raw const second,
                &raw mut before,
                &raw mut is_summer,
                &raw mut boundary,
                &raw mut after,
                &raw mut is_summer_after,
                self.0.as_ptr(),
            )
        };
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

/// The local time of a zone at an instant, both in microseconds: `timezone(text, timestamptz)`. It is an error if the
/// zone does not exist.
pub fn local(zone: pg_sys::Datum, instant: i64) -> i64 {
    // SAFETY: the function takes a text and a timestamptz, and is strict. Callers pass an argument that SQL declares as
    // text.
    let local = unsafe {
        pgrx::direct_function_call::<i64>(
            pg_sys::timestamptz_zone,
            &[Some(zone), Some(pg_sys::Datum::from(instant))],
        )
    };
    local.unwrap_or(instant)
}
