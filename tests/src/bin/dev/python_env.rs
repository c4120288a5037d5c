//! Virtual environments of Python in the target folder, created from lists of packages with pinned
//! versions.
//!
//! An environment keeps a copy of its list. A changed list creates the environment again.

use crate::home::shown;
use crate::steps::step;
use lanes_support::error::{Error, Result};
use lanes_support::place;
use lanes_support::process::run_visibly;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's own Python, for which `packages` installs the module `venv`.
const PYTHON: &str = "/usr/bin/python3";

/// Creates the environment `folder` unless it exists with the packages of the list. Returns its
/// program `python`.
pub fn python(folder: &Path, requirements: &Path) -> Result<PathBuf> {
    let program = folder.join("bin/python");
    let made_from = folder.join("requirements.txt");
    if same_text(requirements, &made_from) {
        return Ok(program);
    }
    step(
        &format!("installing the packages of {}", shown(requirements)),
        || {
            if let Some(parent) = folder.parent() {
                place::make_folder(parent)?;
            }
            run_visibly(
                Command::new(PYTHON)
                    .args(["-m", "venv", "--clear"])
                    .arg(folder),
            )?;
            run_visibly(
                pip_install(&program)
                    .args(["--no-deps", "--requirement"])
                    .arg(requirements),
            )?;
            std::fs::copy(requirements, &made_from).map_err(Error::file("write", &made_from))?;
            Ok(())
        },
    )?;
    Ok(program)
}

/// The version of Python whose wheels are unpacked, which every list has.
const WHEELS_FOR: &str = "3.12";

/// Unpacks the wheels of a list into a folder, unless it has them. Their files are used, and not
/// their Python, so the version that they are for need not be installed.
pub fn wheels(folder: &Path, requirements: &Path) -> Result<()> {
    let made_from = folder.join("requirements.txt");
    if same_text(requirements, &made_from) {
        return Ok(());
    }
    let python = environment()?;
    step(
        &format!("unpacking the wheels of {}", shown(requirements)),
        || {
            if folder.exists() {
                std::fs::remove_dir_all(folder).map_err(Error::file("empty", folder))?;
            }
            run_visibly(
                pip_install(&python)
                    .args(["--no-deps", "--only-binary", ":all:", "--no-compile"])
                    .arg("--ignore-requires-python")
                    .args(["--python-version", WHEELS_FOR, "--target"])
                    .arg(folder)
                    .arg("--requirement")
                    .arg(requirements),
            )?;
            std::fs::copy(requirements, &made_from).map_err(Error::file("write", &made_from))?;
            Ok(())
        },
    )
}

/// Returns a program that the checks use and that is installed as a wheel.
pub fn tool(name: &str) -> Result<PathBuf> {
    Ok(environment()?.with_file_name(name))
}

/// Returns the `python` of the environment of the checks' programs.
fn environment() -> Result<PathBuf> {
    python(
        &place::target().join("tools/venv"),
        &place::workspace().join("tests/requirements.txt"),
    )
}

/// Returns a quiet `pip install` of an environment.
pub fn pip_install(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    command
}

fn same_text(left: &Path, right: &Path) -> bool {
    match (std::fs::read(left), std::fs::read(right)) {
        (Ok(left), Ok(right)) => left == right,
        _ => false,
    }
}
