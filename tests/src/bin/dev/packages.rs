//! Debian packages, installed without starting a daemon or a system cluster.
//!
//! On Debian the package of PostgreSQL creates and starts a cluster, and that of Prometheus starts
//! its service. To prevent this, two of Debian's own switches are set while apt runs:
//! `create_main_cluster = false` in `/etc/postgresql-common/createcluster.d`, and a `policy-rc.d`
//! that refuses to start services. If Prometheus was installed here, its services do not start at
//! the next boot either. Installed packages are not touched.

use crate::steps::step;
use lanes_support::account::we_are_root;
use lanes_support::error::{Error, Result};
use lanes_support::installation::DEFAULT_MAJOR;
use lanes_support::process::{run, run_to_output};
use std::path::Path;
use std::process::Command;

/// The purpose of the packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// `make run`.
    Run,
    /// `make demo`: with Prometheus.
    Demo,
    /// `make test`: Prometheus, virtual environments of Python, checkers of compose files and shell
    /// scripts, and Node unless it is installed.
    Test,
    /// `make test-long`: also valgrind, Chromium, programs that build and run images, and Go unless it
    /// is installed.
    TestLong,
    /// `make bench-sql`: with virtual environments of Python.
    Bench,
    /// The peers of the bench: Prometheus, node_exporter, nginx, wrk.
    Peers,
    /// Programs that are Go modules: Go unless it is installed.
    Go,
}

const CLUSTER_SWITCH: &str = "/etc/postgresql-common/createcluster.d/pg_lanes.conf";
const SERVICE_SWITCH: &str = "/usr/sbin/policy-rc.d";
/// The packages whose service Debian would start at boot. PostgreSQL is absent: it has no cluster
/// to start, and a cluster that is created later should be started.
const SERVICES: [(&str, &str); 4] = [
    ("docker.io", "docker.service"),
    ("prometheus", "prometheus.service"),
    (
        "prometheus-node-exporter",
        "prometheus-node-exporter.service",
    ),
    ("nginx-light", "nginx.service"),
];

/// Installs the missing packages.
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
                "apt-get (the tool supports Debian 12; elsewhere install the equivalents of {})",
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
        // This fails without systemd, which then starts nothing at boot either.
        let _ = run_to_output(as_root("systemctl").args(["--quiet", "disable", service]));
    }
    Ok(())
}

fn wanted(purpose: Purpose) -> Vec<String> {
    let mut packages = vec![
        format!("postgresql-{DEFAULT_MAJOR}"),
        format!("postgresql-server-dev-{DEFAULT_MAJOR}"),
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
            packages.extend(node());
            if purpose == Purpose::TestLong {
                packages.extend(
                    [
                        "valgrind",
                        "docker.io",
                        "iptables",
                        "debootstrap",
                        "chromium",
                    ]
                    .map(str::to_owned),
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

/// Returns the package of Go, unless another Go is installed.
fn go() -> Option<String> {
    let version = run(Command::new("go").arg("version"));
    version.is_err().then(|| "golang-go".to_owned())
}

/// Returns the package of Node, unless another Node is installed.
fn node() -> Option<String> {
    let version = run(Command::new("node").arg("--version"));
    version.is_err().then(|| "nodejs".to_owned())
}

fn is_installed(package: &str) -> bool {
    let status = run(Command::new("dpkg-query").args(["-W", "-f", "${db:Status-Status}", package]));
    status.is_ok_and(|status| status == "installed")
}

/// Runs apt-get. Its output, a long list of packages, is shown only if it fails.
fn apt(arguments: &[&str]) -> Result<()> {
    let mut command = as_root("env");
    run(command
        .args(["DEBIAN_FRONTEND=noninteractive", "apt-get"])
        .args(arguments))?;
    Ok(())
}

/// Returns a command that runs as root, through sudo if we are not root.
pub fn as_root(program: &str) -> Command {
    if we_are_root() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.arg(program);
    command
}

/// The two switches, which are reset when the value is dropped. An existing `policy-rc.d` is
/// respected.
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
        // This fails, as it should, if the folder contains other files.
        let folder = Path::new(CLUSTER_SWITCH).parent().unwrap_or(Path::new("/"));
        let _ = run(as_root("rmdir").arg(folder));
    }
}
