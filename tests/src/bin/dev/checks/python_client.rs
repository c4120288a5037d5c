//! The check `python`: the Python client's types and tests. Some tests use a gateway and a cluster
//! of their own.

use super::junit;
use super::outcome::{Outcome, one};
use crate::python_env::{pip_install, python};
use lanes_support::cluster::Cluster;
use lanes_support::error::Result;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::place;
use lanes_support::process::run_visibly;
use lanes_support::provision::{DATABASE, Passwords, provision};
use std::process::Command;

/// Installs the package as a user would, and runs mypy and pytest.
pub fn check() -> Result<Vec<Outcome>> {
    let package = place::workspace().join("gateway/python");
    let folder = place::target().join("python");
    place::make_folder(&folder)?;
    let python = python(
        &folder.join("venv"),
        &package.join("tests/requirements.txt"),
    )?;
    // The build backend is in the list, so that no build downloads it.
    let options = ["--no-deps", "--no-build-isolation", "--force-reinstall"];
    run_visibly(pip_install(&python).args(options).arg(&package))?;
    let tool = |name: &str| {
        let mut command = Command::new(&python);
        command
            .args(["-m", name])
            .current_dir(&package)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let types = one(
        "python types",
        tool("mypy").arg("--cache-dir").arg(folder.join("mypy")),
    );

    let cluster = Cluster::builder("python").start()?;
    let passwords = Passwords::generate();
    provision(&cluster, &passwords)?;
    let gateway = Gateway::start(Settings::for_test("gateway", &cluster, &passwords)?)?;
    let database = format!(
        "host={} port={} user=postgres dbname={DATABASE}",
        cluster.socket().display(),
        cluster.port()
    );
    let report = folder.join("junit.xml");
    let mut command = tool("pytest");
    command
        .args(["-p", "no:cacheprovider", "--color=no", "tests"])
        .arg(format!("--junitxml={}", report.display()))
        .env("LANES_TEST_URL", gateway.url(""))
        .env("LANES_TEST_DATABASE", database);
    let mut outcomes = junit::run("pytest", &mut command, &report)?;
    outcomes.push(types);
    Ok(outcomes)
}
