//! An installation of PostgreSQL with folders of its own for extensions, so that nobody else meets what a test adds.
//!
//! PostgreSQL finds its folders from that of its program. So all files but the program are links to those of another
//! installation.

use crate::account::Account;
use crate::error::{Error, Result};
use crate::installation::Postgres;
use crate::place::{self, under};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The program that PostgreSQL starts from.
const SERVER: &str = "postgres";

/// The installation. Its folder is removed with the value.
#[derive(Debug)]
pub struct PrivateInstallation {
    root: PathBuf,
    postgres: Postgres,
}

impl PrivateInstallation {
    /// Makes one from another installation.
    pub fn of(original: &Postgres) -> Result<PrivateInstallation> {
        let root = place::test_folder("private_installation", &Account::for_postgres()?)?;
        let postgres = Postgres {
            major: original.major.clone(),
            programs: under(&root, &original.programs),
            libraries: under(&root, &original.libraries),
            scripts: under(&root, &original.scripts),
        };
        link_all(&original.programs, &postgres.programs, SERVER)?;
        copy(&original.programs.join(SERVER), &postgres.programs)?;
        link_all(&original.libraries, &postgres.libraries, "")?;
        if let (Some(from), Some(to)) = (original.scripts.parent(), postgres.scripts.parent()) {
            link_all(from, to, "extension")?;
        }
        link_all(&original.scripts, &postgres.scripts, "")?;
        Ok(PrivateInstallation { root, postgres })
    }

    /// Returns the installation.
    pub fn postgres(&self) -> &Postgres {
        &self.postgres
    }

    /// Reads a script of an extension.
    pub fn script(&self, name: &str) -> Result<String> {
        let file = self.postgres.scripts.join(name);
        std::fs::read_to_string(&file).map_err(Error::file("read", file))
    }

    /// Adds a script of an extension.
    pub fn add_script(&self, name: &str, text: &str) -> Result<()> {
        let file = self.postgres.scripts.join(name);
        std::fs::write(&file, text).map_err(Error::file("write", file))
    }

    /// Replaces all files of the extension by those of an installation below another root.
    pub fn take_extension(&self, root: &Path, of: &Postgres) -> Result<()> {
        for (from, to) in [
            (&of.libraries, &self.postgres.libraries),
            (&of.scripts, &self.postgres.scripts),
        ] {
            for old in entries(to)? {
                if is_of_extension(&old) {
                    std::fs::remove_file(&old).map_err(Error::file("remove", old))?;
                }
            }
            for new in entries(&under(root, from))? {
                copy(&new, to)?;
            }
        }
        Ok(())
    }
}

impl Drop for PrivateInstallation {
    fn drop(&mut self) {
        // The next test run removes what cannot be removed now.
        let _ = std::fs::remove_dir_all(&self.root);
        let _ = self.root.parent().map(std::fs::remove_dir);
    }
}

/// Whether a file is the library or a script of this extension.
fn is_of_extension(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("lanes.") || name.starts_with("lanes--")
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(Error::file("list", folder))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

/// Copies a file into a folder.
fn copy(file: &Path, folder: &Path) -> Result<()> {
    let to = folder.join(file.file_name().unwrap_or_default());
    std::fs::copy(file, &to).map_err(Error::file("write", to))?;
    Ok(())
}

/// Links all entries of a folder but one.
fn link_all(from: &Path, to: &Path, except: &str) -> Result<()> {
    place::make_folder(to)?;
    for entry in entries(from)? {
        let name = entry.file_name().unwrap_or_default();
        if name != except {
            let link = to.join(name);
            symlink(&entry, &link).map_err(Error::file("link", link))?;
        }
    }
    Ok(())
}
