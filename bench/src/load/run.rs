//! The threads, the window and the watched processes of one load.

use super::outcome::{Outcome, Watched};
use super::plan::{Pace, Plan};
use super::window::Window;
use super::worker::Worker;
use lanes_support::error::{Error, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// The time from the last connection to the first request.
const HEAD_START: Duration = Duration::from_millis(20);

/// Runs a load to its end.
///
/// # Errors
/// The plan has no connections, threads, depth or rate; the processors may not be used; the
/// system's limits are reached.
pub fn run(plan: &Plan) -> Result<Outcome> {
    check(plan)?;
    raise_file_limit();
    let threads = plan.threads.min(plan.connections);
    let window = Window::of(plan);
    // The barrier includes this thread, which then knows the start time.
    let ready = Barrier::new(threads + 1);
    let begin = std::sync::OnceLock::new();
    let failed = |error| Error::Other(format!("the load generator: {error}"));
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for place in 0..threads {
            let (ready, begin) = (&ready, &begin);
            workers.push(scope.spawn(move || {
                let held = plan.processors.hold_thread();
                let worker = Worker::new(plan, (place, threads));
                ready.wait();
                ready.wait();
                held?;
                let start = *begin.get_or_init(Instant::now);
                worker.and_then(|worker| worker.run(start)).map_err(failed)
            }));
        }
        ready.wait();
        let start = *begin.get_or_init(|| Instant::now() + HEAD_START);
        ready.wait();
        std::thread::sleep(
            (start + Duration::from_nanos(window.opens)).saturating_duration_since(Instant::now()),
        );
        let before: Vec<f64> = plan.watched.iter().map(|tree| tree.cpu_seconds()).collect();
        let mut tallies = Vec::new();
        for worker in workers {
            let tally = worker.join().map_err(|_| {
                Error::Other("a thread of the load generator panicked".to_owned())
            })??;
            tallies.push(tally);
        }
        let watched = plan.watched.iter().zip(before).map(|(tree, before)| {
            let usage = tree.usage();
            Watched {
                name: tree.name.clone(),
                cpu_seconds: usage.cpu_seconds - before,
                usage,
            }
        });
        let watched = watched.collect();
        let ended = tallies
            .iter()
            .map(|tally| tally.ended)
            .max()
            .unwrap_or_default();
        let nanoseconds = ended.min(window.closes).saturating_sub(window.opens);
        Ok(Outcome::new(
            &tallies,
            (
                (nanoseconds as f64 / 1e9).max(1e-9),
                start + Duration::from_nanos(ended.min(window.closes)),
            ),
            plan,
            watched,
        ))
    })
}

fn check(plan: &Plan) -> Result<()> {
    let wrong = |what: &str| Err(Error::Other(format!("a load needs {what}")));
    match plan.pace {
        _ if plan.connections == 0 => wrong("a connection"),
        _ if plan.threads == 0 => wrong("a thread"),
        _ if plan.depth == 0 => wrong("a request at a time on a connection"),
        Pace::Open(rate) if !(rate.is_finite() && rate > 0.0) => wrong("a rate above 0"),
        _ => Ok(()),
    }
}

/// Raises the limit of open files, because each connection is one, here and in servers that are
/// started from here.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // If this fails, loads with many connections fail with a clear message.
    let _ = setrlimit(Resource::Nofile, raised);
}
