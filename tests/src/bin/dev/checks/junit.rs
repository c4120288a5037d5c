//! The reports of nextest and pytest, which both write JUnit's XML.

use super::outcome::{Outcome, one};
use lanes_support::error::{Error, Result};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Runs a test program that writes `report`, and reads the outcomes from it. If the program fails
/// although all tests in its report passed, the program is a failed test called `name`.
pub fn run(name: &str, command: &mut Command, report: &Path) -> Result<Vec<Outcome>> {
    // A program that fails before it writes a report must not be judged by an earlier report.
    if report.exists() {
        std::fs::remove_file(report).map_err(Error::file("remove", report))?;
    }
    let program = one(name, command);
    let mut outcomes = read(report)?;
    if !program.passed && outcomes.iter().all(|outcome| outcome.passed) {
        outcomes.push(program);
    }
    Ok(outcomes)
}

fn read(report: &Path) -> Result<Vec<Outcome>> {
    let text = std::fs::read_to_string(report).map_err(Error::file("read", report))?;
    parse(&text).map_err(|error| Error::Other(format!("{}: {error}", report.display())))
}

fn parse(text: &str) -> std::result::Result<Vec<Outcome>, roxmltree::Error> {
    let document = roxmltree::Document::parse(text)?;
    let cases = document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"));
    let outcomes = cases.map(|case| {
        let attribute = |name| case.attribute(name).unwrap_or_default();
        let seconds = attribute("time").parse().unwrap_or(0.0);
        Outcome {
            name: format!("{} {}", attribute("classname"), attribute("name")),
            passed: !case
                .children()
                .any(|child| child.has_tag_name("failure") || child.has_tag_name("error")),
            time: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        }
    });
    Ok(outcomes.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_errors_are_distinguished_from_passed_tests() {
        let report = r#"<?xml version="1.0"?><testsuites><testsuite name="a">
            <testcase classname="a" name="passes" time="1.25"/>
            <testcase classname="a" name="fails" time="0.5"><failure message="why"/></testcase>
            <testcase classname="a" name="breaks" time="0.0"><error/></testcase>
            <testcase classname="a" name="speaks" time="0.1"><system-out>failure</system-out></testcase>
            </testsuite></testsuites>"#;
        let outcomes = parse(report).unwrap();
        let passed: Vec<_> = outcomes.iter().map(|outcome| outcome.passed).collect();
        assert_eq!(passed, [true, false, false, true]);
        assert_eq!(outcomes[0].name, "a passes");
        assert_eq!(outcomes[0].time, Duration::from_millis(1250));
        assert!(parse("not XML").is_err());
    }
}
