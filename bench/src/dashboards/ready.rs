//! Both systems with the same samples, ready for the first query.

use crate::peers::lanes::Lanes;
use crate::peers::victoria_metrics::VictoriaMetrics;
use crate::remote_write::history::History;
use crate::remote_write::sender::Sender;
use lanes_support::error::{Error, Result};
use std::time::{Duration, Instant};

/// Sends a history to both systems, and waits until both have merged it. Returns a sender of the
/// samples after it for each of them.
///
/// # Errors
/// A system does not accept the samples, or is not ready in time.
pub fn fill<'a>(
    history: &History<'a>,
    ours: &mut Lanes,
    theirs: &mut VictoriaMetrics,
    ready_seconds: f64,
) -> Result<[Sender<'a>; 2]> {
    let (_, ours_next) = history.send_all(ours, || Ok(()))?;
    let (_, theirs_next) = history.send_all(theirs, || Ok(()))?;
    make_ready(ours, ready_seconds)?;
    theirs.merge()?;
    Ok([ours_next, theirs_next])
}

/// Seals the rows, and waits until the background worker has made every label a column of its
/// metric's view.
fn make_ready(ours: &Lanes, seconds: f64) -> Result<()> {
    let mut client = ours.connect()?;
    for statement in [
        "SELECT lanes.seal('lanes.samples')",
        "VACUUM ANALYZE lanes.samples",
    ] {
        client.batch_execute(statement)?;
    }
    let start = Instant::now();
    while client
        .query_one("SELECT count(*) FROM lanes.metrics_to_extend", &[])?
        .get::<_, i64>(0)
        > 0
    {
        if start.elapsed().as_secs_f64() > seconds {
            return Err(Error::Other(format!(
                "some views have no columns for their labels after {seconds} s"
            )));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
