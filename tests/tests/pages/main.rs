//! The pages of the repository, read as a stranger reads them: pasted line by line, and followed link by link.
//!
//! | module | one thing |
//! |---|---|
//! | `page` | every file `*.md`, its fenced blocks and its prose |
//! | `statements` | the statements of a block of SQL |
//! | `catalogue` | what the database has, for the pages that list it |
//! | `session` | a database, a gateway and a shell in which the blocks of a page run |
//! | `commands` | the commands of a block of shell: which ones run, and how the others are checked |
//! | `links` | where links and paths lead |
//!
//! Blocks of `sql` and `sh` run in the order of their page. Each page begins in a database without tables of its own.

mod catalogue;
mod commands;
mod links;
mod page;
mod session;
mod statements;

use page::Page;
use session::Session;
use std::collections::BTreeSet;

/// Languages of blocks that are shown and not run.
const SHOWN: [&str; 6] = ["text", "yaml", "toml", "json", "python", "rust"];

#[test]
fn every_block_of_every_page_runs() {
    let mut session = Session::start();
    let (mut statements, mut commands, mut faults) = (0, 0, Vec::new());
    for page in page::all() {
        session.begin_page();
        for block in page.blocks() {
            let place = format!("{}:{}", page.path.display(), block.line);
            match block.language {
                "sql" => statements += session.run_sql(&place, &block.code, &mut faults),
                "sh" => commands += session.run_shell(&place, &block.code, &mut faults),
                shown if SHOWN.contains(&shown) => {}
                other => faults.push(format!("{place}: blocks of {other:?} are not known")),
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n\n"));
    // The pages were found, and their blocks too.
    assert!(statements > 50 && commands > 30, "{statements} {commands}");
    session.stop();
}

#[test]
fn every_link_and_path_leads_somewhere() {
    let pages = page::all();
    let broken: Vec<String> = pages
        .iter()
        .flat_map(|page| links::broken(page, &pages))
        .collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn every_page_is_found_from_the_first() {
    let pages = page::all();
    let mut found = BTreeSet::from([std::path::PathBuf::from("README.md")]);
    let mut fresh: Vec<_> = found.iter().cloned().collect();
    while let Some(path) = fresh.pop() {
        let page = pages.iter().find(|page| page.path == path);
        for target in page.map(links::pages_linked).unwrap_or_default() {
            if found.insert(target.clone()) {
                fresh.push(target);
            }
        }
    }
    let lost: Vec<_> = pages
        .iter()
        .filter(|page| !found.contains(&page.path))
        .map(|page| page.path.display().to_string())
        .collect();
    assert!(lost.is_empty(), "no link leads to {}", lost.join(", "));
}

#[test]
fn the_first_page_is_short() {
    const BYTES_MAX: usize = 8 * 1024;
    let bytes = Page::read("README.md").text.len();
    assert!(bytes <= BYTES_MAX, "README.md has {bytes} bytes");
}

#[test]
fn the_pages_that_list_the_database_are_complete() {
    let cluster = catalogue::cluster();
    let reference = Page::read("extension/docs/sql-reference.md").text;
    let names = catalogue::names_in_schema(&cluster);
    assert!(names.len() > 60, "{names:?}");
    let unnamed = names.iter().filter(|name| !is_named(&reference, name));
    let unnamed: Vec<_> = unnamed.collect();
    assert!(unnamed.is_empty(), "the SQL reference lacks {unnamed:?}");

    let page = Page::read("extension/docs/settings.md").text;
    let settings = catalogue::settings(&cluster);
    assert!(settings.len() > 9, "{settings:?}");
    let missing: Vec<String> = settings
        .iter()
        .map(|(name, default)| format!("| `{name}` | {default} |"))
        .filter(|row| !page.contains(row.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "the page of settings lacks {missing:#?}"
    );
}

#[test]
fn lines_of_explain_on_the_pages_are_in_the_code() {
    let page = Page::read("extension/docs/vectorised-queries.md").text;
    let (_, table) = page.split_once("## What EXPLAIN reports").unwrap();
    let quoted = table.split('`').skip(1).step_by(2);
    let labels: Vec<&str> = quoted
        .filter(|text| text.starts_with(char::is_uppercase) && !text.starts_with("Lanes"))
        .collect();
    assert!(labels.len() > 20, "{labels:?}");
    let code = page::texts("extension/src", "rs");
    let is_unknown = |label: &&&str| !code.contains(&format!("c\"{label}\""));
    let unknown: Vec<_> = labels.iter().filter(is_unknown).collect();
    assert!(unknown.is_empty(), "EXPLAIN has no lines {unknown:?}");
}

/// Whether the text has `lanes.name`, and not only a longer name that begins so.
fn is_named(text: &str, name: &str) -> bool {
    let full = format!("lanes.{name}");
    text.match_indices(&full).any(|(at, _)| {
        let after = text[at + full.len()..].chars().next();
        after.is_none_or(|next| !next.is_alphanumeric() && next != '_')
    })
}
