//! Installations of PostgreSQL: the default one, which is Debian's, and others by their `pg_config`.

use crate::error::{Error, Result};
use crate::process::run;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The major version for which the project is built by default.
pub const DEFAULT_MAJOR: &str = "15";
/// The variable that names the `pg_config` of another installation.
pub const VARIABLE: &str = "LANES_PG_CONFIG";
/// The variable that names the `pg_config` of the installation that tests of pg_upgrade come from.
pub const UPGRADED_FROM: &str = "LANES_PG_FROM";
/// The major versions for which the extension can be built.
const SUPPORTED_MAJORS: [&str; 4] = ["15", "16", "17", "18"];

/// The folders of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Postgres {
    /// The major version.
    pub major: String,
    /// The server programs.
    pub programs: PathBuf,
    /// The shared libraries of extensions.
    pub libraries: PathBuf,
    /// The control files and scripts for `CREATE EXTENSION`.
    pub scripts: PathBuf,
}

impl Postgres {
    /// Returns the installation that [`VARIABLE`] names, or the default one.
    pub fn chosen() -> Result<Postgres> {
        match std::env::var_os(VARIABLE) {
            Some(program) if !program.is_empty() => Postgres::of(Path::new(&program)),
            _ => Ok(Postgres::debian()),
        }
    }

    /// Returns the default installation, whether or not it exists.
    pub fn debian() -> Postgres {
        Postgres::debian_of(DEFAULT_MAJOR)
    }

    /// Returns the installation of a major version from Debian's packages or those of the PostgreSQL
    /// project, whether or not it exists.
    pub fn debian_of(major: &str) -> Postgres {
        let installed = PathBuf::from(format!("/usr/lib/postgresql/{major}"));
        Postgres {
            major: major.to_owned(),
            programs: installed.join("bin"),
            libraries: installed.join("lib"),
            scripts: PathBuf::from(format!("/usr/share/postgresql/{major}/extension")),
        }
    }

    /// Returns the installation of a `pg_config`.
    ///
    /// # Errors
    /// The program does not run, or the extension does not support the version.
    pub fn of(pg_config: &Path) -> Result<Postgres> {
        let pg_config = std::path::absolute(pg_config).map_err(Error::file("find", pg_config))?;
        let told = run(Command::new(&pg_config).args([
            "--version",
            "--bindir",
            "--pkglibdir",
            "--sharedir",
        ]))?;
        let lines: Vec<&str> = told.lines().collect();
        let [version, programs, libraries, share] = lines.as_slice() else {
            return Err(Error::Other(format!(
                "{} does not answer as pg_config does; set {VARIABLE} to a pg_config",
                pg_config.display()
            )));
        };
        Ok(Postgres {
            major: supported_major(version)?,
            programs: PathBuf::from(programs),
            libraries: PathBuf::from(libraries),
            scripts: Path::new(share).join("extension"),
        })
    }

    /// Whether this is the default installation.
    pub fn is_default(&self) -> bool {
        *self == Postgres::debian()
    }

    /// Returns the program that tells builds about the installation.
    pub fn pg_config(&self) -> PathBuf {
        self.programs.join("pg_config")
    }

    /// Returns one of PostgreSQL's own test programs, by its path below their folder.
    pub fn test_program(&self, path: &str) -> Result<PathBuf> {
        let program = self.libraries.join("pgxs/src/test").join(path);
        self.require(&program)?;
        Ok(program)
    }

    /// Fails with the remedy if the server is not installed.
    pub fn require_server(&self) -> Result<()> {
        self.require(&self.programs.join("postgres"))
    }

    /// Fails with the remedy if the extension is not installed.
    pub fn require_extension(&self) -> Result<()> {
        self.require(&self.scripts.join("lanes.control"))?;
        self.require(&self.libraries.join("lanes.so"))
    }

    fn require(&self, file: &Path) -> Result<()> {
        if file.exists() {
            return Ok(());
        }
        Err(Error::Missing {
            what: format!("{} of PostgreSQL {}", file.display(), self.major),
            remedy: "run `make setup`, which builds and installs the extension",
        })
    }
}

/// Returns the major version in `PostgreSQL 18.4 (…)`, if the extension supports it.
fn supported_major(version: &str) -> Result<String> {
    let number = version.split_whitespace().nth(1).unwrap_or_default();
    let major: String = number.chars().take_while(char::is_ascii_digit).collect();
    if SUPPORTED_MAJORS.contains(&major.as_str()) {
        return Ok(major);
    }
    Err(Error::Other(format!(
        "the extension does not support `{version}`; choose the pg_config of one of PostgreSQL {}",
        SUPPORTED_MAJORS.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_installation_is_where_its_pg_config_says() {
        let debian = Postgres::debian();
        assert_eq!(Postgres::of(&debian.pg_config()).unwrap(), debian);
        assert!(debian.is_default());
    }

    #[test]
    fn major_versions_are_read_and_unsupported_ones_refused() {
        for (version, major) in [
            ("PostgreSQL 15.14 (Debian 15.14-0+deb12u1)", "15"),
            ("PostgreSQL 18.4", "18"),
            ("PostgreSQL 18beta1", "18"),
        ] {
            assert_eq!(supported_major(version).unwrap(), major);
        }
        for version in ["PostgreSQL 14.19", "PostgreSQL", "", "PostgreSQL devel"] {
            let told = supported_major(version).unwrap_err().to_string();
            assert!(told.contains("15, 16, 17, 18"), "{told}");
        }
    }

    #[test]
    fn a_program_that_is_no_pg_config_is_refused() {
        let told = Postgres::of(Path::new("/bin/true"))
            .unwrap_err()
            .to_string();
        assert!(told.contains(VARIABLE), "{told}");
    }
}
