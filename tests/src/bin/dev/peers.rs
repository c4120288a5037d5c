//! `dev peers`: the peers of the bench. Prometheus, node_exporter and nginx are Debian packages.
//! VictoriaMetrics and vmagent are built from their Go modules, once for each version, into
//! `.lanes/peers`. The load generators for the cross-check are wrk, a Debian package, and k6, a Go
//! module. Go modules too are vmalert, which `dev test` builds for the tests of rules, and MinIO and
//! the newest Prometheus, which `dev test-long` builds for tests of object storage and of PromQL.
//!
//! The newest versions require a newer Go than Debian's. An old Go (Debian's 1.19) cannot switch to
//! a newer toolchain by itself, but it can download one as a module. The toolchain's programs then
//! only have to be made executable.

use crate::packages::{self, Purpose};
use crate::steps::step;
use lanes_support::error::{Error, Result};
use lanes_support::place;
use lanes_support::process::{run, run_visibly};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The measured versions of VictoriaMetrics: the one that most published figures are about, and the
/// newest.
const VICTORIA_METRICS: [&str; 2] = ["1.102.1", place::VICTORIA_METRICS_NEWEST];
const MODULE: &str = "github.com/VictoriaMetrics/VictoriaMetrics";
/// The programs of the module that are built for the bench.
const PROGRAMS: [&str; 2] = ["victoria-metrics", "vmagent"];
/// The load generator. Its version is part of its path.
const K6: &str = "go.k6.io/k6@v1.8.1";
/// The S3 server, whose releases have no version numbers of Go's form.
const MINIO: &str = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c";
/// The newest Prometheus, whose answers are the reference of PromQL. Its version is part of its
/// path.
const PROMETHEUS: (&str, &str) = ("github.com/prometheus/prometheus", "0.316.0");
/// The oldest Go that builds all versions, which is also the toolchain that is downloaded if the
/// installed one is older.
const GO_MINIMUM: (u32, u32, u32) = (1, 26, 6);
const GO_TOOLCHAIN: &str = "golang.org/toolchain@v0.0.1-go1.26.8.linux-amd64";

/// A group of programs that are installed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Debian's packages: Prometheus, node_exporter, nginx, wrk.
    Debian,
    /// VictoriaMetrics and vmagent, all versions.
    VictoriaMetrics,
    /// The load generator k6.
    K6,
    /// MinIO.
    Minio,
}

impl Peer {
    /// All peers.
    pub const ALL: [Peer; 4] = [Peer::Debian, Peer::VictoriaMetrics, Peer::K6, Peer::Minio];
}

/// Installs and builds the missing ones of these peers.
pub fn set_up(peers: &[Peer]) -> Result<()> {
    for peer in peers {
        match peer {
            Peer::Debian => packages::install(Purpose::Peers)?,
            Peer::VictoriaMetrics => {
                for version in VICTORIA_METRICS {
                    build(version, &PROGRAMS)?;
                }
            }
            Peer::K6 => install_module(K6, &place::k6()?)?,
            Peer::Minio => set_up_minio()?,
        }
    }
    Ok(())
}

/// Builds MinIO if it is missing.
pub fn set_up_minio() -> Result<()> {
    install_module(MINIO, &place::minio()?)
}

/// Builds the newest Prometheus if it is missing; the first time takes about ten minutes. It has no
/// pages for browsers, which are not part of the module.
pub fn set_up_prometheus() -> Result<()> {
    let program = place::newest_prometheus()?;
    let folder = program.ancestors().nth(2).unwrap_or(&program).to_owned();
    let (module, version) = PROMETHEUS;
    let packages = [("prometheus", format!("{module}/cmd/prometheus"))];
    build_programs("Prometheus", (module, version), &packages, &folder)
}

/// Builds vmalert if it is missing; the first time takes about a minute.
pub fn set_up_vmalert() -> Result<()> {
    build(place::VICTORIA_METRICS_NEWEST, &["vmalert"])
}

fn build(version: &str, programs: &[&str]) -> Result<()> {
    let folder = place::victoria_metrics(version)?;
    let package = |program: &&str| format!("{MODULE}/app/{program}");
    let packages: Vec<_> = programs
        .iter()
        .map(|program| (*program, package(program)))
        .collect();
    build_programs("VictoriaMetrics", (MODULE, version), &packages, &folder)
}

