//! The extension's SQL is written by hand: here it is held against the library. And what the library takes at the server's start.

use lanes_support::cluster::Cluster;
use lanes_support::place;
use std::collections::BTreeSet;

/// What PostgreSQL asks the library for to learn how a C function is called, before the function's name.
const INFORMATION: &str = "pg_finfo_";

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The C functions that the library offers.
fn offered() -> BTreeSet<String> {
    let library = std::fs::read(place::extension_libraries().join("lanes.so")).unwrap();
    library
        .windows(INFORMATION.len())
        .enumerate()
        .filter(|(place, window)| {
            // A symbol of its own, and no part of a longer one.
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

/// The C functions that the SQL names.
fn named() -> BTreeSet<String> {
    let script = format!("lanes--{}.sql", env!("CARGO_PKG_VERSION"));
    let script = std::fs::read_to_string(place::extension_scripts().join(script)).unwrap();
    let names = script.split("'MODULE_PATHNAME', '").skip(1);
    names
        .map(|rest| rest.split('\'').next().unwrap().to_owned())
        .collect()
}

/// `CREATE EXTENSION` finds a name without a function. A function without a name would be found by nobody.
#[test]
fn every_function_of_the_library_has_its_sql() {
    let (offered, named) = (offered(), named());
    assert!(named.len() > 50, "{named:?}");
    assert_eq!(offered, named);
}

/// A server whose arena cannot be what it is told to be does not start with another one.
#[test]
fn an_impossible_arena_is_told_at_the_start() {
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
