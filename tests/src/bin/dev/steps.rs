//! Long steps: the current one, and the time that it took last.
//!
//! ```text
//! ==> building the gateway and the extension (6 min 10 s last time)
//!     done in 5 min 58 s
//! ```
//!
//! The times are stored in `target/steps.json`, in seconds per step. A step that takes less than
//! [`WORTH_TELLING`], because its work was already done, does not change the stored time and prints
//! no second line.

use lanes_support::error::Result;
use lanes_support::place;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Shorter steps are not reported.
const WORTH_TELLING: Duration = Duration::from_secs(5);

/// Performs the step, with a line before it and one after it.
pub fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("==> {name}{}", last_time(name));
    let start = Instant::now();
    let result = work()?;
    let took = start.elapsed();
    if took >= WORTH_TELLING {
        println!("    done in {}", in_words(took));
        keep(name, took);
    }
    Ok(result)
}

/// Formats a duration for people.
pub fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 60 {
        0 => format!("{seconds} s"),
        minutes => format!("{minutes} min {} s", seconds % 60),
    }
}

fn last_time(name: &str) -> String {
    let seconds = known().get(name).and_then(Value::as_u64);
    seconds.map_or_else(String::new, |seconds| {
        format!(" ({} last time)", in_words(Duration::from_secs(seconds)))
    })
}

fn file() -> PathBuf {
    place::target().join("steps.json")
}

fn known() -> Map<String, Value> {
    let text = std::fs::read_to_string(file()).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Stores the time of a step. A failure to store it is ignored.
fn keep(name: &str, took: Duration) {
    let mut times = known();
    times.insert(name.to_owned(), took.as_secs().into());
    let _ = std::fs::write(file(), Value::Object(times).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_in_words() {
        assert_eq!(in_words(Duration::from_secs(59)), "59 s");
        assert_eq!(in_words(Duration::from_secs(358)), "5 min 58 s");
    }
}
