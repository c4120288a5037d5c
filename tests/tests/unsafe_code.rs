//! Holds the list of files of the extension that may contain unsafe code. PostgreSQL's interface stands behind a fence,
//! the folder `extension/src/pg`, and safe types leave it. What else is unsafe is named here, with the reason.

use lanes_support::place;
use std::collections::BTreeSet;
use std::path::Path;

/// The folder that may contain unsafe code anywhere.
const FENCE: &str = "pg/";

/// The files outside of the fence that contain unsafe code, and why.
const LISTED: &[(&str, &str)] = &[
    (
        "custom_scan/callbacks.rs",
        "the callbacks of custom scan nodes, generic over the node",
    ),
    ("table_am/bitmap.rs", "callbacks of the access method"),
    ("table_am/index.rs", "callbacks of the access method"),
    ("table_am/routine.rs", "callbacks of the access method"),
];

/// Whether a file contains the keyword outside of comments.
fn is_unsafe(text: &str) -> bool {
    text.lines().any(|line| {
        let code = line.split("//").next().unwrap_or_default();
        let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| word == "unsafe")
    })
}

/// Adds the files below a folder that contain unsafe code, by their paths from `root`.
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
fn unsafe_code_stands_in_the_fence_and_in_the_files_that_are_listed() {
    let root = place::workspace().join("extension/src");
    let mut found = BTreeSet::new();
    collect(&root, &root, &mut found);
    assert!(
        found.iter().any(|file| file.starts_with(FENCE)),
        "{found:?}"
    );
    found.retain(|file| !file.starts_with(FENCE));
    let listed: BTreeSet<String> = LISTED.iter().map(|(file, _)| (*file).to_owned()).collect();
    let new: Vec<_> = found.difference(&listed).collect();
    assert!(
        new.is_empty(),
        "put unsafe code behind extension/src/{FENCE}, as a type that is safe to use: {new:?}"
    );
    let safe: Vec<_> = listed.difference(&found).collect();
    assert!(safe.is_empty(), "take these off the list: {safe:?}");
}

#[test]
fn comments_are_no_unsafe_code() {
    assert!(!is_unsafe("// unsafe { }\nlet unsafely = is_unsafe(code);"));
    assert!(is_unsafe("#[unsafe(no_mangle)]"));
    assert!(is_unsafe("    let it = unsafe { *pointer }; // SAFETY"));
}
