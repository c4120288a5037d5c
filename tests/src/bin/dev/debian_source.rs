//! Sources of Debian packages, downloaded and unpacked in part.
//!
//! The system's own list of packages need not name sources, and is not changed: a copy of it that
//! names sources, and a cache of its own, serve the download.

use lanes_support::error::{Error, Result};
use lanes_support::place;
use lanes_support::process::run;
use std::path::{Path, PathBuf};
use std::process::Command;

const SYSTEM_LIST: &str = "/etc/apt/sources.list";
const SYSTEM_LISTS: &str = "/etc/apt/sources.list.d";

/// Returns a folder with the wanted folders of the upstream source of a package, downloaded at the
/// first call.
pub fn debian_source(package: &str, wanted: &[&str]) -> Result<PathBuf> {
    let folder = place::target().join("tools/source").join(package);
    if wanted.iter().all(|part| folder.join(part).is_dir()) {
        return Ok(folder);
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(Error::file("empty", &folder))?;
    }
    let work = folder.with_extension("part");
    if work.exists() {
        std::fs::remove_dir_all(&work).map_err(Error::file("empty", &work))?;
    }
    for part in [
        "lists/partial",
        "cache/archives/partial",
        "sources",
        "source",
    ] {
        place::make_folder(&work.join(part))?;
    }
    write_lists(&work.join("sources"))?;
    run(apt("apt-get", &work).args(["-qq", "update"]))?;
    let found = run(apt("apt-cache", &work).args(["showsrc", "--only-source", package]))?;
    download(&work, package, &versions_in(&found))?;
    let archive = archive_in(&work)?;
    let mut unpack = Command::new("tar");
    unpack.arg("-C").arg(work.join("source")).arg("-xf");
    unpack
        .arg(archive)
        .args(["--strip-components=1", "--wildcards"]);
    run(unpack.args(wanted.iter().map(|part| format!("*/{part}/*"))))?;
    std::fs::rename(work.join("source"), &folder).map_err(Error::file("move", &folder))?;
    std::fs::remove_dir_all(&work).map_err(Error::file("remove", &work))?;
    Ok(folder)
}

/// Downloads the newest version that can be had: a mirror may list versions that it does not keep.
fn download(work: &Path, package: &str, versions: &[String]) -> Result<()> {
    let mut failure = Error::Other(format!("apt lists no source of {package}"));
    for version in versions {
        let wanted = format!("{package}={version}");
        let mut command = apt("apt-get", work);
        command.args(["-qq", "source", "--download-only", &wanted]);
        match run(command.current_dir(work)) {
            Ok(_) => return Ok(()),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Returns the versions in the output of `apt-cache showsrc`, the newest first.
fn versions_in(found: &str) -> Vec<String> {
    let versions = found
        .lines()
        .filter_map(|line| line.strip_prefix("Version: "));
    let mut versions: Vec<String> = versions.map(str::to_owned).collect();
    let numbers = |version: &String| -> Vec<u64> {
        let parts = version.split(|c: char| !c.is_ascii_digit());
        parts.filter_map(|part| part.parse().ok()).collect()
    };
    versions.sort_by_key(|version| std::cmp::Reverse(numbers(version)));
    versions.dedup();
    versions
}

/// Returns a program of apt with lists and a cache of our own.
fn apt(program: &str, work: &Path) -> Command {
    let mut command = Command::new(program);
    let option = |name: &str, value: &Path| format!("{name}={}", value.display());
    for text in [
        option("Dir::Etc::SourceList", Path::new("/dev/null")),
        option("Dir::Etc::SourceParts", &work.join("sources")),
        option("Dir::State::Lists", &work.join("lists")),
        option("Dir::Cache", &work.join("cache")),
        // Apt would read as another account, which may not enter the folder.
        "APT::Sandbox::User=".to_owned(),
    ] {
        command.args(["-o", &text]);
    }
    command
}

/// Writes the system's lists with sources in place of programs.
fn write_lists(folder: &Path) -> Result<()> {
    let mut lists = vec![PathBuf::from(SYSTEM_LIST)];
    if let Ok(entries) = std::fs::read_dir(SYSTEM_LISTS) {
        lists.extend(entries.flatten().map(|entry| entry.path()));
    }
    for list in lists.iter().filter(|list| list.is_file()) {
        let text = std::fs::read_to_string(list).map_err(Error::file("read", list))?;
        let file = folder.join(list.file_name().unwrap_or_default());
        std::fs::write(&file, of_sources(&text)).map_err(Error::file("write", &file))?;
    }
    Ok(())
}

/// Returns a list of packages, of either of apt's formats, with sources in place of programs.
fn of_sources(list: &str) -> String {
    let lines = list.lines().map(|line| match line {
        _ if line.starts_with("Types:") => "Types: deb-src".to_owned(),
        _ => match line.strip_prefix("deb ") {
            Some(rest) => format!("deb-src {rest}"),
            None => line.to_owned(),
        },
    });
    lines.map(|line| line + "\n").collect()
}

/// Returns the upstream archive that was downloaded.
fn archive_in(work: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(work).map_err(Error::file("list", work))?;
    let is_archive = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.contains(".orig.tar") && !name.ends_with(".asc")
    };
    let found = entries.flatten().map(|entry| entry.path()).find(is_archive);
    found.ok_or_else(|| Error::Other(format!("apt-get left no source in {}", work.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_first() {
        let found = "Package: a\nVersion: 15.9-0\n\nVersion: 15.20-0\nVersion: 15.9-0\n";
        assert_eq!(versions_in(found), ["15.20-0", "15.9-0"]);
    }

    #[test]
    fn both_formats_of_lists_name_sources() {
        let newer = "Types: deb\nURIs: here\n";
        assert_eq!(of_sources(newer), "Types: deb-src\nURIs: here\n");
        let older = "# a note\ndeb here main\ndeb-src here main\n";
        let sources = "# a note\ndeb-src here main\ndeb-src here main\n";
        assert_eq!(of_sources(older), sources);
    }
}
