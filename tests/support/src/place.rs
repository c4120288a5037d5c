//! Paths: the target folder, and a folder that a cluster's account can enter.

use crate::account::Account;
use crate::error::{Error, Result};
use crate::process::{Signal, is_alive, send};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns the folder of Docker's daemon, which builds the images for the tests. It is not below
/// the checkout, because a build reads the whole checkout.
pub fn containers() -> PathBuf {
    Path::new(REACHABLE_HOME).join("containers")
}

/// The folder of clusters whose requested folder their account cannot enter.
const REACHABLE_HOME: &str = "/var/lib/pg_lanes";

/// Returns the root of the checkout that this program was built from.
pub fn workspace() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    // This crate is `tests/support` of the checkout.
    crate_folder
        .ancestors()
        .nth(2)
        .unwrap_or(crate_folder)
        .to_owned()
}

/// Returns Cargo's target folder, which contains this program.
pub fn target() -> PathBuf {
    let inside = std::env::current_exe().ok().and_then(|program| {
        program
            .ancestors()
            .find(|folder| folder.join("CACHEDIR.TAG").exists())
            .map(Path::to_owned)
    });
    inside.unwrap_or_else(|| workspace().join("target"))
}

/// The path of the installed gateway.
pub const GATEWAY_PROGRAM: &str = "/usr/local/bin/lanes-gateway";

/// Returns the folder in which the built product is laid out as under `/`.
pub fn package() -> PathBuf {
    target().join("package")
}

/// Returns a path of the system below another root.
pub fn under(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Returns the gateway's program: `LANES_GATEWAY_PROGRAM`, or the one in the package.
pub fn gateway_program() -> Result<PathBuf> {
    let program = match std::env::var_os("LANES_GATEWAY_PROGRAM") {
        Some(program) => PathBuf::from(program),
        None => under(&package(), Path::new(GATEWAY_PROGRAM)),
    };
    if program.exists() {
        return Ok(program);
    }
    let what = format!("the gateway ({})", program.display());
    Err(Error::Missing {
        what,
        remedy: "run `make setup`, which builds it",
    })
}

/// Returns the folder of everything that outlives a build: `LANES_HOME`, or `.lanes` in the
/// checkout.
pub fn home() -> Result<PathBuf> {
    match std::env::var_os("LANES_HOME") {
        Some(folder) if !folder.is_empty() => {
            std::path::absolute(&folder).map_err(Error::file("find", PathBuf::from(&folder)))
        }
        _ => Ok(workspace().join(".lanes")),
    }
}

/// The newest version of VictoriaMetrics that is measured and tested.
pub const VICTORIA_METRICS_NEWEST: &str = "1.150.0";

/// Returns the folder of a version of VictoriaMetrics: `bin/victoria-metrics` and `bin/vmagent` are
/// built for the bench, `bin/vmalert` of the newest version for the tests.
pub fn victoria_metrics(version: &str) -> Result<PathBuf> {
    Ok(home()?.join(format!("peers/victoria-metrics-{version}")))
}

/// Returns the program vmalert, built for the tests of rules.
pub fn vmalert() -> Result<PathBuf> {
    Ok(victoria_metrics(VICTORIA_METRICS_NEWEST)?.join("bin/vmalert"))
}

/// Returns the program k6, built for the bench.
pub fn k6() -> Result<PathBuf> {
    Ok(home()?.join("peers/k6-1.8.1/bin/k6"))
}

/// Returns the newest Prometheus, built for the comparison of answers.
pub fn newest_prometheus() -> Result<PathBuf> {
    Ok(home()?.join("peers/prometheus-0.316.0/bin/prometheus"))
}

/// Returns MinIO's server, built for the tests of object storage.
pub fn minio() -> Result<PathBuf> {
    Ok(home()?.join("peers/minio-20260212201848/bin/minio"))
}

/// Returns a folder for a cluster's account: `wanted` if the account can enter it, otherwise one
/// under `/var/lib/pg_lanes` whose name is derived from `wanted`. The caller creates the folder.
pub fn reachable(wanted: &Path, account: &Account) -> PathBuf {
    if account.can_enter(wanted) {
        return wanted.to_owned();
    }
    Path::new(REACHABLE_HOME).join(short_name(wanted))
}

/// Returns a folder for a Unix socket. The kernel limits the socket's path to 107 bytes.
pub fn socket_folder(cluster: &Path) -> PathBuf {
    const SOCKET_FOLDER_BYTES_MAX: usize = 107 - "/.s.PGSQL.65535".len();
    let wanted = cluster.join("socket");
    if wanted.as_os_str().len() <= SOCKET_FOLDER_BYTES_MAX {
        return wanted;
    }
    Path::new("/tmp").join(format!("pg_lanes-{}", short_name(cluster)))
}

/// Creates a folder for a test, owned by the account: `<temporary folder>/lanes-tests-<our process
/// id>/<name>`. Removes the folders of test runs that were killed, and ends their postmasters.
pub fn test_folder(name: &str, account: &Account) -> Result<PathBuf> {
    let parent = reachable(&std::env::temp_dir(), account);
    make_folder(&parent)?;
    remove_left_behind(&parent);
    let ours = parent.join(format!("{TEST_FOLDER_PREFIX}{}", std::process::id()));
    make_folder(&ours)?;
    let folder = ours.join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(Error::file("empty", &folder))?;
    }
    make_folder(&folder)?;
    account.make_owner_of(&folder)?;
    Ok(folder)
}

