//! The hosts and times that a query refers to, drawn from a fixed seed.
//!
//! | in the text | replaced by |
//! |---|---|
//! | `$hosts`, `$ids` | the names or numbers of the drawn hosts, separated by commas |
//! | `$host`, `$id`, `$uuid` | the name, number or uuid of the first of them |
//! | `$from`, `$to` | a span of the query's hours within the data |
//! | `$region`, `$team` | a region, a team |

use super::fleet_data::{Fleet, FleetSize, REGIONS, START, TEAMS, hostname};
use super::query::{Dialect, Query};
use crate::sql::random::SplitMix64;
use chrono::DateTime;
use lanes_support::error::{Error, Result};

const SECOND: i64 = 1_000_000;
const HOUR_SECONDS: i64 = 3600;

/// One draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draw {
    hosts: Vec<usize>,
    uuid: String,
    /// The start in microseconds since 1970, a whole second.
    from: i64,
    to: i64,
    region: &'static str,
    team: &'static str,
}

/// Draws `count` times, or once for a query without draws.
///
/// # Errors
/// The query needs more hosts or hours than there are.
pub fn draws(
    query: &Query,
    count: usize,
    size: FleetSize,
    fleet: &Fleet,
    random: &mut SplitMix64,
) -> Result<Vec<Draw>> {
    if query.hosts == 0 || query.hosts > size.hosts || query.hours > size.hours {
        return Err(Error::Other(format!(
            "`{}` wants {} hosts and {} hours of {} and {}",
            query.name, query.hosts, query.hours, size.hosts, size.hours
        )));
    }
    let count = if query.is_drawn() { count } else { 1 };
    let draw = |_| {
        let mut all: Vec<usize> = (0..size.hosts).collect();
        let hosts: Vec<usize> = (0..query.hosts)
            .map(|_| all.swap_remove(random.below(all.len() as u64) as usize))
            .collect();
        let room = (size.hours - query.hours) * HOUR_SECONDS;
        let from = START + random.below(room as u64 + 1) as i64 * SECOND;
        Draw {
            uuid: fleet.uuids[hosts[0]].clone(),
            hosts,
            from,
            to: from + query.hours * HOUR_SECONDS * SECOND,
            region: REGIONS[random.below(REGIONS.len() as u64) as usize],
            team: TEAMS[random.below(TEAMS.len() as u64) as usize],
        }
    };
    Ok((0..count).map(draw).collect())
}

impl Draw {
    /// Returns the text with the drawn values.
    pub fn fill(&self, text: &str, dialect: Dialect) -> String {
        let quoted = |text: &str| format!("'{text}'");
        let list = |of: &dyn Fn(usize) -> String| {
            let items: Vec<String> = self.hosts.iter().map(|host| of(*host)).collect();
            items.join(", ")
        };
        let time = |microseconds: i64| {
            let time = DateTime::from_timestamp_micros(microseconds).unwrap_or_default();
            let text = time.format("%Y-%m-%d %H:%M:%S");
            match dialect {
                Dialect::DuckDb | Dialect::Polars => format!("timestamp '{text}'"),
                Dialect::Lanes | Dialect::Heap => format!("timestamptz '{text}+00'"),
            }
        };
        let id = |host: usize| (host + 1).to_string();
        // A name that begins with another one is replaced first.
        let values = [
            ("$hosts", list(&|host| quoted(&hostname(host)))),
            ("$host", quoted(&hostname(self.hosts[0]))),
            ("$ids", list(&id)),
            ("$id", id(self.hosts[0])),
            ("$uuid", format!("'{}'::uuid", self.uuid)),
            ("$from", time(self.from)),
            ("$to", time(self.to)),
            ("$region", quoted(self.region)),
            ("$team", quoted(self.team)),
        ];
        let replaced = |text: String, (name, value): &(&str, String)| text.replace(name, value);
        values.iter().fold(text.to_owned(), replaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: FleetSize = FleetSize {
        hosts: 4,
        hours: 3,
        interval_seconds: 600,
    };

    fn query(hosts: usize, hours: i64, sql: &str) -> Query {
        let text = format!("name = 'q'\nhosts = {hosts}\nhours = {hours}\nsql = \"{sql}\"");
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn draws_differ_are_within_the_data_and_are_reproducible() {
        let fleet = Fleet::generate(SIZE);
        let all = |seed| {
            let mut random = SplitMix64(seed);
            draws(&query(3, 1, "$hosts"), 20, SIZE, &fleet, &mut random).unwrap()
        };
        let drawn = all(1);
        assert_eq!((drawn.len(), &drawn), (20, &all(1)));
        assert_ne!(drawn, all(2));
        for draw in &drawn {
            let different: std::collections::BTreeSet<_> = draw.hosts.iter().collect();
            assert_eq!(different.len(), 3);
            let end = START + SIZE.hours * HOUR_SECONDS * SECOND;
            assert!(draw.from >= START && draw.to <= end, "{draw:?}");
            assert_eq!(draw.to - draw.from, HOUR_SECONDS * SECOND);
        }
    }

    #[test]
    fn a_query_without_draws_runs_once_and_impossible_draws_are_refused() {
        let fleet = Fleet::generate(SIZE);
        let mut random = SplitMix64(1);
        let mut of = |query: &Query| draws(query, 9, SIZE, &fleet, &mut random);
        assert_eq!(of(&query(1, 3, "SELECT 1")).unwrap().len(), 1);
        for (hosts, hours) in [(5, 1), (1, 4), (0, 1)] {
            let told = of(&query(hosts, hours, "$id")).unwrap_err().to_string();
            assert!(told.contains("`q` wants"), "{told}");
        }
    }

    #[test]
    fn each_dialect_has_its_own_times_and_names_are_replaced_completely() {
        let draw = Draw {
            hosts: vec![2, 0],
            uuid: "u".to_owned(),
            from: START,
            to: START + HOUR_SECONDS * SECOND,
            region: "north",
            team: "red",
        };
        let text = "$hosts|$host|$ids|$id|$uuid|$region|$team|$from|$to";
        let both = "'host_2', 'host_0'|'host_2'|3, 1|3|'u'::uuid|'north'|'red'|";
        assert_eq!(
            draw.fill(text, Dialect::Lanes),
            format!(
                "{both}timestamptz '2026-01-01 00:00:00+00'|timestamptz '2026-01-01 01:00:00+00'"
            )
        );
        assert_eq!(
            draw.fill(text, Dialect::DuckDb),
            format!("{both}timestamp '2026-01-01 00:00:00'|timestamp '2026-01-01 01:00:00'")
        );
    }
}
