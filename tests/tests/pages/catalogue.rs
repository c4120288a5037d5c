//! What the database has, for the pages that list it.

use lanes_support::cluster::Cluster;
use lanes_support::provision::{DATABASE, Passwords, provision};

const NAMES: &str = "SELECT proname FROM pg_proc WHERE pronamespace = 'lanes'::regnamespace \
     UNION SELECT relname FROM pg_class \
            WHERE relnamespace = 'lanes'::regnamespace AND relkind IN ('r', 'v', 'S', 'c')";
const SETTINGS: &str =
    "SELECT name, boot_val, coalesce(unit, '') FROM pg_settings WHERE name LIKE 'lanes.%'";

/// A database with the extension.
pub fn cluster() -> Cluster {
    let cluster = Cluster::builder("catalogue").start().unwrap();
    provision(&cluster, &Passwords::generate()).unwrap();
    cluster
}

/// Names of all functions, procedures, tables, views, sequences and types of the schema `lanes`.
pub fn names_in_schema(cluster: &Cluster) -> Vec<String> {
    let rows = cluster.query(DATABASE, NAMES).unwrap();
    rows.into_iter().flatten().flatten().collect()
}

/// Names and defaults of all settings of the extension, as a person writes them.
pub fn settings(cluster: &Cluster) -> Vec<(String, String)> {
    let rows = cluster.query(DATABASE, SETTINGS).unwrap();
    rows.into_iter()
        .map(|row| {
            let mut fields = row.into_iter().flatten();
            let mut next = || fields.next().unwrap();
            (next(), with_unit(&next(), &next()))
        })
        .collect()
}

/// A number with its unit, in the largest unit that leaves it whole.
fn with_unit(value: &str, unit: &str) -> String {
    let number: u64 = value.parse().unwrap_or(0);
    match unit {
        "MB" if number > 0 && number.is_multiple_of(1024) => format!("{}GB", number / 1024),
        "ms" if number > 0 && number.is_multiple_of(1000) => format!("{}s", number / 1000),
        _ => format!("{value}{unit}"),
    }
}
