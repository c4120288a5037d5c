//! The product: gateway and extension built, laid out for installation, and the extension
//! installed.
//!
//! Everything that is built is first laid out in one folder, the *package*, as under `/`:
//!
//! ```text
//! target/package/usr/local/bin/lanes-gateway
//!                usr/lib/postgresql/15/lib/lanes.so
//!                usr/share/postgresql/15/extension/lanes.control, lanes--<version>.sql
//! ```
//!
//! The folders of the extension are those of the chosen installation of PostgreSQL.
//! `make run`, the tests and the images use the package, and never Cargo's own output, which tests
//! of the gateway replace. The extension's SQL is the concatenation of the files in `sql/`
//! ([`EXTENSION_SQL`]).

use crate::packages::{self, Purpose, as_root};
use crate::steps;
use lanes_support::error::{Error, Result};
use lanes_support::installation::Postgres;
use lanes_support::place::{self, under};
use lanes_support::process::{run, run_visibly};
use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The script of `CREATE EXTENSION`: these files of `sql/`, in this order.
const EXTENSION_SQL: [&str; 11] = [
    "bootstrap.sql",
    "functions.sql",
    "ingest.sql",
    "sealing.sql",
    "remote.sql",
    "objects.sql",
    "asof.sql",
    "inspect.sql",
    "prometheus.sql",
    "labels.sql",
    "promql.sql",
];

/// Installs missing packages, builds, and installs the extension into the chosen installation of
/// PostgreSQL.
pub fn set_up(purpose: Purpose) -> Result<()> {
    let postgres = Postgres::chosen()?;
    build(purpose, &postgres)?;
    install_into(&postgres)
}

/// Builds the extension for an installation of PostgreSQL, and installs it there.
pub fn set_up_extension(postgres: &Postgres) -> Result<()> {
    build_extension(postgres)?;
    install_into(postgres)
}

fn install_into(postgres: &Postgres) -> Result<()> {
    steps::step("installing the extension", || {
        install(postgres, &place::package(), Path::new("/"))
    })
}

/// Installs missing packages, builds, and lays the extension and the gateway out under `root` as
/// under `/`, for images.
pub fn stage(root: &Path) -> Result<()> {
    let postgres = Postgres::chosen()?;
    build(Purpose::Run, &postgres)?;
    for folder in [&postgres.libraries, &postgres.scripts] {
        place::make_folder(&under(root, folder))?;
    }
    install(&postgres, &place::package(), root)?;
    let program = under(root, Path::new(place::GATEWAY_PROGRAM));
    if let Some(folder) = program.parent() {
        place::make_folder(folder)?;
    }
    let source = under(&place::package(), Path::new(place::GATEWAY_PROGRAM));
    run(Command::new("install")
        .args(["-m", "0755"])
        .arg(source)
        .arg(program))?;
    Ok(())
}

/// Installs missing packages, builds gateway and extension, and lays out the package.
pub fn build(purpose: Purpose, postgres: &Postgres) -> Result<()> {
    packages::install(purpose)?;
    let gateway = [
        "build",
        "--locked",
        "--release",
        "--package",
        "lanes-gateway",
    ];
    if postgres.is_default() {
        // One call builds both, so that the compiler uses all cores until the end.
        steps::step("building the gateway and the extension", || {
            run_visibly(cargo().args(gateway).args(["--package", "lanes"]))
        })?;
        lay_out_extension(postgres, &place::target())?;
    } else {
        steps::step("building the gateway", || {
            run_visibly(cargo().args(gateway))
        })?;
        build_extension(postgres)?;
    }
    let program = place::target().join("release/lanes-gateway");
    add(Path::new(place::GATEWAY_PROGRAM), &program, 0o755)
}

/// Builds the extension for another installation than the default one, and lays it out. The builds
/// have a target folder for each major version: in a common one each would replace the library, and
/// Cargo would compile it again at every change of the version.
pub fn build_extension(postgres: &Postgres) -> Result<()> {
    let major = &postgres.major;
    let folder = place::target().join("versions").join(major);
    steps::step(
        &format!("building the extension for PostgreSQL {major}"),
        || {
            run_visibly(
                cargo()
                    .args(["build", "--locked", "--release", "--package", "lanes"])
                    .args(["--no-default-features", "--features", &format!("pg{major}")])
                    .env("CARGO_TARGET_DIR", &folder)
                    .env("PGRX_PG_CONFIG_PATH", postgres.pg_config()),
            )
        },
    )?;
    lay_out_extension(postgres, &folder)
}

/// Copies the built extension of a target folder to its places in the package.
fn lay_out_extension(postgres: &Postgres, target: &Path) -> Result<()> {
    let library = target.join("release/liblanes.so");
    add(&postgres.libraries.join("lanes.so"), &library, 0o755)?;
    let (package, version) = (place::package(), env!("CARGO_PKG_VERSION"));
    let script = postgres.scripts.join(format!("lanes--{version}.sql"));
    replace(
        &under(&package, &script),
        extension_script()?.as_bytes(),
        0o644,
    )?;
    for upgrade in upgrades()? {
        let text = std::fs::read(&upgrade).map_err(Error::file("read", &upgrade))?;
        let name = upgrade.file_name().unwrap_or_default();
        replace(&under(&package, &postgres.scripts.join(name)), &text, 0o644)?;
    }
    let control = place::workspace().join("extension/lanes.control");
    let text = std::fs::read_to_string(&control).map_err(Error::file("read", &control))?;
    let text = text.replace("@CARGO_VERSION@", version);
    replace(
        &under(&package, &postgres.scripts.join("lanes.control")),
        text.as_bytes(),
        0o644,
    )
}

