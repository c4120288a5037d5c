//! A stamp of files, which changes when the files do.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Identity, length and times of each file, followed through links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp(Vec<Option<[i128; 5]>>);

impl Stamp {
    /// Returns the stamp of files, some of which may be missing.
    pub fn of<'a>(files: impl Iterator<Item = &'a Path>) -> Self {
        let stamps = files.map(|file| std::fs::metadata(file).ok().map(of_file));
        Self(stamps.collect())
    }
}

fn of_file(metadata: Metadata) -> [i128; 5] {
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    [
        i128::from(metadata.dev()),
        i128::from(metadata.ino()),
        i128::from(metadata.len()),
        nanos(metadata.mtime(), metadata.mtime_nsec()),
        nanos(metadata.ctime(), metadata.ctime_nsec()),
    ]
}
