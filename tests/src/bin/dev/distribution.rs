//! `dev package`: what is given to others, in `target/distribution`.
//!
//! | file | contents |
//! |---|---|
//! | `postgresql-<major>-lanes_<version>-1_<architecture>.deb` | the extension for one version, as Debian lays it out |
//! | `lanes-<version>.tar.gz` | the committed sources, with `META.json` for PGXN |

use crate::packages::Purpose;
use crate::product::{build, build_extension};
use crate::steps::step;
use crate::versions::{MAJORS, installation};
use lanes_support::error::{Error, Result};
use lanes_support::installation::Postgres;
use lanes_support::place::{self, under};
use lanes_support::process::run;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The revision of the Debian packages.
const REVISION: &str = "1";
const LICENCE: &str = "LICENSE";

/// Builds all packages and the archive of the sources, and returns their files.
pub fn make() -> Result<Vec<PathBuf>> {
    let default = Postgres::debian();
    build(Purpose::Test, &default)?;
    let folder = place::target().join("distribution");
    place::make_folder(&folder)?;
    let mut made = vec![sources(&folder)?, debian_package(&default, &folder)?];
    for major in MAJORS {
        let postgres = installation(major)?;
        build_extension(&postgres)?;
        made.push(debian_package(&postgres, &folder)?);
    }
    Ok(made)
}

/// Archives the files of the last commit.
fn sources(folder: &Path) -> Result<PathBuf> {
    let name = format!("lanes-{VERSION}");
    let archive = folder.join(format!("{name}.tar.gz"));
    step("archiving the sources", || {
        run(Command::new("git")
            .current_dir(place::workspace())
            .args(["archive", "--format=tar.gz", &format!("--prefix={name}/")])
            .arg("--output")
            .arg(&archive)
            .arg("HEAD"))
    })?;
    Ok(archive)
}

/// Makes a package of the extension that was built for an installation. It is for Debian's or the
/// PostgreSQL project's packages of the same major version.
fn debian_package(built_for: &Postgres, folder: &Path) -> Result<PathBuf> {
    let target = Postgres::debian_of(&built_for.major);
    let architecture = answer("dpkg", &["--print-architecture"])?;
    let name = format!("postgresql-{}-lanes", target.major);
    let file = folder.join(format!("{name}_{VERSION}-{REVISION}_{architecture}.deb"));
    let root = folder.join(&name);
    if root.exists() {
        std::fs::remove_dir_all(&root).map_err(Error::file("empty", &root))?;
    }
    for (from, to) in [
        (&built_for.libraries, &target.libraries),
        (&built_for.scripts, &target.scripts),
    ] {
        copy_folder(&under(&place::package(), from), &under(&root, to))?;
    }
    let documents = root.join("usr/share/doc").join(&name);
    copy(
        &place::workspace().join(LICENCE),
        &documents.join("copyright"),
    )?;
    let libc = answer(
        "dpkg-query",
        &["-W", "-f", "${source:Upstream-Version}", "libc6"],
    )?;
    let control = root.join("DEBIAN/control");
    write(&control, &control_text(&target.major, &architecture, &libc))?;
    run(Command::new("dpkg-deb")
        .args(["--build", "--root-owner-group"])
        .args([&root, &file]))?;
    std::fs::remove_dir_all(&root).map_err(Error::file("remove", &root))?;
    Ok(file)
}

/// Returns the file that describes a package. The library runs with the libc that it was linked with
/// and with later ones.
fn control_text(major: &str, architecture: &str, libc: &str) -> String {
    format!(
        "Package: postgresql-{major}-lanes\n\
         Version: {VERSION}-{REVISION}\n\
         Architecture: {architecture}\n\
         Section: database\n\
         Priority: optional\n\
         Maintainer: pg_lanes contributors\n\
         Depends: postgresql-{major}, libc6 (>= {libc}), libgcc-s1, libstdc++6\n\
         Description: telemetry and ticks as columns in PostgreSQL {major}\n \
         The extension lanes: a columnar table access method, joins by time, and PromQL in SQL.\n"
    )
}

/// Returns the trimmed output of a program.
fn answer(program: &str, arguments: &[&str]) -> Result<String> {
    Ok(run(Command::new(program).args(arguments))?
        .trim()
        .to_owned())
}

/// Copies the files of a folder.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from).map_err(Error::file("list", from))? {
        let entry = entry.map_err(Error::file("list", from))?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Copies a file with its mode.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        place::make_folder(folder)?;
    }
    std::fs::copy(from, to).map_err(Error::file("write", to))?;
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        place::make_folder(folder)?;
    }
    std::fs::write(file, text).map_err(Error::file("write", file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_depends_on_its_version_of_postgres() {
        let text = control_text("18", "amd64", "2.36");
        for line in [
            "Package: postgresql-18-lanes",
            "Architecture: amd64",
            "Depends: postgresql-18, libc6 (>= 2.36), libgcc-s1, libstdc++6",
            " The extension lanes: a columnar table access method, joins by time, and PromQL in SQL.",
        ] {
            assert!(text.lines().any(|found| found == line), "{text}");
        }
        assert!(text.ends_with('\n'));
    }

    #[test]
    fn the_description_for_pgxn_has_the_version_of_the_workspace() {
        let file = place::workspace().join("META.json");
        let text = std::fs::read_to_string(file).unwrap();
        let meta: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(meta["version"], VERSION);
        let provided = &meta["provides"]["lanes"];
        assert_eq!(provided["version"], VERSION);
        let control = provided["file"].as_str().unwrap();
        assert!(place::workspace().join(control).exists(), "{control}");
    }
}
