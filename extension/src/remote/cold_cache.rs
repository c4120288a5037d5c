//! The cold cache: images that came back from object storage, one file each.
//!
//! | file | content |
//! |---|---|
//! | `base/pgsql_tmp/pgsql_tmp_lanes_<database>_<storage id>_<origin>_<first row>` | an image |
//! | `base/pgsql_tmp/pgsql_tmp_lanes_new_<process>` | an image that is being written; then it is renamed |
//!
//! Base backups leave out files whose names begin like this, and a restart of the server removes them.
//! No other place records which files exist. A reader checks the length and the checksum of a file, and
//! treats a damaged file like a missing one. The digest of an image is compared before the file is
//! written, and not each time it is read: whoever can write in this folder can also write the table's
//! pages, and for 400 kB a digest takes about five times as long as reading and the checksum. All
//! processes write and remove files without a lock. A file that is removed while it is read stays
//! readable.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::expected;
use super::key::Key;
use crate::pg::server;

const FOLDER: &str = "base/pgsql_tmp";
const BEGINNING: &str = "pgsql_tmp_lanes_";
const UNFINISHED: &str = "pgsql_tmp_lanes_new_";
/// After so long, the process that was writing a file must have died.
const UNFINISHED_AGE_MAX: Duration = Duration::from_secs(600);

fn path(key: &Key) -> PathBuf {
    let Key {
        storage_id,
        first_row,
        database,
        origin,
    } = key;
    format!("{FOLDER}/{BEGINNING}{database}_{storage_id:016x}_{origin}_{first_row}").into()
}

/// Whether there is an image, damaged or not.
pub fn has(key: &Key) -> bool {
    path(key).exists()
}

/// An image of `bytes` bytes; `None`: there is none, or it was damaged and is removed.
pub fn read(key: &Key, bytes: u32) -> Option<Vec<u8>> {
    let path = path(key);
    let image = fs::read(&path).ok()?;
    if expected::parse(&image, bytes).is_ok() {
        return Some(image);
    }
    let _ = fs::remove_file(&path);
    None
}

/// Keeps an image, and removes the oldest ones until all of them together take no more than
/// `bytes_max`. The new one stays.
///
/// # Errors
/// The file cannot be written.
pub fn write(key: &Key, image: &[u8], bytes_max: u64) -> io::Result<()> {
    match fs::create_dir(FOLDER) {
        Err(failure) if failure.kind() != io::ErrorKind::AlreadyExists => return Err(failure),
        _ => {}
    }
    let path = path(key);
    let process = server::process_id();
    let unfinished = PathBuf::from(format!("{FOLDER}/{UNFINISHED}{process}"));
    let written = fs::File::create(&unfinished)
        .and_then(|mut file| file.write_all(image))
        .and_then(|()| fs::rename(&unfinished, &path));
    if let Err(failure) = written {
        let _ = fs::remove_file(&unfinished);
        return Err(failure);
    }
    trim(&path, bytes_max);
    Ok(())
}

/// Removes files, oldest first, until they take no more than `bytes_max`. Files that cannot be
/// examined or removed are left, because others may be doing the same.
fn trim(newest: &PathBuf, bytes_max: u64) {
    let Ok(folder) = fs::read_dir(FOLDER) else {
        return;
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in folder.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(BEGINNING)) else {
            continue;
        };
        let Ok((written, bytes)) = entry
            .metadata()
            .and_then(|about| Ok((about.modified()?, about.len())))
        else {
            continue;
        };
        let is_being_written = name.starts_with(UNFINISHED)
            && written.elapsed().is_ok_and(|age| age < UNFINISHED_AGE_MAX);
        if !is_being_written {
            files.push((written, bytes, entry.path()));
        }
    }
    let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    files.sort_unstable();
    for (_, its_bytes, path) in &files {
        if bytes <= bytes_max {
            break;
        }
        if path != newest {
            let _ = fs::remove_file(path);
            bytes -= its_bytes;
        }
    }
}
