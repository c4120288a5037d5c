//! The fleet: gauges of each host's CPU in the shape of TSBS's case cpu-only, the hosts' tags, and
//! small tables.
//!
//! | table | rows | columns |
//! |---|---|---|
//! | cpu | hosts × steps, in the order of time | time, tags_id, ten gauges |
//! | tags | hosts | id, hostname, uuid (as text), region, datacenter, rack, os, arch, team, service, environment |
//! | teams | 4 | team, department, rota |
//! | owners | hosts | tags_id, owner |
//! | ratings | 101 | usage, level |
//!
//! A gauge starts anywhere between 0 and 100 and moves by an approximately normal random number at
//! each step. The stored value is its whole part.

use super::table::{Table, Values};
use crate::sql::random::SplitMix64;
use serde::Deserialize;

/// The gauges of `cpu`.
pub const GAUGES: [&str; 10] = [
    "usage_user",
    "usage_system",
    "usage_idle",
    "usage_nice",
    "usage_iowait",
    "usage_irq",
    "usage_softirq",
    "usage_steal",
    "usage_guest",
    "usage_guest_nice",
];
/// The regions of hosts.
pub const REGIONS: [&str; 5] = ["north", "south", "east", "west", "centre"];
/// The teams of hosts.
pub const TEAMS: [&str; 4] = ["red", "green", "blue", "amber"];
const SYSTEMS: [&str; 3] = ["debian 12", "debian 13", "alpine 3.20"];
const ARCHITECTURES: [&str; 2] = ["x64", "arm64"];
const ENVIRONMENTS: [&str; 3] = ["production", "staging", "test"];
const OWNERS: usize = 7;
/// 2026-01-01 00:00:00 UTC in microseconds since 1970.
pub const START: i64 = 1_767_225_600_000_000;
const SECOND: i64 = 1_000_000;
const SEED_OF_GAUGES: u64 = 11;
const SEED_OF_TAGS: u64 = 12;

/// The size of a fleet.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetSize {
    /// The number of hosts.
    pub hosts: usize,
    /// The duration of the observation.
    pub hours: i64,
    /// The interval between observations.
    pub interval_seconds: i64,
}

impl FleetSize {
    fn steps(&self) -> usize {
        (self.hours * 3600 / self.interval_seconds) as usize
    }
}

/// A fleet.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// The tables, `cpu` first.
    pub tables: Vec<Table>,
    /// The uuids of the hosts, in the hosts' order.
    pub uuids: Vec<String>,
}

/// Returns the name of a host by its number, which starts at 0; its `id` is one greater.
pub fn hostname(host: usize) -> String {
    format!("host_{host}")
}

impl Fleet {
    /// Generates a fleet.
    pub fn generate(size: FleetSize) -> Fleet {
        let uuids = uuids(size.hosts);
        Fleet {
            tables: vec![
                cpu(size),
                tags(size.hosts, &uuids),
                teams(),
                owners(size.hosts),
                ratings(),
            ],
            uuids,
        }
    }
}

fn cpu(size: FleetSize) -> Table {
    let (hosts, steps) = (size.hosts, size.steps());
    let mut random = SplitMix64(SEED_OF_GAUGES);
    let (mut times, mut ids) = (Vec::new(), Vec::new());
    for step in 0..steps as i64 {
        times.extend(std::iter::repeat_n(
            START + step * size.interval_seconds * SECOND,
            hosts,
        ));
        ids.extend(1..=hosts as i32);
    }
    let mut columns = vec![
        ("time", Values::Time(times)),
        ("tags_id", Values::Integer(ids)),
    ];
    for gauge in GAUGES {
        let mut levels: Vec<f64> = (0..hosts).map(|_| 100.0 * random.unit()).collect();
        let mut values = Vec::with_capacity(hosts * steps);
        for _ in 0..steps {
            values.extend(levels.iter().map(|level| level.floor()));
            for level in &mut levels {
                *level = (*level + normal(&mut random)).clamp(0.0, 100.0);
            }
        }
        columns.push((gauge, Values::Float(values)));
    }
    Table {
        name: "cpu",
        columns,
    }
}

/// Returns an approximately normal number of variance 1: a sum of twelve numbers, without a
/// function that differs between libraries.
fn normal(random: &mut SplitMix64) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

fn uuids(hosts: usize) -> Vec<String> {
    let mut random = SplitMix64(SEED_OF_TAGS + 1);
    let mut uuid = |_| {
        let (high, low) = (random.next(), random.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff
        )
    };
    (0..hosts).map(&mut uuid).collect()
}

