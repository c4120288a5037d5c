//! In a long run, the check `packages`: what `make package` makes, by the names of the files in it.

use super::outcome::Outcome;
use crate::distribution;
use lanes_support::error::Result;
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
    looked_at.collect()
}

/// Returns the paths that a file should contain and does not.
fn missing(file: &Path, name: &str) -> Result<Vec<String>> {
    let major = name
        .strip_prefix("postgresql-")
        .and_then(|rest| rest.split_once('-'));
    let (mut command, wanted) = match major {
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
