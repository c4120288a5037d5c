//! The data folder that initdb creates once for each version of PostgreSQL and that each test
//! copies. A copy takes a tenth of the time of initdb.
//!
//! Copies have the system identifier of their template. Clusters that share an object store need
//! distinct identifiers: [`Builder::distinct`](super::Builder::distinct) runs initdb for them.

use super::layout::Layout;
use crate::account::Account;
use crate::error::{Error, Result};
use crate::place;
use crate::process::run;
use crate::seed;
use std::path::{Path, PathBuf};

/// Creates a data folder by initdb, and adds what every cluster of ours has.
pub(super) fn initdb(
    programs: &Path,
    layout: &Layout,
    account: &Account,
    is_temporary: bool,
) -> Result<()> {
    let password_file = layout.folder.join("superuser.password");
    place::write_private(&password_file, &seed::password())?;
    account.make_owner_of(&password_file)?;
    let mut command = account.command(programs.join("initdb"));
    command.args([
        "--username=postgres",
        "--auth-local=peer",
        "--auth-host=scram-sha-256",
    ]);
    command.args([
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--data-checksums",
        "--no-instructions",
    ]);
    command
        .arg("--pwfile")
        .arg(&password_file)
        .arg("--pgdata")
        .arg(&layout.data);
    if is_temporary {
        command.arg("--no-sync");
    }
    run(&mut command)?;
    layout.adopt(account)
}

/// Copies the template's data folder, which is created at the first call.
pub(super) fn copy(programs: &Path, layout: &Layout, account: &Account) -> Result<()> {
    let template = template(programs, account)?;
    run(account
        .command("/bin/cp")
        .args(["--recursive", "--reflink=auto"])
        .arg(template.join("data"))
        .arg(&layout.data))?;
    Ok(())
}

/// Returns the template's folder. Test programs that run at the same time each create one, and the
/// first to finish keeps it.
fn template(programs: &Path, account: &Account) -> Result<PathBuf> {
    let version = run(account.command(programs.join("initdb")).arg("--version"))?;
    let version: String = version
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '.')
        .collect();
    let parent = place::reachable(&std::env::temp_dir(), account);
    place::make_folder(&parent)?;
    let folder = parent.join(format!("lanes-template-{version}-{}", account.name));
    if Layout::new(&folder).is_made() {
        return Ok(folder);
    }
    let draft = place::test_folder("template", account)?;
    initdb(programs, &Layout::new(&draft), account, true)?;
    // A rename is atomic, so an existing folder is a template that another test program has
    // finished meanwhile.
    if let Err(source) = std::fs::rename(&draft, &folder) {
        let _ = std::fs::remove_dir_all(&draft);
        if !Layout::new(&folder).is_made() {
            return Err(Error::file("make", &folder)(source));
        }
    }
    Ok(folder)
}
