//! The status line: what the gateway and the arena say of themselves.

use lanes_tests::cluster::Cluster;
use lanes_tests::gateway::Gateway;
use lanes_tests::provision::DATABASE;
use postgres::Client;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const TERMINAL_INTERVAL: Duration = Duration::from_secs(1);
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Shows a line that replaces itself in a terminal, and a line now and then elsewhere.
pub struct StatusLine {
    terminal: bool,
    last: Option<Instant>,
    client: Option<Client>,
}

impl StatusLine {
    pub fn new() -> StatusLine {
        StatusLine {
            terminal: std::io::stdout().is_terminal(),
            last: None,
            client: None,
        }
    }

    /// Shows the status if it is time to.
    pub fn show(&mut self, gateway: &Gateway, cluster: &Cluster) {
        let interval = if self.terminal {
            TERMINAL_INTERVAL
        } else {
            PLAIN_INTERVAL
        };
        if self.last.is_some_and(|last| last.elapsed() < interval) {
            return;
        }
        self.last = Some(Instant::now());
        let line = line(gateway.status().ok().as_ref(), self.arena(cluster));
        // A closed pipe is no reason to stop; the next signal is.
        let mut out = std::io::stdout();
        let _ = if self.terminal {
            write!(out, "\r\x1b[K{line}")
        } else {
            writeln!(out, "{line}")
        };
        let _ = out.flush();
    }

    /// Bytes used and bytes in all of the arena.
    fn arena(&mut self, cluster: &Cluster) -> Option<(i64, i64)> {
        if self.client.is_none() {
            self.client = cluster.connect(DATABASE).ok();
        }
        let row = self
            .client
            .as_mut()?
            .query_one("SELECT used_bytes, total_bytes FROM lanes.arena()", &[]);
        match row {
            Ok(row) => Some((row.try_get(0).ok()?, row.try_get(1).ok()?)),
            Err(_) => {
                // Connect anew next time: Postgres may have restarted itself.
                self.client = None;
                None
            }
        }
    }
}

fn line(status: Option<&Value>, arena: Option<(i64, i64)>) -> String {
    let Some(status) = status else {
        return "the gateway does not answer".to_owned();
    };
    let number = |name: &str| status[name].as_f64();
    let count = |name: &str| number(name).map_or_else(|| "?".to_owned(), grouped);
    let arena = arena.map_or_else(
        || "?".to_owned(),
        |(used, total)| {
            format!(
                "{} of {} MB",
                used.div_euclid(1 << 20),
                total.div_euclid(1 << 20)
            )
        },
    );
    let mut line = format!(
        "{} samples/s   {} series   {} rows   arena {arena}",
        count("samples_per_second"),
        count("series"),
        count("rows")
    );
    if number("pending_bytes").is_some_and(|bytes| bytes > 0.0) {
        line.push_str(&format!("   {} bytes pending", count("pending_bytes")));
    }
    if status["ready"] == Value::Bool(false) {
        line.push_str("   NOT READY");
    }
    line
}

/// A count with its thousands apart.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_what_is_known_and_says_what_is_not() {
        let status = serde_json::json!({
            "samples_per_second": 12345.6, "series": 99, "rows": 1234567, "pending_bytes": 0, "ready": true
        });
        assert_eq!(
            line(Some(&status), Some((3 << 20, 256 << 20))),
            "12,346 samples/s   99 series   1,234,567 rows   arena 3 of 256 MB"
        );
        let line = line(
            Some(&serde_json::json!({"pending_bytes": 1000, "ready": false})),
            None,
        );
        assert_eq!(
            line,
            "? samples/s   ? series   ? rows   arena ?   1,000 bytes pending   NOT READY"
        );
    }
}
