//! The status line of the gateway and the arena.

use lanes_support::cluster::Cluster;
use lanes_support::gateway::Gateway;
use lanes_support::provision::DATABASE;
use postgres::Client;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const TERMINAL_INTERVAL: Duration = Duration::from_secs(1);
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Prints a line that replaces itself in a terminal, and separate lines elsewhere.
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

    /// Prints the status if the interval is over.
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
        let line = line(gateway.status().ok().as_ref(), self.stored(cluster));
        // A closed pipe is no reason to stop; the next signal is.
        let mut out = std::io::stdout();
        let _ = if self.terminal {
            write!(out, "\r\x1b[K{line}")
        } else {
            writeln!(out, "{line}")
        };
        let _ = out.flush();
    }

    /// Returns PostgreSQL's figures, or `None` while it cannot be queried.
    fn stored(&mut self, cluster: &Cluster) -> Option<Stored> {
        if self.client.is_none() {
            self.client = cluster.connect(DATABASE).ok();
        }
        match self.client.as_mut()?.query_one(STORED, &[]) {
            Ok(row) => Some(Stored {
                rows: row.try_get(0).ok()?,
                arena_used_bytes: row.try_get(1).ok()?,
                arena_bytes: row.try_get(2).ok()?,
            }),
            Err(_) => {
                // PostgreSQL may have restarted itself, so connect again next time.
                self.client = None;
                None
            }
        }
    }
}

/// Reads the table's directory and the arena's counters, but no rows.
const STORED: &str = "
    SELECT (SELECT coalesce(sum(rows), 0)::int8 FROM lanes.arena_segments('lanes.samples'::regclass)), bytes_used, bytes_total
    FROM lanes.arena()";

/// PostgreSQL's figures.
struct Stored {
    rows: i64,
    arena_used_bytes: i64,
    arena_bytes: i64,
}

fn line(status: Option<&Value>, stored: Option<Stored>) -> String {
    let Some(status) = status else {
        return "the gateway does not respond".to_owned();
    };
    let number = |name: &str| status[name].as_f64();
    let count = |name: &str| number(name).map_or_else(|| "?".to_owned(), grouped);
    let (rows, arena) = match stored {
        Some(stored) => {
            let megabytes = |bytes: i64| bytes as f64 / f64::from(1 << 20);
            let (used, all) = (
                megabytes(stored.arena_used_bytes),
                megabytes(stored.arena_bytes),
            );
            let arena = format!("{used:.1} of {all:.0} MB");
            (grouped(stored.rows as f64), arena)
        }
        None => ("?".to_owned(), "?".to_owned()),
    };
    let mut line = format!(
        "{} samples/s   {} series   {rows} rows   arena {arena}",
        count("samples_per_second"),
        count("series"),
    );
    if number("pending_bytes").is_some_and(|bytes| bytes > 0.0) {
        line.push_str(&format!("   {} bytes pending", count("pending_bytes")));
    }
    if status["ready"] == Value::Bool(false) {
        line.push_str("   NOT READY");
    }
    line
}

/// Formats a count with separators of thousands.
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
    fn the_status_line_marks_unknown_figures() {
        let status = serde_json::json!({
            "samples_per_second": 12345.6, "series": 99, "pending_bytes": 0, "ready": true
        });
        let stored = Stored {
            rows: 1234567,
            arena_used_bytes: 7 << 19,
            arena_bytes: 256 << 20,
        };
        assert_eq!(
            line(Some(&status), Some(stored)),
            "12,346 samples/s   99 series   1,234,567 rows   arena 3.5 of 256 MB"
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
