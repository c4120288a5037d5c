//! The check `python`: the Python client's types and tests, the last of them against a gateway and a cluster of their own.

use crate::checks::{Count, counted, one};
use crate::python_env::{pip_install, python};
use lanes_tests::cluster::Cluster;
use lanes_tests::error::Result;
use lanes_tests::gateway::{Gateway, Settings};
use lanes_tests::place;
use lanes_tests::process::run_visibly;
use lanes_tests::provision::{DATABASE, Passwords, provision};
use std::process::Command;

/// Installs the package as a user would, and runs mypy and pytest.
pub fn check() -> Result<Count> {
    let package = place::workspace().join("gateway/python");
    let folder = place::target().join("python");
    place::make_folder(&folder)?;
    let python = python(
        &folder.join("venv"),
        &package.join("tests/requirements.txt"),
    )?;
    // The build backend is in the list, so that nothing is fetched for each build.
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
        tool("mypy").arg("--cache-dir").arg(folder.join("mypy")),
        &[],
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
    let mut tests = tool("pytest");
    tests
        .args(["-p", "no:cacheprovider", "--color=no", "tests"])
        .env("LANES_TEST_URL", gateway.url(""))
        .env("LANES_TEST_DATABASE", database);
    Ok(types + counted(&mut tests, pytest_line)?)
}

/// The counts in a line such as `2 failed, 117 passed in 3.62s`. Errors in what a test needs are failures.
fn pytest_line(line: &str) -> Option<Count> {
    let (counts, _) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    let mut total = Count::default();
    for part in counts.split(", ") {
        let (number, label) = part.split_once(' ')?;
        let number: u64 = number.parse().ok()?;
        match label {
            "passed" => total.passed += number,
            "failed" | "error" | "errors" => total.failed += number,
            _ => {}
        }
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_what_pytest_prints() {
        let count = |passed, failed| Some(Count { passed, failed });
        assert_eq!(pytest_line("117 passed in 3.62s"), count(117, 0));
        assert_eq!(
            pytest_line("==== 1 failed, 2 passed, 1 warning, 3 errors in 0.12s ===="),
            count(2, 4)
        );
        assert_eq!(pytest_line("a line with words in it"), None);
        assert_eq!(pytest_line("......  [ 61%]"), None);
    }
}
