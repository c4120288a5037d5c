//! Holds the list of files of the extension that may contain unsafe code, with the reason of each. PostgreSQL's
//! interface stands behind a fence, the folder `extension/src/pg`, and safe types leave it.

use lanes_support::place;
use std::collections::BTreeSet;
use std::path::Path;

/// The folder that contains all unsafe code but the callbacks of plan nodes.
const FENCE: &str = "pg/";

/// The most files with unsafe code.
const FILES_MAX: usize = 40;

/// The files that contain unsafe code, and why.
const LISTED: &[(&str, &str)] = &[
    (
        "custom_scan/callbacks.rs",
        "the callbacks of custom scan nodes, generic over the node",
    ),
    (
        "pg/access/scan_callbacks.rs",
        "callbacks of the access method for scans",
    ),
    (
        "pg/access/table_callbacks.rs",
        "callbacks of the access method for rows and tables",
    ),
    (
        "pg/byte_change.rs",
        "critical sections, and WAL records of bytes of pages",
    ),
    ("pg/call.rs", "calls of SQL functions by PostgreSQL"),
    (
        "pg/call_ports.rs",
        "window functions and copies of values, which the bindings lack",
    ),
    (
        "pg/catalog_rows.rs",
        "rows of catalogs, which are valid while a tuple is held",
    ),
    (
        "pg/cluster_sort.rs",
        "heap tuples with headers, for PostgreSQL's sort",
    ),
    (
        "pg/copy.rs",
        "a callback of COPY, with a thread-local source",
    ),
    ("pg/datum/item.rs", "reads values by reference"),
    ("pg/datum/outlet.rs", "reads values of lanes"),
    (
        "pg/exec/callable.rs",
        "calls functions through pointers, and owns states of aggregates",
    ),
    ("pg/exec/slot.rs", "the arrays of slots"),
    (
        "pg/executor.rs",
        "inline functions of the executor, and error boundaries",
    ),
    ("pg/fresh.rs", "pages that are written without buffers"),
    (
        "pg/functions/executor.rs",
        "functions that take slot operations",
    ),
    ("pg/functions/mod.rs", "the macros that declare functions"),
    (
        "pg/functions/process.rs",
        "variables that are structures or strings",
    ),
    (
        "pg/functions/special.rs",
        "functions that take or return arrays",
    ),
    (
        "pg/functions/values.rs",
        "SQL functions on values, by function pointers",
    ),
    ("pg/hooks.rs", "the callbacks of hooks"),
    (
        "pg/index.rs",
        "entries of indexes, and callbacks of builds and VACUUM",
    ),
    (
        "pg/kept_rows.rs",
        "arrays in the memory of an aggregate's state",
    ),
    (
        "pg/open_indexes.rs",
        "makes index entries without an error boundary for each",
    ),
    ("pg/page.rs", "pinned and locked buffers"),
    (
        "pg/ports/relation.rs",
        "storage managers, and fields that differ between versions",
    ),
    ("pg/ports/statistics.rs", "the counters of open tables"),
    (
        "pg/ports/tuple.rs",
        "arrays of attributes, and slots that are filled",
    ),
    (
        "pg/resource_owner.rs",
        "the current resource owner, and an internal subtransaction",
    ),
    (
        "pg/row_log.rs",
        "the resource manager of WAL records of rows",
    ),
    ("pg/shmem.rs", "shared memory and its locks"),
    ("pg/signals.rs", "calls of the C library about this process"),
    (
        "pg/slot.rs",
        "the slots of lanes tables, and their callbacks",
    ),
    ("pg/statement.rs", "statements by SPI"),
    ("pg/tree/arrays.rs", "arrays of the planner"),
    ("pg/tree/list.rs", "the cells of lists"),
    ("pg/tree/tag.rs", "which structure a node is"),
    ("pg/tree/view.rs", "the macro that declares views"),
    ("pg/tree/walk.rs", "PostgreSQL's walkers of trees"),
    ("pg/whole_error.rs", "callbacks of errors, and jumps"),
];

/// Whether a file contains the keyword in a line that is no comment.
fn is_unsafe(text: &str) -> bool {
    let mut code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    code.any(|line| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| word == "unsafe")
    })
}

/// Adds the files with unsafe code below a folder, by their paths from `root`.
fn collect(root: &Path, folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs")
            && is_unsafe(&std::fs::read_to_string(&path).unwrap())
        {
            found.insert(path.strip_prefix(root).unwrap().display().to_string());
        }
    }
}

#[test]
fn unsafe_code_stands_in_the_files_that_are_listed() {
    let root = place::workspace().join("extension/src");
    let mut found = BTreeSet::new();
    collect(&root, &root, &mut found);
    let listed: BTreeSet<String> = LISTED.iter().map(|(file, _)| (*file).to_owned()).collect();
    let new: Vec<_> = found.difference(&listed).collect();
    assert!(
        new.is_empty(),
        "put unsafe code behind a safe function of a file that is listed: {new:?}"
    );
    let safe: Vec<_> = listed.difference(&found).collect();
    assert!(safe.is_empty(), "take these off the list: {safe:?}");
    assert!(listed.len() <= FILES_MAX, "{} files", listed.len());
    let outside = listed.iter().filter(|file| !file.starts_with(FENCE));
    assert_eq!(outside.count(), 1, "one file outside of {FENCE}");
}

#[test]
fn comments_are_no_unsafe_code() {
    assert!(!is_unsafe("// unsafe { }\nlet unsafely = is_unsafe(code);"));
    assert!(is_unsafe("#[unsafe(no_mangle)]"));
    assert!(is_unsafe("    let it = unsafe { *pointer }; // SAFETY"));
    assert!(is_unsafe("let url = \"http://\"; unsafe { read() }"));
}
