//! cargo-pgrx, the extension built and installed, the gateway built.

use crate::packages::{self, Purpose, as_root};
use lanes_tests::error::{Error, Result};
use lanes_tests::place;
use lanes_tests::process::{run, run_visibly};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version of cargo-pgrx; it has to be that of the `pgrx` crate in `extension/Cargo.toml`.
const PGRX_VERSION: &str = "0.18.1";

/// Installs what is missing, builds, installs the extension.
pub fn set_up(purpose: Purpose) -> Result<()> {
    install(&build(purpose)?, Path::new("/"))
}

/// Installs what is missing, builds, and lays the extension and the gateway under `root` as they would lie under `/`: for images.
pub fn stage(root: &Path) -> Result<()> {
    let package = build(Purpose::Run)?;
    for folder in [place::extension_libraries(), place::extension_scripts()] {
        place::make_folder(&under(root, &folder))?;
    }
    install(&package, root)?;
    let programs = root.join("usr/local/bin");
    place::make_folder(&programs)?;
    run(Command::new("install")
        .args(["-m", "0755"])
        .arg(place::gateway_program()?)
        .arg(programs.join("lanes-gateway")))?;
    Ok(())
}

/// Installs what is missing and builds; the folder that is returned has the extension's files under their final paths.
fn build(purpose: Purpose) -> Result<PathBuf> {
    packages::install(purpose)?;
    let pgrx = Pgrx::find_or_install()?;
    pgrx.register_postgres()?;
    println!("==> building the gateway");
    run_visibly(cargo().args([
        "build",
        "--locked",
        "--release",
        "--package",
        "lanes-gateway",
    ]))?;
    println!(
        "==> building the extension for PostgreSQL {}",
        place::POSTGRES_MAJOR
    );
    pgrx.package()
}

/// Formats all code.
pub fn format() -> Result<()> {
    run_visibly(cargo().args(["fmt", "--all"]))
}

