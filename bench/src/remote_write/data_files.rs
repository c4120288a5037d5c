//! A helper for tests of the scenarios' data files.

use crate::peers::start::SYSTEMS;
use crate::scenario::Run;
use serde::de::DeserializeOwned;

/// Reads the data file of a scenario in full and in its short form, and checks that the systems
/// exist.
pub fn both_forms<D: DeserializeOwned>(
    scenario: &'static str,
    systems: impl Fn(&D) -> &[String],
) -> [D; 2] {
    Run::both_forms(scenario).map(|run| {
        let definition: D = run.definition().unwrap();
        let mut names = systems(&definition).iter().map(String::as_str);
        assert!(names.len() > 0 && names.all(|name| SYSTEMS.contains(&name)));
        definition
    })
}