fn tags(hosts: usize, uuids: &[String]) -> Table {
    let mut random = SplitMix64(SEED_OF_TAGS);
    let mut one_of = |items: &[&str]| {
        let items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
        let bound = items.len() as u64;
        Values::Text {
            codes: (0..hosts).map(|_| random.below(bound) as u16).collect(),
            items,
        }
    };
    let numbers: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    Table {
        name: "tags",
        columns: vec![
            ("id", Values::Integer((1..=hosts as i32).collect())),
            (
                "hostname",
                Values::texts((0..hosts).map(hostname).collect()),
            ),
            ("uuid", Values::texts(uuids.to_vec())),
            ("region", one_of(&REGIONS)),
            ("datacenter", one_of(&["a", "b", "c"])),
            ("rack", one_of(&numbers)),
            ("os", one_of(&SYSTEMS)),
            ("arch", one_of(&ARCHITECTURES)),
            ("team", one_of(&TEAMS)),
            ("service", one_of(&numbers[..20])),
            ("environment", one_of(&ENVIRONMENTS)),
        ],
    }
}

fn teams() -> Table {
    let texts = |items: [&str; 4]| Values::texts(items.map(str::to_owned).to_vec());
    Table {
        name: "teams",
        columns: vec![
            ("team", texts(TEAMS)),
            (
                "department",
                Values::Text {
                    codes: vec![0, 0, 1, 1],
                    items: vec!["shop".to_owned(), "payments".to_owned()],
                },
            ),
            (
                "rota",
                Values::Text {
                    codes: vec![0, 0, 1, 0],
                    items: vec!["on call".to_owned(), "at rest".to_owned()],
                },
            ),
        ],
    }
}

fn owners(hosts: usize) -> Table {
    Table {
        name: "owners",
        columns: vec![
            ("tags_id", Values::Integer((1..=hosts as i32).collect())),
            (
                "owner",
                Values::Text {
                    codes: (0..hosts).map(|host| (host % OWNERS) as u16).collect(),
                    items: (0..OWNERS).map(|owner| format!("owner {owner}")).collect(),
                },
            ),
        ],
    }
}

fn ratings() -> Table {
    Table {
        name: "ratings",
        columns: vec![
            ("usage", Values::Float((0..=100).map(f64::from).collect())),
            (
                "level",
                Values::Text {
                    codes: (0..=100).map(|usage| usage / 26).collect(),
                    items: ["idle", "low", "middle", "high"]
                        .map(str::to_owned)
                        .to_vec(),
                },
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: FleetSize = FleetSize {
        hosts: 5,
        hours: 2,
        interval_seconds: 10,
    };

    #[test]
    fn a_fleet_is_reproducible_and_its_gauges_are_whole_numbers() {
        let (fleet, again) = (Fleet::generate(SIZE), Fleet::generate(SIZE));
        assert_eq!(fleet.tables, again.tables);
        let cpu = &fleet.tables[0];
        assert_eq!((cpu.rows(), cpu.columns.len()), (2 * 360 * 5, 12));
        for (name, values) in &cpu.columns[2..] {
            let Values::Float(values) = values else {
                panic!("{name}");
            };
            assert!(
                values
                    .iter()
                    .all(|value| (0.0..=100.0).contains(value) && value.fract() == 0.0)
            );
            // The next value of a host is in a row of the next step.
            let steps = values.iter().zip(&values[SIZE.hosts..]);
            let changes: Vec<f64> = steps.map(|(a, b)| (b - a).abs()).collect();
            assert!(changes.iter().all(|change| *change <= 7.0), "{name}");
            assert!(changes.iter().any(|change| *change > 0.0), "{name}");
        }
    }

    #[test]
    fn all_columns_of_a_table_have_the_same_length_and_keys_differ() {
        let fleet = Fleet::generate(SIZE);
        for table in &fleet.tables {
            for (name, values) in &table.columns {
                let alone = Table {
                    name: "alone",
                    columns: vec![(*name, values.clone())],
                };
                assert_eq!(alone.rows(), table.rows(), "{}.{name}", table.name);
            }
        }
        let different: std::collections::BTreeSet<_> = fleet.uuids.iter().collect();
        assert_eq!(different.len(), SIZE.hosts);
        assert!(fleet.uuids.iter().all(|uuid| uuid.len() == 36));
    }
}