/// Builds programs of a module, each with its name and package, unless all of them exist.
fn build_programs(
    name: &str,
    (module, version): (&str, &str),
    packages: &[(&str, String)],
    folder: &Path,
) -> Result<()> {
    let programs = folder.join("bin");
    if packages
        .iter()
        .all(|(program, _)| programs.join(program).exists())
    {
        return Ok(());
    }
    place::make_folder(&programs)?;
    let module_file = folder.join("go.mod");
    std::fs::write(&module_file, module_text(module, version, packages))
        .map_err(Error::file("write", &module_file))?;
    let mut command = Command::new(go()?);
    command.current_dir(folder).env("GOFLAGS", "-mod=mod");
    // The build has a folder of its own: an interrupted build must not look complete.
    let draft = folder.join("building");
    place::make_folder(&draft)?;
    command
        .args(["build", "-ldflags", "-s -w", "-o"])
        .arg(&draft);
    command.args(packages.iter().map(|(_, package)| package));
    step(&format!("building {name} {version}"), || {
        run_visibly(&mut command)
    })?;
    for (program, _) in packages {
        let built = draft.join(program);
        std::fs::rename(&built, programs.join(program)).map_err(Error::file("move", built))?;
    }
    std::fs::remove_dir(&draft).map_err(Error::file("remove", draft))
}

/// Builds a module with one program, unless the program exists.
fn install_module(module: &str, program: &Path) -> Result<()> {
    let Some(folder) = program.parent().filter(|_| !program.exists()) else {
        return Ok(());
    };
    place::make_folder(folder)?;
    // Go installs the program only when it is complete.
    let mut command = Command::new(go()?);
    command.current_dir("/").env("GOBIN", folder);
    step(&format!("building {module}"), || {
        run_visibly(command.args(["install", "-ldflags", "-s -w", module]))
    })
}

/// Returns a module that requires nothing but another module, so that its programs are built with
/// its own versions of dependencies.
fn module_text(module: &str, version: &str, packages: &[(&str, String)]) -> String {
    let tools: String = packages
        .iter()
        .map(|(_, package)| format!("\t{package}\n"))
        .collect();
    format!("module peers\n\ngo 1.24\n\nrequire {module} v{version}\n\ntool (\n{tools})\n")
}

/// Returns a Go that is new enough.
fn go() -> Result<PathBuf> {
    packages::install(Purpose::Go)?;
    let installed = Path::new("go");
    let version = run(Command::new(installed).args(["version"]))?;
    if parse_version(&version).is_some_and(|version| version >= GO_MINIMUM) {
        return Ok(installed.to_owned());
    }
    println!("==> fetching a newer Go ({GO_TOOLCHAIN})");
    let mut command = Command::new(installed);
    command.args(["mod", "download", "-json", GO_TOOLCHAIN]);
    let answer = run(command.current_dir("/"))?;
    let answer: serde_json::Value =
        serde_json::from_str(&answer).map_err(|error| Error::Other(error.to_string()))?;
    let folder = answer["Dir"].as_str().map(PathBuf::from).ok_or_else(|| {
        Error::Other(format!(
            "`go mod download` does not report a folder: {answer}"
        ))
    })?;
    for programs in ["bin", "pkg/tool/linux_amd64"] {
        make_executable(&folder.join(programs))?;
    }
    Ok(folder.join("bin/go"))
}

/// Parses the version in `go version go1.26.8 linux/amd64`.
fn parse_version(text: &str) -> Option<(u32, u32, u32)> {
    let number = text.split_whitespace().nth(2)?.strip_prefix("go")?;
    let mut parts = number.split('.').map(|part| part.parse::<u32>());
    let mut next = || parts.next().unwrap_or(Ok(0)).ok();
    Some((next()?, next()?, next()?))
}

fn make_executable(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder).map_err(Error::file("list", folder))? {
        let path = entry.map_err(Error::file("list", folder))?.path();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
            .map_err(Error::file("make executable", path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_compare_by_number() {
        let version = |text: &str| parse_version(&format!("go version {text} linux/amd64"));
        assert_eq!(version("go1.19.8"), Some((1, 19, 8)));
        assert_eq!(version("go1.27"), Some((1, 27, 0)));
        assert!(version("go1.27") > Some(GO_MINIMUM) && version("go1.9.9") < Some(GO_MINIMUM));
        assert_eq!(version("devel"), None);
    }
}
