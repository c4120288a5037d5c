//! Replays the fuzz targets' corpus, and a bounded number of mutations of it, with the ordinary
//! compiler. The mutations are always the same. To search further, run the fuzz targets
//! (`tests/fuzz`) and add their findings to the corpus.

#[path = "../../fuzz/entries.rs"]
mod entries;

use lanes_support::budget::Budget;
use lanes_support::place;
use lanes_support::seed::Random;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// The number of mutations for each target.
const MUTATIONS: Budget = Budget {
    short: 4_000,
    long: 20_000,
};
/// Bytes with a meaning in the formats.
const TELLING: [u8; 10] = [0, 1, 2, 0x0a, 0x12, 0x7f, 0x80, 0xc0, 0xfe, 0xff];

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = place::workspace().join("tests/fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| {
            let entry = entry.unwrap();
            (
                entry.file_name().to_string_lossy().into_owned(),
                std::fs::read(entry.path()).unwrap(),
            )
        })
        .collect();
    files.sort();
    assert!(files.len() >= 5, "{target} has a corpus");
    files
}

fn mutate(random: &mut Random, corpus: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = corpus.choose(random).unwrap().1.clone();
    for _ in 0..random.random_range(1..6) {
        if bytes.is_empty() {
            bytes.push(0);
        }
        let place = random.random_range(0..bytes.len());
        match random.random_range(0..7) {
            0 => bytes[place] ^= 1 << random.random_range(0..8),
            1 => bytes[place] = *TELLING.choose(random).unwrap(),
            2 => bytes[place] = random.random(),
            3 => bytes.truncate(place),
            4 => bytes.insert(place, *TELLING.choose(random).unwrap()),
            5 => {
                bytes.remove(place);
            }
            _ => {
                let other = &corpus.choose(random).unwrap().1;
                let from = random.random_range(0..=other.len());
                bytes.truncate(place);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
    bytes
}

fn replay(target: &str, entry: fn(&[u8])) {
    let corpus = corpus(target);
    for (name, bytes) in &corpus {
        println!("{target}: {name}");
        entry(bytes);
    }
    let mut random = Random::seed_from_u64(0x1a_2e5);
    for number in 0..MUTATIONS.rounds() {
        let bytes = mutate(&mut random, &corpus);
        let outcome = std::panic::catch_unwind(|| entry(&bytes));
        if outcome.is_err() {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            panic!(
                "{target}: mutation {number} of {} bytes violates an invariant: {hex}",
                bytes.len()
            );
        }
    }
}

#[test]
fn batches() {
    replay("batch", entries::batch);
}

#[test]
fn images() {
    replay("image", entries::image);
}

#[test]
fn encoded_lanes() {
    replay("encoded_lane", entries::encoded_lane);
}

#[test]
fn part_indexes() {
    replay("part_index", entries::part_index);
}

#[test]
fn log_entries() {
    replay("log_entry", entries::log_entry);
}

#[test]
fn streamed_images() {
    replay("streamed", entries::streamed);
}

#[test]
fn remote_write_requests() {
    replay("remote_write", entries::remote_write);
}

#[test]
fn parameters_of_queries() {
    replay("query_parameters", entries::query_parameters);
}

#[test]
fn remote_read_requests() {
    replay("remote_read", entries::remote_read);
}

#[test]
fn events_as_json() {
    replay("events_json", entries::events_json);
}

#[test]
fn events_as_arrow_streams() {
    replay("events_arrow", entries::events_arrow);
}

#[test]
fn promql_texts() {
    replay("promql_parser", entries::promql::promql_parser);
}

#[test]
fn promql_evaluations() {
    replay("promql_engine", entries::promql::promql_engine);
}
