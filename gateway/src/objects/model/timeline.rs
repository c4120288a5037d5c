//! The timelines of a database, and the log entries that they contain.
//!
//! A failover to a standby that lagged behind, or a restore to an earlier point in time, starts a
//! new timeline at some position of the WAL. What was committed past that position on the previous
//! timeline is no longer in the database, although its row numbers are assigned again. Each entry
//! therefore contains the timeline on which it was committed, and a WAL position at or past its
//! commit.

use super::record::Head;

/// The timelines that led to the current state of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    /// The timeline that the database writes now.
    pub current: u32,
    /// Earlier timelines, and the WAL position at which each was left, in bytes.
    pub left: Vec<(u32, u64)>,
}

impl History {
    /// Parses a timeline's history file in PostgreSQL's format. The first timeline has none.
    pub fn read(current: u32, file: Option<&str>) -> Self {
        let left = |line: &str| {
            let mut fields = line.split_whitespace();
            let timeline = fields.next()?.parse().ok()?;
            let (high, low) = fields.next()?.split_once('/')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            Some((timeline, number(high)? << 32 | number(low)?))
        };
        Self {
            current,
            left: file.unwrap_or_default().lines().filter_map(left).collect(),
        }
    }

    /// Whether an entry's rows were committed in this history. An entry without a timeline is
    /// assumed to have been.
    pub fn holds(&self, head: &Head) -> bool {
        head.timeline == 0 || self.has(head.timeline, head.wal_place)
    }

    /// Whether a position of a timeline's WAL is in this history.
    pub fn has(&self, timeline: u32, wal_place: u64) -> bool {
        let mut left = self.left.iter().filter(|left| left.0 == timeline);
        timeline == self.current || left.any(|(_, place)| wal_place <= *place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(timeline: u32, wal_place: u64) -> Head {
        Head {
            target: 7,
            storage: 1,
            runs: vec![(0, 1)],
            bytes: 1,
            logged_ms: 0,
            columns: Vec::new(),
            timeline,
            wal_place,
        }
    }

    #[test]
    fn commits_past_a_switch_are_not_in_the_history() {
        let file =
            "1\t0/3000\tno recovery target specified\n\n# a comment\n3\t2/A0\tbefore 2026-01-01\n";
        let history = History::read(5, Some(file));
        assert_eq!(history.left, [(1, 0x3000), (3, 0x2_0000_00a0)]);
        for (timeline, place, is_held) in [
            (0, 9, true),
            (1, 0x3000, true),
            (1, 0x3001, false),
            (2, 1, false),
            (3, 0x2_0000_00a0, true),
            (3, 0x2_0000_00a1, false),
            (4, 1, false),
            (5, u64::MAX, true),
        ] {
            assert_eq!(
                history.holds(&head(timeline, place)),
                is_held,
                "{timeline} {place}"
            );
        }
    }

    #[test]
    fn a_missing_history_contains_no_other_timelines() {
        let history = History::read(2, None);
        assert!(!history.holds(&head(1, 1)) && history.holds(&head(2, 1)));
    }
}