/// Cargo, in the workspace, with the target folder that this program was built into.
pub fn cargo() -> Command {
    in_workspace(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn in_workspace(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(place::workspace())
        .env("CARGO_TARGET_DIR", place::target());
    // Set for us by `cargo run`; build scripts that look at them would run again.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
            || text == "CARGO_BIN_NAME"
        {
            command.env_remove(&name);
        }
    }
    command
}

/// cargo-pgrx in the right version.
struct Pgrx {
    program: PathBuf,
}

impl Pgrx {
    /// The user's own one when its version is right, else one of the target folder; the user's is never replaced.
    fn find_or_install() -> Result<Pgrx> {
        let private = place::target().join("tools");
        let candidates = [PathBuf::from("cargo-pgrx"), private.join("bin/cargo-pgrx")];
        for program in &candidates {
            let version = run(Command::new(program).args(["pgrx", "--version"]));
            if version.is_ok_and(|version| version.trim() == format!("cargo-pgrx {PGRX_VERSION}")) {
                return Ok(Pgrx {
                    program: program.clone(),
                });
            }
        }
        println!("==> building cargo-pgrx {PGRX_VERSION} (once, a few minutes)");
        let mut command = cargo();
        command.args([
            "install",
            "cargo-pgrx",
            "--version",
            PGRX_VERSION,
            "--locked",
        ]);
        // Unoptimised: it only starts the compiler and copies files, and is built in half the time.
        command.args(["--debug", "--root"]);
        // Its own target folder: built with other features, its dependencies would push ours out.
        run_visibly(
            command
                .arg(&private)
                .env_remove("CARGO_TARGET_DIR")
                .current_dir("/"),
        )?;
        Ok(Pgrx {
            program: private.join("bin/cargo-pgrx"),
        })
    }

    /// `cargo pgrx …`, in the workspace.
    fn command(&self) -> Command {
        let mut command = in_workspace(&self.program);
        command.arg("pgrx");
        command
    }

    /// Tells pgrx where Postgres is, unless it knows: its build script asks that file, whoever calls cargo.
    fn register_postgres(&self) -> Result<()> {
        let home = match std::env::var_os("PGRX_HOME") {
            Some(folder) => PathBuf::from(folder),
            None => PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/root".into()))
                .join(".pgrx"),
        };
        let known = std::fs::read_to_string(home.join("config.toml")).unwrap_or_default();
        if known
            .lines()
            .any(|line| line.starts_with(&format!("pg{} ", place::POSTGRES_MAJOR)))
        {
            return Ok(());
        }
        let pg_config = pg_config()?;
        run(self.command().arg("init").arg(format!(
            "--pg{}={}",
            place::POSTGRES_MAJOR,
            pg_config.display()
        )))?;
        Ok(())
    }

    /// Builds the extension; the folder that is returned has its files under their final paths.
    fn package(&self) -> Result<PathBuf> {
        let folder = place::target().join("lanes-package");
        let mut command = self.command();
        command
            .args(["package", "--package", "lanes", "--pg-config"])
            .arg(pg_config()?);
        // Its list of copied files goes to standard output and is not wanted; what the compiler says is.
        run_visibly(command.arg("--out-dir").arg(&folder).stdout(Stdio::null()))?;
        Ok(folder)
    }
}

fn pg_config() -> Result<PathBuf> {
    Ok(place::postgres_programs()?.join("pg_config"))
}

/// A path of the system below another root.
fn under(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Brings the packaged files to their places below `root` where they differ: each under a new name first and then renamed, since
/// a running Postgres has the library mapped and must keep the old one.
fn install(package: &Path, root: &Path) -> Result<()> {
    let mut changed = 0;
    for folder in [place::extension_libraries(), place::extension_scripts()] {
        let (source, target) = (under(package, &folder), under(root, &folder));
        for entry in std::fs::read_dir(&source).map_err(Error::file("list", &source))? {
            let entry = entry.map_err(Error::file("list", &source))?;
            let (from, to) = (entry.path(), target.join(entry.file_name()));
            if same_bytes(&from, &to) {
                continue;
            }
            let draft = target.join(format!(".{}.new", entry.file_name().to_string_lossy()));
            let mode = if from.extension().is_some_and(|extension| extension == "so") {
                "0755"
            } else {
                "0644"
            };
            let writable = target
                .metadata()
                .is_ok_and(|folder| folder.uid() == rustix::process::geteuid().as_raw());
            let command = |program: &str| {
                if writable {
                    Command::new(program)
                } else {
                    as_root(program)
                }
            };
            run(command("install").args(["-m", mode]).arg(&from).arg(&draft))?;
            run(command("mv").arg("-f").arg(&draft).arg(&to))?;
            changed += 1;
        }
    }
    match changed {
        0 => println!("    already installed"),
        _ => println!(
            "    installed in {}",
            under(root, &place::extension_libraries()).display()
        ),
    }
    Ok(())
}

fn same_bytes(left: &Path, right: &Path) -> bool {
    match (std::fs::read(left), std::fs::read(right)) {
        (Ok(left), Ok(right)) => left == right,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_package_come_to_their_places_below_the_root() {
        let folder = std::env::temp_dir().join(format!("lanes-stage-{}", std::process::id()));
        let (package, root) = (folder.join("package"), folder.join("root"));
        for place in [place::extension_libraries(), place::extension_scripts()] {
            place::make_folder(&under(&package, &place)).unwrap();
            place::make_folder(&under(&root, &place)).unwrap();
        }
        let library = place::extension_libraries().join("lanes.so");
        for text in ["first", "second"] {
            std::fs::write(under(&package, &library), text).unwrap();
            install(&package, &root).unwrap();
            assert_eq!(
                std::fs::read_to_string(under(&root, &library)).unwrap(),
                text
            );
        }
        let kept = std::fs::read_dir(under(&root, &place::extension_libraries())).unwrap();
        assert_eq!(kept.count(), 1, "no draft is left");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
