//! Compares the extension's SQL, which is written by hand, with the library, and tests the
//! library's settings at server start.

use lanes_support::cluster::Cluster;
use lanes_support::installation::Postgres;
use std::collections::BTreeSet;

/// The prefix of the symbols from which PostgreSQL learns the calling convention of a C function.
const INFORMATION: &str = "pg_finfo_";

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the C functions of the library.
fn offered() -> BTreeSet<String> {
    let library = std::fs::read(Postgres::chosen().unwrap().libraries.join("lanes.so")).unwrap();
    library
        .windows(INFORMATION.len())
        .enumerate()
        .filter(|(place, window)| {
            // The match is a whole symbol, and not part of a longer one.
            *window == INFORMATION.as_bytes() && library[place - 1] == 0
        })
        .map(|(place, _)| {
            let name = library[place + INFORMATION.len()..].iter();
            name.take_while(|byte| is_name(**byte))
                .map(|byte| char::from(*byte))
                .collect()
        })
        .collect()
}

/// Returns the C functions that the SQL names.
fn named() -> BTreeSet<String> {
    let script = format!("lanes--{}.sql", env!("CARGO_PKG_VERSION"));
    let script = std::fs::read_to_string(Postgres::chosen().unwrap().scripts.join(script)).unwrap();
    let names = script.split("'MODULE_PATHNAME', '").skip(1);
    names
        .map(|rest| rest.split('\'').next().unwrap().to_owned())
        .collect()
}

/// `CREATE EXTENSION` reports a name without a function. Nothing else would report a function
/// without a name.
#[test]
fn every_function_of_the_library_is_declared_in_sql() {
    let (offered, named) = (offered(), named());
    assert!(named.len() > 50, "{named:?}");
    assert_eq!(offered, named);
}

/// A server whose arena cannot have the configured size does not start.
#[test]
fn an_impossible_arena_is_reported_at_the_start() {
    for (number, (size, told)) in [
        ("lots", "lanes.arena_size cannot be \"lots\""),
        ("1KB", "lanes.arena_size cannot be \"1KB\""),
        (
            "900GB",
            "lanes.arena_size is 921600MB, and this machine has",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let mut cluster = Cluster::builder(&format!("arena_{number}"))
            .setting("lanes.arena_size", size)
            .create()
            .unwrap();
        assert!(cluster.start().is_err(), "{size}");
        let log = std::fs::read_to_string(cluster.log()).unwrap();
        assert!(log.contains("FATAL") && log.contains(told), "{size}: {log}");
    }
}
