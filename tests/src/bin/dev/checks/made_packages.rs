//! In a long run, the check `packages`: what `make package` makes, by the names of the files in it. Each Debian package
//! is also installed by dpkg below a folder of its own. A server with the files from there has the extension, and after
//! its removal no file is left.

use super::outcome::Outcome;
use crate::distribution;
use crate::packages::as_root;
use crate::versions::{MAJORS, installation};
use lanes_support::cluster::Cluster;
use lanes_support::error::{Error, Result};
use lanes_support::installation::Postgres;
use lanes_support::place::{self, under};
use lanes_support::private_installation::PrivateInstallation;
use lanes_support::process::run;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Makes the packages and the archive, and looks into each.
pub fn check() -> Result<Vec<Outcome>> {
    let start = Instant::now();
    let made = distribution::make()?;
    let time = start.elapsed() / u32::try_from(made.len()).unwrap_or(1).max(1);
    let looked_at = made.iter().map(|file| {
        let name = file.file_name().unwrap_or_default().display().to_string();
        let missing = missing(file, &name)?;
        for path in &missing {
            println!("{name} lacks {path}");
        }
        let passed = missing.is_empty();
        Ok(Outcome { name, passed, time })
    });
    let mut outcomes: Vec<Outcome> = looked_at.collect::<Result<_>>()?;
    for file in &made {
        if let Some(outcome) = installed(file)? {
            outcomes.push(outcome);
        }
    }
    Ok(outcomes)
}

/// Installs a Debian package, uses the extension, and removes the package. `None` for other files.
fn installed(file: &Path) -> Result<Option<Outcome>> {
    let start = Instant::now();
    let name = file.file_name().unwrap_or_default().display().to_string();
    let Some((major, _)) = parts(&name) else {
        return Ok(None);
    };
    let root = place::target().join("distribution/installed");
    make_root(&root)?;
    dpkg(&root, "--install", file.as_os_str())?;
    let used = use_extension(major, &root);
    dpkg(
        &root,
        "--remove",
        format!("postgresql-{major}-lanes").as_ref(),
    )?;
    let left = leaves_files(&root, major);
    if let Err(error) = &used {
        println!("{name}: {error}");
    }
    if left {
        println!("{name} leaves files when it is removed");
    }
    run(as_root("rm").arg("-r").arg(&root))?;
    let passed = used.is_ok() && !left;
    let name = format!("{name}, installed");
    Ok(Some(Outcome {
        name,
        passed,
        time: start.elapsed(),
    }))
}

/// Makes an empty folder in which dpkg can install.
fn make_root(root: &Path) -> Result<()> {
    if root.exists() {
        run(as_root("rm").arg("-r").arg(root))?;
    }
    for folder in ["info", "updates", "triggers"] {
        place::make_folder(&root.join("var/lib/dpkg").join(folder))?;
    }
    for file in ["status", "available"] {
        let path = root.join("var/lib/dpkg").join(file);
        std::fs::write(&path, "").map_err(Error::file("write", &path))?;
    }
    Ok(())
}

/// Runs dpkg below a folder, where none of what the package depends on is installed.
fn dpkg(root: &Path, action: &str, subject: &std::ffi::OsStr) -> Result<()> {
    let mut command = as_root("dpkg");
    command
        .arg("--root")
        .arg(root)
        .args(["--force-depends", "--log=/dev/null"]);
    run(command.arg(action).arg(subject)).map(drop)
}

/// Starts a server with the extension of a package that is installed below a folder, and uses it.
fn use_extension(major: &str, root: &Path) -> Result<()> {
    let postgres = match MAJORS.contains(&major) {
        true => installation(major)?,
        false => Postgres::debian(),
    };
    let private = PrivateInstallation::of(&postgres)?;
    private.take_extension(root, &Postgres::debian_of(major))?;
    let cluster = Cluster::builder("package")
        .postgres(private.postgres())
        .start()?;
    let run = |sql: &str| cluster.psql("postgres", sql);
    run("CREATE EXTENSION lanes; CREATE TABLE t (k int PRIMARY KEY) USING lanes")?;
    run("INSERT INTO t SELECT generate_series(1, 5000)")?;
    run("SELECT lanes.seal('t')")?;
    let answer = run("SELECT count(*), sum(k) FROM t; SELECT count(*) FROM lanes.check('t')")?;
    run("DROP EXTENSION lanes CASCADE")?;
    match answer.trim() {
        "5000|12502500\n0" => Ok(()),
        other => Err(Error::Other(format!("the answers are {other}"))),
    }
}

/// Whether files of the extension are left below a folder.
fn leaves_files(root: &Path, major: &str) -> bool {
    let postgres = Postgres::debian_of(major);
    let folders = [&postgres.libraries, &postgres.scripts].into_iter();
    folders
        .map(|folder| under(root, folder))
        .any(|folder| folder.exists())
}

/// Returns the major version that a Debian package is for, and the rest of its name.
fn parts(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("postgresql-")?.split_once('-')
}

/// Returns the paths that a file should contain and does not.
fn missing(file: &Path, name: &str) -> Result<Vec<String>> {
    let (mut command, wanted) = match parts(name) {
        Some((major, _)) => {
            let mut command = Command::new("dpkg-deb");
            command.arg("--contents");
            let library = format!("/usr/lib/postgresql/{major}/lib/lanes.so");
            let scripts = format!("/usr/share/postgresql/{major}/extension/lanes");
            let wanted = vec![
                library,
                format!("{scripts}.control"),
                format!("{scripts}--{}.sql", env!("CARGO_PKG_VERSION")),
            ];
            (command, wanted)
        }
        None => {
            let mut command = Command::new("tar");
            command.args(["--list", "--file"]);
            (command, vec!["/META.json".to_owned()])
        }
    };
    let listed = run(command.arg(file))?;
    let is_missing = |path: &String| !listed.lines().any(|line| line.ends_with(path.as_str()));
    Ok(wanted.into_iter().filter(is_missing).collect())
}
