//! Scripts of Prometheus's engine tests: loads, evaluations and what they expect.

use crate::series_notation::{self, Item};
use lanes_promql::Labels;
use lanes_promql::{duration, number, quote};
use regex::Regex;
use std::collections::HashMap;
use std::sync::LazyLock;

/// A command of a script.
pub enum Command {
    /// Forgets all series.
    Clear,
    /// Stores series.
    Load(Load),
    /// Evaluates a query and compares the answer.
    Eval(Box<Eval>),
}

/// Series to store.
pub struct Load {
    /// Milliseconds between two samples.
    pub gap: i64,
    /// Whether classic histograms are stored as native ones too.
    pub with_native: bool,
    /// The series: their labels and their samples from time 0 on.
    pub series: Vec<(Labels, Vec<Item>)>,
}

/// The times of an evaluation, in milliseconds.
#[derive(Clone, Copy)]
pub enum Times {
    /// One time.
    Instant(i64),
    /// A first and a last time, and a step.
    Range(i64, i64, i64),
}

/// What an expectation is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Ordered,
    Fail,
    Warn,
    NoWarn,
    Info,
    NoInfo,
}

/// The text that an error or annotation has to have.
pub enum Pattern {
    Any,
    Message(String),
    Expression(Regex),
}

impl Pattern {
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Pattern::Any => true,
            Pattern::Message(message) => message == text,
            Pattern::Expression(regex) => regex.is_match(text),
        }
    }
}

/// The value that an evaluation has to have.
#[derive(Default)]
pub struct Expected {
    pub scalar: Option<f64>,
    pub string: Option<String>,
    /// The position among the results, from 1, and the values of each series.
    pub series: HashMap<Labels, (usize, Vec<Item>)>,
    /// The times of an expected range vector.
    pub range_vector: Option<(i64, i64, i64)>,
}

/// An evaluation.
pub struct Eval {
    /// The line of the script, from 1.
    pub line: usize,
    pub query: String,
    pub times: Times,
    pub expectations: Vec<(Kind, Pattern)>,
    pub expected: Expected,
}

impl Eval {
    /// The expectations of a kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Pattern> {
        let those = self
            .expectations
            .iter()
            .filter(move |(held, _)| *held == kind);
        those.map(|(_, pattern)| pattern)
    }

    pub fn expects(&self, kind: Kind) -> bool {
        self.of(kind).next().is_some()
    }
}

static INSTANT: LazyLock<Regex> = LazyLock::new(|| {
    let text = r"^eval(?:_(fail|warn|ordered|info))?\s+instant\s+(?:at\s+(.+?))?\s+(.+)$";
    Regex::new(text).unwrap()
});
static RANGE: LazyLock<Regex> = LazyLock::new(|| {
    let text =
        r"^eval(?:_(fail|warn|info))?\s+range\s+from\s+(.+)\s+to\s+(.+)\s+step\s+(.+?)\s+(.+)$";
    Regex::new(text).unwrap()
});
static EXPECT: LazyLock<Regex> = LazyLock::new(|| {
    let text = r"^expect\s+(ordered|fail|warn|no_warn|info|no_info)(?:\s+(regex|msg):(.+))?$";
    Regex::new(text).unwrap()
});
static EXPECT_RANGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^expect range vector\s+from\s+(.+)\s+to\s+(.+)\s+step\s+(.+)$").unwrap()
});

fn millis(text: &str) -> i64 {
    duration::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}")) / 1_000_000
}

/// Reads a script.
pub fn parse(text: &str) -> Vec<Command> {
    let without_comment = |line: &'_ str| match line.trim() {
        comment if comment.starts_with('#') => String::new(),
        line => line.to_owned(),
    };
    let lines: Vec<String> = text.lines().map(without_comment).collect();
    let mut commands = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let word = lines[at]
            .split([' ', '\t'])
            .next()
            .unwrap_or_default()
            .to_lowercase();
        let end = at
            + lines[at..]
                .iter()
                .position(String::is_empty)
                .unwrap_or(lines.len() - at);
        if word == "clear" {
            commands.push(Command::Clear);
        } else if word.starts_with("load") {
            commands.push(Command::Load(load(&lines[at..end])));
            at = end;
            continue;
        } else if word.starts_with("eval") {
            commands.push(Command::Eval(Box::new(eval(&lines[at..end], at + 1))));
            at = end;
            continue;
        } else {
            assert_eq!(word, "", "line {}", at + 1);
        }
        at += 1;
    }
    commands
}