/// The folder of the scripts that upgrade the extension, and of the scripts of releases.
fn upgrade_folder() -> PathBuf {
    place::workspace().join("sql/upgrade")
}

/// Returns the scripts of `ALTER EXTENSION lanes UPDATE`.
fn upgrades() -> Result<Vec<PathBuf>> {
    let folder = upgrade_folder();
    let entries = std::fs::read_dir(&folder).map_err(Error::file("list", &folder))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths
        .filter(|path| path.extension().is_some_and(|found| found == "sql"))
        .collect())
}

/// Writes the script of the current version where those of releases are kept.
pub fn freeze() -> Result<()> {
    let file = frozen();
    replace(&file, extension_script()?.as_bytes(), 0o644)?;
    println!("{}", file.display());
    Ok(())
}

/// Returns the file in which the script of the current version is kept from its release on.
fn frozen() -> PathBuf {
    let version = env!("CARGO_PKG_VERSION");
    upgrade_folder().join(format!("released/lanes--{version}.sql"))
}

/// Copies a built file to its place in the package, unless it is there unchanged.
fn add(destination: &Path, built: &Path, mode: u32) -> Result<()> {
    let bytes = std::fs::read(built).map_err(Error::file("read", built))?;
    replace(&under(&place::package(), destination), &bytes, mode)
}

/// Returns the SQL of the extension, each file with its name.
fn extension_script() -> Result<String> {
    let mut script =
        String::from("\\echo Use \"CREATE EXTENSION lanes\" to load this file. \\quit\n");
    for name in EXTENSION_SQL {
        let file = place::workspace().join("sql").join(name);
        let text = std::fs::read_to_string(&file).map_err(Error::file("read", &file))?;
        script.push_str(&format!("\n-- sql/{name}\n\n{text}"));
    }
    Ok(script)
}

/// Writes a file of the package unless it has these bytes. The file is written under a new name and
/// renamed, because a program may have it mapped.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    if std::fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        place::make_folder(folder)?;
    }
    let draft = path.with_extension("new");
    std::fs::write(&draft, bytes).map_err(Error::file("write", &draft))?;
    std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(mode))
        .map_err(Error::file("open", &draft))?;
    std::fs::rename(&draft, path).map_err(Error::file("write", path))
}

/// Formats all code.
pub fn format() -> Result<()> {
    run_visibly(cargo().args(["fmt", "--all"]))
}

/// Returns Cargo in the workspace, with the target folder that contains this program.
pub fn cargo() -> Command {
    in_workspace(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns a program in the workspace, with the target folder that contains this program.
pub fn in_workspace(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(place::workspace())
        .env("CARGO_TARGET_DIR", place::target());
    // `cargo run` sets these variables; build scripts that read them would run again.
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

/// Installs the packaged files that differ below `root`. Each is written under a new name and
/// renamed, because a running PostgreSQL has the library mapped and must keep the old one.
fn install(postgres: &Postgres, package: &Path, root: &Path) -> Result<()> {
    let mut changed = 0;
    for folder in [&postgres.libraries, &postgres.scripts] {
        let (source, target) = (under(package, folder), under(root, folder));
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
            under(root, &postgres.libraries).display()
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
    use std::collections::BTreeSet;

    #[test]
    fn every_sql_file_is_part_of_the_extension() {
        let folder = std::fs::read_dir(place::workspace().join("sql")).unwrap();
        let files: BTreeSet<String> = folder
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".sql"))
            .collect();
        let listed: BTreeSet<String> = EXTENSION_SQL.map(str::to_owned).into();
        assert_eq!(files, listed);
    }

    #[test]
    fn the_sql_of_a_release_does_not_change() {
        let Ok(released) = std::fs::read_to_string(frozen()) else {
            return;
        };
        let is_same = extension_script().unwrap() == released;
        assert!(
            is_same,
            "raise the version first: see sql/upgrade/README.md"
        );
    }

    #[test]
    fn a_file_of_the_package_is_replaced_only_if_its_bytes_differ() {
        let folder = std::env::temp_dir().join(format!("lanes-package-{}", std::process::id()));
        let file = folder.join("lib/lanes.so");
        let written = |bytes: &[u8]| {
            replace(&file, bytes, 0o755).unwrap();
            assert_eq!(std::fs::read(&file).unwrap(), bytes);
            file.metadata().unwrap().ino()
        };
        let first = written(b"first");
        assert_eq!(written(b"first"), first, "the file itself is kept");
        assert_ne!(
            written(b"second"),
            first,
            "a program may have the old one mapped"
        );
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o755);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_of_the_package_are_installed_below_the_root() {
        let folder = std::env::temp_dir().join(format!("lanes-stage-{}", std::process::id()));
        let (package, root) = (folder.join("package"), folder.join("root"));
        let postgres = Postgres::debian();
        for place in [&postgres.libraries, &postgres.scripts] {
            place::make_folder(&under(&package, place)).unwrap();
            place::make_folder(&under(&root, place)).unwrap();
        }
        let library = postgres.libraries.join("lanes.so");
        for text in ["first", "second"] {
            std::fs::write(under(&package, &library), text).unwrap();
            install(&postgres, &package, &root).unwrap();
            assert_eq!(
                std::fs::read_to_string(under(&root, &library)).unwrap(),
                text
            );
        }
        let kept = std::fs::read_dir(under(&root, &postgres.libraries)).unwrap();
        assert_eq!(kept.count(), 1, "no draft is left");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