const TEST_FOLDER_PREFIX: &str = "lanes-tests-";

/// The name of the file that marks a cluster's folder as kept.
const KEPT_MARKER: &str = "kept";

/// The file in a cluster's folder that marks it as kept; it says how to connect to the cluster.
pub fn kept_marker(cluster: &Path) -> PathBuf {
    cluster.join(KEPT_MARKER)
}

/// Whether a cluster's folder is to be kept until a person removes it.
pub fn is_kept(cluster: &Path) -> bool {
    kept_marker(cluster).exists()
}

/// Returns the folders of all tests of all test runs, including those that have ended.
pub fn test_folders(account: &Account) -> Vec<PathBuf> {
    let runs = entries(&reachable(&std::env::temp_dir(), account));
    let ours = runs.filter(|run| owner(run).is_some());
    ours.flat_map(|run| entries(&run)).collect()
}

fn remove_left_behind(parent: &Path) {
    for run in entries(parent) {
        if owner(&run).is_none_or(is_alive) {
            continue;
        }
        let (kept, others): (Vec<_>, Vec<_>) = entries(&run).partition(|cluster| is_kept(cluster));
        for cluster in &others {
            if let Some(postmaster) = running_postmaster(&cluster.join("data")) {
                send(postmaster, Signal::QUIT);
            }
        }
        // Best effort: another test program may be removing the same folder.
        if kept.is_empty() {
            let _ = std::fs::remove_dir_all(&run);
        } else {
            for cluster in others {
                let _ = std::fs::remove_dir_all(cluster);
            }
        }
    }
}

/// Returns the paths in a folder, or none if it cannot be read.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// Returns the process id of the test run that owns a folder, or `None` for any other folder.
fn owner(folder: &Path) -> Option<u32> {
    let name = folder.file_name()?.to_str()?;
    name.strip_prefix(TEST_FOLDER_PREFIX)?.parse().ok()
}

/// Returns the process id of the postmaster on a data folder, if it is running.
pub fn running_postmaster(data: &Path) -> Option<u32> {
    let file = std::fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let id: u32 = file.lines().next()?.trim().parse().ok()?;
    // The number may belong to another program by now. A postmaster works in its data folder.
    let working_folder = std::fs::read_link(format!("/proc/{id}/cwd")).ok()?;
    (working_folder == data.canonicalize().ok()?).then_some(id)
}

/// Creates a folder that everyone can enter, and its parents.
pub fn make_folder(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(Error::file("make", folder))?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
        .map_err(Error::file("open", folder))
}

/// Writes a file that only its owner can read.
pub fn write_private(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    // A rename replaces the file, so the text is never incomplete or in a file with wider
    // permissions.
    let draft = path.with_extension("new");
    let _ = std::fs::remove_file(&draft);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .map_err(Error::file("create", &draft))?;
    file.write_all(text.as_bytes())
        .map_err(Error::file("write", &draft))?;
    std::fs::rename(&draft, path).map_err(Error::file("write", path))
}

fn short_name(path: &Path) -> String {
    // The hash is stable for one build of the standard library. That suffices for a private folder,
    // because `.lanes` keeps a link to it.
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_paths_stay_below_the_kernels_limit() {
        let short = Path::new("/tmp/x");
        assert_eq!(socket_folder(short), short.join("socket"));
        let long = PathBuf::from(format!("/tmp/{}", "x".repeat(100)));
        assert!(
            socket_folder(&long)
                .join(".s.PGSQL.65535")
                .as_os_str()
                .len()
                <= 107
        );
    }

    #[test]
    fn private_files_are_private_and_replaced_atomically() {
        let path = std::env::temp_dir().join(format!("lanes-private-{}", std::process::id()));
        write_private(&path, "first").unwrap();
        write_private(&path, "second").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_folders_of_a_dead_test_run_are_removed() {
        let parent = std::env::temp_dir().join(format!("lanes-left-{}", std::process::id()));
        let dead = parent.join(format!("{TEST_FOLDER_PREFIX}{}", u32::MAX - 1));
        let alive = parent.join(format!("{TEST_FOLDER_PREFIX}{}", std::process::id()));
        std::fs::create_dir_all(dead.join("cluster/data")).unwrap();
        std::fs::create_dir_all(&alive).unwrap();
        remove_left_behind(&parent);
        assert!(!dead.exists() && alive.exists());

        let (kept, other) = (dead.join("kept_cluster"), dead.join("other_cluster"));
        std::fs::create_dir_all(&kept).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(kept_marker(&kept), "").unwrap();
        remove_left_behind(&parent);
        assert!(kept.exists() && !other.exists());
        std::fs::remove_dir_all(&parent).unwrap();
    }
}
