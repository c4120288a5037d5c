//! The list of evaluations that are skipped, and why.
//!
//! Each line of the list names a script, the lines of its evaluations and the reason. A range of
//! lines means all evaluations that begin in it; all of them have to fail.

/// The list.
const LIST: &str = include_str!("skipped.txt");

struct Entry {
    script: String,
    first: usize,
    last: usize,
    reason: String,
}

/// The evaluations that are skipped.
pub struct Skipped(Vec<Entry>);

impl Skipped {
    pub fn read() -> Skipped {
        let mut entries = Vec::new();
        let lines = LIST
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let mut parts = line.splitn(3, ':').map(str::trim);
            let (Some(script), Some(places), Some(reason)) =
                (parts.next(), parts.next(), parts.next())
            else {
                panic!("{line}: a script, lines and a reason are expected");
            };
            for place in places.split_whitespace() {
                let (first, last) = place.split_once('-').unwrap_or((place, place));
                entries.push(Entry {
                    script: script.to_owned(),
                    first: first.parse().unwrap(),
                    last: last.parse().unwrap(),
                    reason: reason.to_owned(),
                });
            }
        }
        Skipped(entries)
    }

    /// Why an evaluation is skipped, if it is.
    pub fn reason(&self, script: &str, line: usize) -> Option<&str> {
        let holds =
            |entry: &&Entry| entry.script == script && (entry.first..=entry.last).contains(&line);
        self.0.iter().find(holds).map(|entry| entry.reason.as_str())
    }

    /// The entries that mean no evaluation.
    pub fn unused(&self, seen: &[(String, usize)]) -> Vec<String> {
        let is_used = |entry: &&Entry| {
            let within = |line: usize| (entry.first..=entry.last).contains(&line);
            seen.iter()
                .any(|(script, line)| *script == entry.script && within(*line))
        };
        let unused = self.0.iter().filter(|entry| !is_used(entry));
        unused
            .map(|entry| format!("{}: {}-{}", entry.script, entry.first, entry.last))
            .collect()
    }
}