fn load(lines: &[String]) -> Load {
    let (command, gap) = lines[0].split_once(char::is_whitespace).expect("a step");
    // Lines of start timestamps are left out: they are not stored.
    let is_start = |line: &&String| {
        let metric = line.split([' ', '\t']).next().unwrap_or_default();
        metric.ends_with("@st")
    };
    let series = lines[1..].iter().filter(|line| !is_start(line));
    Load {
        gap: millis(gap.trim()),
        with_native: command == "load_with_nhcb",
        series: series.map(|line| series_notation::parse(line)).collect(),
    }
}

fn eval(lines: &[String], line: usize) -> Eval {
    let (modifier, query, times) = if let Some(found) = INSTANT.captures(&lines[0]) {
        let at = found.get(2).map_or("0", |at| at.as_str());
        (
            found.get(1),
            found[3].to_owned(),
            Times::Instant(millis(at)),
        )
    } else {
        let found = RANGE.captures(&lines[0]).expect("an evaluation");
        let times = Times::Range(millis(&found[2]), millis(&found[3]), millis(&found[4]));
        (found.get(1), found[5].to_owned(), times)
    };
    let mut eval = Eval {
        line,
        query,
        times,
        expectations: Vec::new(),
        expected: Expected::default(),
    };
    if let Some(modifier) = modifier {
        eval.expectations
            .push((kind(modifier.as_str()), Pattern::Any));
    }
    let mut position = 0;
    for line in &lines[1..] {
        if expectation(&mut eval, line) {
            continue;
        }
        position += 1;
        if let Ok(value) = number::parse(line) {
            eval.expected.scalar = Some(value);
            break;
        }
        let (labels, items) = series_notation::parse(line);
        eval.expected.series.insert(labels, (position, items));
    }
    eval
}

fn kind(name: &str) -> Kind {
    match name {
        "ordered" => Kind::Ordered,
        "fail" => Kind::Fail,
        "warn" => Kind::Warn,
        "no_warn" => Kind::NoWarn,
        "info" => Kind::Info,
        _ => Kind::NoInfo,
    }
}

/// Reads a line that expects something else than a value; returns whether it does.
fn expectation(eval: &mut Eval, line: &str) -> bool {
    if let Some(message) = line.strip_prefix("expected_fail_message") {
        let pattern = Pattern::Message(message.trim().to_owned());
        eval.expectations.push((Kind::Fail, pattern));
    } else if let Some(expression) = line.strip_prefix("expected_fail_regexp") {
        let regex = Regex::new(expression.trim()).unwrap();
        eval.expectations
            .push((Kind::Fail, Pattern::Expression(regex)));
    } else if let Some(found) = EXPECT_RANGE.captures(line) {
        eval.expected.range_vector =
            Some((millis(&found[1]), millis(&found[2]), millis(&found[3])));
    } else if let Some(literal) = line.strip_prefix("expect string") {
        eval.expected.string = Some(quote::unquote(literal.trim()).unwrap());
    } else if line.split(' ').next() == Some("expect") {
        let found = EXPECT.captures(line).unwrap_or_else(|| panic!("{line}"));
        let text = || found[3].trim().to_owned();
        let pattern = match found.get(2).map(|kind| kind.as_str()) {
            None => Pattern::Any,
            Some("msg") => Pattern::Message(text()),
            Some(_) => Pattern::Expression(Regex::new(&text()).unwrap()),
        };
        eval.expectations.push((kind(&found[1]), pattern));
    } else {
        return false;
    }
    true
}
