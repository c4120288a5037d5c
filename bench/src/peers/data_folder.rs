//! The folder in which a peer keeps its data.

use lanes_support::error::{Error, Result};
use lanes_support::place;
use std::path::Path;

/// Creates an empty folder, or empties it if it exists.
pub fn empty(folder: &Path) -> Result<()> {
    remove(folder)?;
    place::make_folder(folder)
}

/// Removes a folder and its content, if the folder exists.
pub fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::file("remove", folder)(error))
        }
        _ => Ok(()),
    }
}
