//! Selectors with matchers, `offset` and `@`; ranges and subqueries; numbers.

use crate::vectors;
use crate::writer::Writer;
use rand::RngExt;

/// A metric, with its labels besides the job and the instance.
pub type Metric = (&'static str, &'static [&'static str]);

/// The metrics, and one that does not exist.
const METRICS: [Metric; 13] = [
    ("cpu_seconds_total", &["mode"]),
    ("latency_seconds_bucket", &["le", "path"]),
    ("latency_seconds_count", &["path"]),
    ("latency_seconds_sum", &["path"]),
    ("memory_bytes", &[]),
    ("only_web", &[]),
    ("queue_length", &["queue"]),
    ("requests_total", &["code", "method"]),
    ("specials", &[]),
    ("target_info", &["version"]),
    ("temperature", &["room"]),
    ("up", &[]),
    ("no_such_metric", &[]),
];

/// Labels with values that some series have.
const VALUES: [(&str, &[&str]); 10] = [
    ("job", &["api", "web", "büro"]),
    ("instance", &["a:9100", "b:9100", "c:9100", "süd:1"]),
    ("mode", &["idle", "user", "system"]),
    ("code", &["200", "404", "500"]),
    ("method", &["GET", "POST"]),
    ("room", &["Küche", "寝室", "🏠 \"attic\"\\"]),
    ("queue", &["in", "out"]),
    ("le", &["0.1", "1.0", "+Inf"]),
    ("version", &["1.0", "2.0-rc.1"]),
    ("path", &["/x"]),
];

/// Regular expressions that match the values of some labels.
const PATTERNS: [&str; 16] = [
    "a.*",
    "api|web",
    ".*",
    ".+",
    "",
    "[ab]:9100",
    "(?i)API",
    "K.che",
    "[0-9]+",
    "b[^i]ro|api",
    "..",
    "(a|b|c):[0-9]{4}",
    "[^a].*",
    "(?:idle|user)",
    "2..|5.*",
    "\\w+",
];

/// A label of some series.
pub fn label(w: &mut Writer<'_>) -> &'static str {
    w.pick(&VALUES).0
}

/// A metric.
pub fn metric(w: &mut Writer<'_>) -> &'static str {
    w.pick(&METRICS).0
}

/// A matcher, mostly of a label that the metric has.
fn matcher(w: &mut Writer<'_>, metric: &str) -> String {
    let own = METRICS.iter().find(|(name, _)| *name == metric);
    let own = own.map_or(&[][..], |(_, labels)| labels);
    let fits = |label: &str| own.contains(&label) || matches!(label, "job" | "instance");
    let (mut label, mut values) = w.pick(&VALUES);
    while !fits(label) && w.chance(85) {
        (label, values) = w.pick(&VALUES);
    }
    let operator = w.pick_name(&["=", "=", "!=", "!=", "=~", "=~", "!~"]);
    let value = match operator {
        "=" | "!=" => {
            let values = match w.chance(90) {
                true => values,
                false => &["", "none", "ü"],
            };
            let value = w.pick(values);
            quoted(w, value)
        }
        _ => match w.chance(60) {
            true => {
                let pattern = [w.pick(values), w.pick(values)].join("|");
                let pattern = pattern.replace('\\', "\\\\").replace('+', "\\+");
                quoted(w, &pattern)
            }
            false => {
                let pattern = w.pick(&PATTERNS);
                quoted(w, pattern)
            }
        },
    };
    let space = if w.chance(5) { " " } else { "" };
    format!("{label}{space}{operator}{space}{value}")
}

/// A text in one of the three kinds of quotes.
pub fn quoted(w: &mut Writer<'_>, text: &str) -> String {
    match w.random.random_range(0..6) {
        0 if !text.contains('`') => format!("`{text}`"),
        1 => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        _ => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// A selector of a metric, with matchers but without `offset` and `@`.
fn bare(w: &mut Writer<'_>, metric: &str) -> String {
    let count = w.pick(&[0, 0, 0, 1, 1, 2]);
    let mut matchers: Vec<String> = (0..count).map(|_| matcher(w, metric)).collect();
    let label = |matcher: &String| matcher.split([' ', '=', '!']).next().map(str::to_owned);
    if count == 2 && label(&matchers[0]) == label(&matchers[1]) {
        w.note("label twice");
    }
    if w.chance(4) {
        matchers.insert(0, format!("__name__={}", quoted(w, metric)));
        return format!("{{{}}}", matchers.join(","));
    }
    if matchers.is_empty() && w.chance(90) {
        return metric.to_owned();
    }
    let comma = if w.chance(5) && count > 0 { "," } else { "" };
    let space = if w.chance(5) { " " } else { "" };
    format!("{metric}{space}{{{}{comma}}}", matchers.join(", "))
}

/// `offset` and `@`, in either order, or nothing.
pub fn modifiers(w: &mut Writer<'_>) -> String {
    let mut all = Vec::new();
    if w.chance(15) {
        w.note("offset");
        let offset = w.pick(&["5m", "1m30s", "37s", "1h", "123ms", "-3m", "-20s"]);
        if offset.starts_with('-') {
            w.note("offset back");
        }
        all.push(format!("offset {offset}"));
    }
    if w.chance(8) {
        let at = match w.random.random_range(0..3) {
            0 => w.pick_name(&["@ start()"]).to_owned(),
            1 => w.pick_name(&["@ end()"]).to_owned(),
            _ => {
                w.note("@ time");
                let time = w.scene.start + w.random.random_range(0..w.scene.length);
                let time = w.scene.placed(w.random, time);
                format!("@ {}.{:03}", time / 1000, time % 1000)
            }
        };
        all.insert(w.random.random_range(0..=all.len()), at);
    }
    all.iter().map(|modifier| format!(" {modifier}")).collect()
}

/// An instant selector.
pub fn instant(w: &mut Writer<'_>) -> String {
    if w.chance(3) {
        // Several metrics at once.
        w.note("several metrics");
        let several = "{__name__=~\"up|target_info|queue_.*\"";
        return format!("{several},{}}}{}", matcher(w, "up"), modifiers(w));
    }
    let metric = metric(w);
    instant_of(w, metric)
}

/// An instant selector of a metric.
pub fn instant_of(w: &mut Writer<'_>, metric: &str) -> String {
    format!("{}{}", bare(w, metric), modifiers(w))
}

/// A length of time.
fn range(w: &mut Writer<'_>) -> &'static str {
    w.pick(&[
        "1m", "90s", "2m", "3m", "5m", "5m", "7m30s", "10m", "30m", "1h", "1500ms", "31s",
    ])
}

/// A range selector of a metric.
pub fn range_of(w: &mut Writer<'_>, metric: &str) -> String {
    format!("{}[{}]{}", bare(w, metric), range(w), modifiers(w))
}

/// A range selector or a subquery.
pub fn matrix(w: &mut Writer<'_>, depth: u32) -> String {
    if depth > 0 && w.chance(25) {
        return subquery(w, depth);
    }
    let metric = metric(w);
    range_of(w, metric)
}

/// A subquery.
pub fn subquery(w: &mut Writer<'_>, depth: u32) -> String {
    w.note("subquery");
    if w.subqueries > 0 {
        w.note("nested subquery");
    }
    let range = w.pick(&["2m", "5m", "7m30s", "10m", "20m"]);
    let step = w.pick(&["", "30s", "1m", "77s", "2m", "10s"]);
    w.subqueries += 1;
    let inner = vectors::vector(w, depth - 1);
    w.subqueries -= 1;
    format!("({inner})[{range}:{step}]{}", modifiers(w))
}

/// A number as it can be written.
pub fn number(w: &mut Writer<'_>) -> String {
    w.note("number");
    let number = w.pick(&[
        "0", "1", "2", "10", "0.5", "100", "1e3", "2.5e-2", "Inf", "NaN", "0x1f", "3.25", "1e9",
    ]);
    let sign = if w.chance(15) { "-" } else { "" };
    format!("{sign}{number}")
}
