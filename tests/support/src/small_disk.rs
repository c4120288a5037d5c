//! A file system of a few megabytes that a test can fill.
//!
//! It is a tmpfs in a mount namespace that a process keeps alive. A program that is started
//! [through](SmallDisk::through) the disk sees it in its folder. The test itself sees it through
//! that process in `/proc`. Without root it is created in a user namespace.

use crate::account::we_are_root;
use crate::error::{Error, Result};
use crate::place;
use crate::process::{Process, Signal};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);
/// The allocation unit of a tmpfs.
const PAGE_BYTES: usize = 4096;
/// The file that takes all remaining space.
const FILLER: &str = "filler";

/// A disk. It ends with the value.
#[derive(Debug)]
pub struct SmallDisk {
    keeper: Process,
    folder: PathBuf,
}

impl SmallDisk {
    /// Creates an empty disk of `bytes` bytes.
    ///
    /// # Errors
    /// File systems cannot be mounted here, neither as root nor in a user namespace.
    pub fn new(name: &str, bytes: u64) -> Result<SmallDisk> {
        let folder = std::env::temp_dir().join(format!("lanes-disk-{name}-{}", std::process::id()));
        place::make_folder(&folder)?;
        let mut command = Command::new("unshare");
        command.arg("--mount");
        if !we_are_root() {
            command.arg("--map-root-user");
        }
        // The process ends by itself if the test is killed.
        command.args([
            "sh",
            "-c",
            "mount -t tmpfs -o \"size=$1\" lanes \"$0\" && exec sleep 3600",
        ]);
        command.arg(&folder).arg(bytes.to_string());
        let log = folder.with_extension("log");
        let mut keeper = Process::start("the keeper of a small disk", &mut command, &log)?;
        let mounts = PathBuf::from(format!("/proc/{}/mounts", keeper.id()));
        let line = format!("lanes {} tmpfs", folder.display());
        keeper.wait_until("a small disk", TIMEOUT, || {
            std::fs::read_to_string(&mounts).is_ok_and(|mounts| mounts.contains(&line))
        })?;
        Ok(SmallDisk { keeper, folder })
    }

    /// Returns the folder in which programs that are started through the disk see it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the words of a command that starts a program with the disk, in the same process.
    pub fn through(&self) -> Vec<String> {
        let target = format!("--target={}", self.keeper.id());
        let mut words = vec!["nsenter".to_owned(), target, "--mount".to_owned()];
        if !we_are_root() {
            words.extend(["--user", "--preserve-credentials"].map(str::to_owned));
        }
        words
    }

    /// Takes all remaining space.
    ///
    /// # Errors
    /// Any error other than a full disk.
    pub fn fill(&self) -> Result<()> {
        let path = self.filler();
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(&path);
        let mut file = file.map_err(Error::file("fill", &path))?;
        loop {
            match file.write_all(&[0; PAGE_BYTES]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(Error::file("fill", path)(error)),
            }
        }
    }

    /// Releases the space that [`fill`](Self::fill) took.
    ///
    /// # Errors
    /// The disk was not filled.
    pub fn free(&self) -> Result<()> {
        let path = self.filler();
        std::fs::remove_file(&path).map_err(Error::file("remove", &path))
    }

    fn filler(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.keeper.id()));
        let folder = self.folder.strip_prefix("/").unwrap_or(&self.folder);
        root.join(folder).join(FILLER)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.keeper.stop(Signal::KILL, TIMEOUT);
        let _ = std::fs::remove_dir(&self.folder);
        let _ = std::fs::remove_file(self.folder.with_extension("log"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(disk: &SmallDisk, name: &str) -> Result<String> {
        let mut command = crate::process::through(&disk.through(), Path::new("sh"));
        command.args(["-c", "head -c 100000 /dev/zero > \"$0\""]);
        crate::process::run(command.arg(disk.folder().join(name)))
    }

    #[test]
    fn a_small_disk_is_full_and_free_again() {
        let disk = SmallDisk::new("own", 1 << 20).unwrap();
        write(&disk, "first").unwrap();
        assert!(
            !disk.folder().join("first").exists(),
            "the file is visible only through the disk"
        );
        disk.fill().unwrap();
        let error = write(&disk, "second").unwrap_err().to_string();
        assert!(error.contains("No space left"), "{error}");
        disk.free().unwrap();
        write(&disk, "second").unwrap();
    }
}
