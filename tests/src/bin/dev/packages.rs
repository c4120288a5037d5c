//! Debian packages, installed without leaving a daemon or a system cluster behind.
//!
//! Installing PostgreSQL on Debian makes and starts a cluster, and installing Prometheus starts it: neither is wanted here.
//! While apt runs, two of Debian's own switches are set and afterwards taken back: `create_main_cluster = false` in
//! `/etc/postgresql-common/createcluster.d`, and a `policy-rc.d` that refuses to start services. Prometheus's services, if
//! we installed them, are not started at the next boot either. A package that is there already is not touched.

use crate::steps::step;
use lanes_support::account::we_are_root;
use lanes_support::error::{Error, Result};
use lanes_support::place::POSTGRES_MAJOR;
use lanes_support::process::{run, run_to_output};
use std::path::Path;
use std::process::Command;

/// What the packages are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// `make run`.
    Run,
    /// `make demo`: Prometheus too.
    Demo,
    /// `make test`: Prometheus, virtual environments of Python, readers of compose files and shell scripts.
    Test,
    /// `make test-long`: besides, valgrind, what builds and runs images, and Go where there is none.
    TestLong,
    /// `make bench-sql`: virtual environments of Python too.
    Bench,
    /// What the bench compares with: Prometheus, node_exporter, nginx, wrk.
    Peers,
    /// Programs that are Go modules: Go where there is none.
    Go,
}

const CLUSTER_SWITCH: &str = "/etc/postgresql-common/createcluster.d/pg_lanes.conf";
const SERVICE_SWITCH: &str = "/usr/sbin/policy-rc.d";
/// Packages whose service Debian would start at boot. PostgreSQL's has no cluster to start, and one that is made later
/// should be started.
const SERVICES: [(&str, &str); 4] = [
    ("docker.io", "docker.service"),
    ("prometheus", "prometheus.service"),
    (
        "prometheus-node-exporter",
        "prometheus-node-exporter.service",
    ),
    ("nginx-light", "nginx.service"),
];

/// Installs what is missing.
pub fn install(purpose: Purpose) -> Result<()> {
    let missing: Vec<String> = wanted(purpose)
        .into_iter()
        .filter(|package| !is_installed(package))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(Error::Missing {
            what: format!(
                "apt-get (this is made for Debian 12; elsewhere install the like of {})",
                missing.join(" ")
            ),
            remedy: "install the packages by hand",
        });
    }
    let fresh: Vec<&str> = SERVICES
        .iter()
        .filter(|(package, _)| !is_installed(package))
        .map(|(_, service)| *service)
        .collect();
    let step_name = format!("installing Debian packages: {}", missing.join(" "));
    step(&step_name, || {
        let _switches = Switches::set()?;
        apt(&["update", "-qq"])?;
        let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
        arguments.extend(missing.iter().map(String::as_str));
        apt(&arguments)
    })?;
    for service in fresh {
        // Fails where there is no systemd; then nothing is started at boot anyway.
        let _ = run_to_output(as_root("systemctl").args(["--quiet", "disable", service]));
    }
    Ok(())
}

fn wanted(purpose: Purpose) -> Vec<String> {
    let mut packages = vec![
        format!("postgresql-{POSTGRES_MAJOR}"),
        format!("postgresql-server-dev-{POSTGRES_MAJOR}"),
        "libhwy-dev".to_owned(),
        "clang".to_owned(),
        "libclang-dev".to_owned(),
        "g++".to_owned(),
        "pkg-config".to_owned(),
    ];
    match purpose {
        Purpose::Run => {}
        Purpose::Demo => {
            packages.extend(["prometheus", "prometheus-node-exporter"].map(str::to_owned));
        }
        Purpose::Test | Purpose::TestLong => {
            packages.extend(["prometheus", "prometheus-node-exporter"].map(str::to_owned));
            packages.extend(["python3-venv", "docker-compose", "shellcheck"].map(str::to_owned));
            if purpose == Purpose::TestLong {
                packages.extend(
                    ["valgrind", "docker.io", "iptables", "debootstrap"].map(str::to_owned),
                );
                packages.extend(go());
            }
        }
        Purpose::Bench => packages.push("python3-venv".to_owned()),
        Purpose::Peers => {
            packages.extend(
                [
                    "prometheus",
                    "prometheus-node-exporter",
                    "nginx-light",
                    "wrk",
                ]
                .map(str::to_owned),
            );
        }
        Purpose::Go => packages.extend(go()),
    }
    packages
}

/// The package of Go, where there is no other.
fn go() -> Option<String> {
    let version = run(Command::new("go").arg("version"));
    version.is_err().then(|| "golang-go".to_owned())
}

fn is_installed(package: &str) -> bool {
    let status = run(Command::new("dpkg-query").args(["-W", "-f", "${db:Status-Status}", package]));
    status.is_ok_and(|status| status == "installed")
}

/// Runs apt-get. Its output is shown only when it fails: on success it is a long list of unpacked packages.
fn apt(arguments: &[&str]) -> Result<()> {
    let mut command = as_root("env");
    run(command
        .args(["DEBIAN_FRONTEND=noninteractive", "apt-get"])
        .args(arguments))?;
    Ok(())
}

/// A command that runs as root, through sudo when we are not.
pub fn as_root(program: &str) -> Command {
    if we_are_root() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.arg(program);
    command
}

/// The two switches, taken back when dropped. A `policy-rc.d` that is there already is left to decide.
struct Switches {
    ours: Vec<&'static str>,
}

impl Switches {
    fn set() -> Result<Switches> {
        let mut switches = Switches { ours: Vec::new() };
        switches.write(CLUSTER_SWITCH, "create_main_cluster = false\n", "0644")?;
        if !Path::new(SERVICE_SWITCH).exists() {
            switches.write(SERVICE_SWITCH, "#!/bin/sh\nexit 101\n", "0755")?;
        }
        Ok(switches)
    }

    fn write(&mut self, path: &'static str, text: &str, mode: &str) -> Result<()> {
        let draft = std::env::temp_dir().join(format!("lanes-switch-{}", std::process::id()));
        std::fs::write(&draft, text).map_err(Error::file("write", &draft))?;
        let result = run(as_root("install")
            .args(["-D", "-m", mode])
            .arg(&draft)
            .arg(path));
        let _ = std::fs::remove_file(&draft);
        result?;
        self.ours.push(path);
        Ok(())
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        for path in &self.ours {
            if let Err(error) = run(as_root("rm").args(["-f", path])) {
                eprintln!("please remove {path}: {error}");
            }
        }
        // Fails, as it should, when there is something of others in the folder.
        let folder = Path::new(CLUSTER_SWITCH).parent().unwrap_or(Path::new("/"));
        let _ = run(as_root("rmdir").arg(folder));
    }
}
