//! Holds the order of the rooms below `extension/src` and `gateway/src`: the table in `README.md` of each lists all of
//! them, and a room uses only rooms that stand above it there. So there is no circle between rooms.

use lanes_support::place;
use std::collections::BTreeSet;
use std::path::Path;

/// The crates whose rooms have an order.
const CRATES: [&str; 2] = ["extension", "gateway"];

/// The files that load all rooms, and belong to none.
const ROOTS: [&str; 2] = ["lib", "main"];

/// The rooms of a crate in the order of its table: names of folders, or of files without `.rs`.
fn listed(name: &str) -> Vec<String> {
    let page = place::workspace().join(name).join("README.md");
    let page = std::fs::read_to_string(page).unwrap();
    let start = format!("| `{name}/src/");
    let rows = page.lines().filter_map(|line| line.strip_prefix(&start));
    let names = rows.filter_map(|row| row.split('`').next());
    names
        .map(|name| name.trim_end_matches(".rs").to_owned())
        .collect()
}

/// The room of each file and folder of a crate's `src`.
fn existing(source: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(source).unwrap();
    let names = entries.map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.trim_end_matches(".rs").to_owned()
    });
    names
        .filter(|name| !ROOTS.contains(&name.as_str()))
        .collect()
}

/// The first word of each path after `crate::` in the code of a file, groups in braces included.
fn used(text: &str) -> BTreeSet<String> {
    let code: Vec<&str> = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let code = code.join("\n");
    let mut words = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        let Some(group) = after.strip_prefix('{') else {
            words.insert(first_word(after));
            continue;
        };
        let mut depth = 0;
        let mut is_start = true;
        for (at, letter) in group.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => is_start = true,
                letter if is_start && !letter.is_whitespace() => {
                    words.insert(first_word(&group[at..]));
                    is_start = false;
                }
                _ => {}
            }
        }
    }
    words
}

fn first_word(text: &str) -> String {
    text.chars()
        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect()
}

/// Adds what the files of a room use of rooms that stand below it.
fn collect(path: &Path, below: &[String], faults: &mut Vec<String>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), below, faults);
        }
    } else if path.extension().is_some_and(|kind| kind == "rs") {
        let used = used(&std::fs::read_to_string(path).unwrap());
        let wrong = below.iter().filter(|room| used.contains(*room));
        faults.extend(wrong.map(|room| format!("{} uses {room}", path.display())));
    }
}

#[test]
fn each_room_is_listed_once() {
    for name in CRATES {
        let listed = listed(name);
        let set: BTreeSet<String> = listed.iter().cloned().collect();
        assert_eq!(set.len(), listed.len(), "{name}: {listed:?}");
        let source = place::workspace().join(name).join("src");
        assert_eq!(set, existing(&source), "{name}");
    }
}

#[test]
fn a_room_uses_only_rooms_above_it() {
    let mut faults = Vec::new();
    for name in CRATES {
        let source = place::workspace().join(name).join("src");
        let rooms = listed(name);
        for (at, room) in rooms.iter().enumerate() {
            for path in [source.join(room), source.join(format!("{room}.rs"))] {
                if path.exists() {
                    collect(&path, &rooms[at + 1..], &mut faults);
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "a room that stands lower in the table of its README.md is used:\n{}",
        faults.join("\n")
    );
}

#[test]
fn paths_are_found_in_code_and_not_in_comments() {
    let text =
        "use crate::{pg::{self, slot}, table};\n// crate::nodes\nfn f() { crate::error::raise() }";
    let expected = ["error", "pg", "table"].map(str::to_owned);
    assert_eq!(used(text), BTreeSet::from(expected));
}
