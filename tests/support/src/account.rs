//! The operating-system account that runs PostgreSQL, and the folders that it can enter.
//!
//! PostgreSQL refuses to run as root. Root therefore runs clusters as the account `postgres` of
//! Debian's package; everyone else runs them as themselves. That account cannot enter a checkout
//! below a private folder such as `/root`. [`Account::can_enter`] finds out by trying, which also
//! respects ACLs and mounts.

use crate::error::{Error, Result};
use crate::process::run;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The account that owns a cluster's files and processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The login name.
    pub name: String,
    /// `Some((uid, gid))` if it is another account than ours, so that each command has to switch to
    /// it.
    other: Option<(u32, u32)>,
}

impl Account {
    /// Returns the account for PostgreSQL: `postgres` if we are root, otherwise our own.
    pub fn for_postgres() -> Result<Account> {
        if !we_are_root() {
            return Ok(Account {
                name: run(Command::new("id").arg("-un"))?.trim().to_owned(),
                other: None,
            });
        }
        let missing = || Error::Missing {
            what: "the operating-system account `postgres` (PostgreSQL refuses to run as root)"
                .to_owned(),
            remedy: "run `make setup`",
        };
        let number = |flag| -> Result<u32> {
            let text = run(Command::new("id").args([flag, "postgres"])).map_err(|_| missing())?;
            text.trim().parse().map_err(|_| missing())
        };
        Ok(Account {
            name: "postgres".to_owned(),
            other: Some((number("-u")?, number("-g")?)),
        })
    }

    /// Returns a command that runs as this account, in `/`, without our `PG*` variables.
    ///
    /// The account may not be able to enter our working folder. `PGDATA`, `PGHOST` or `PGOPTIONS`
    /// of the caller's shell would silently refer to another cluster.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir("/").stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C.UTF-8");
        if let Some((uid, gid)) = self.other {
            // Setting the uid as root also drops our supplementary groups.
            command
                .uid(uid)
                .gid(gid)
                .env("HOME", "/")
                .env("USER", &self.name);
        }
        command
    }

    /// Whether this account can enter the folder, or its nearest existing parent.
    pub fn can_enter(&self, folder: &Path) -> bool {
        let mut nearest: PathBuf = folder.to_owned();
        while !nearest.exists() {
            if !nearest.pop() {
                return false;
            }
        }
        run(self.command("/usr/bin/test").arg("-x").arg(&nearest)).is_ok()
    }

    /// Makes the account the owner of a file or folder that we created.
    pub fn make_owner_of(&self, path: &Path) -> Result<()> {
        if let Some((uid, gid)) = self.other {
            std::os::unix::fs::chown(path, Some(uid), Some(gid))
                .map_err(Error::file("change the owner of", path))?;
        }
        Ok(())
    }
}

/// Whether this process runs as root.
pub fn we_are_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn another_account_cannot_enter_a_private_folder_of_root() {
        if !we_are_root() {
            return;
        }
        let account = Account {
            name: "nobody".to_owned(),
            other: Some((65534, 65534)),
        };
        let private = std::env::temp_dir().join(format!("lanes-account-{}", std::process::id()));
        std::fs::create_dir_all(private.join("inner")).unwrap();
        std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(account.can_enter(&private.join("inner/not yet there")));
        std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!account.can_enter(&private.join("inner/not yet there")));
        std::fs::remove_dir_all(&private).unwrap();
    }

    #[test]
    fn commands_do_not_inherit_the_callers_postgres_settings() {
        let account = Account {
            name: "me".to_owned(),
            other: None,
        };
        let removed: Vec<_> = account
            .command("true")
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .map(|(name, _)| name.to_owned())
            .collect();
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG"))
        {
            assert!(removed.contains(&name));
        }
    }
}
