//! What happens between the sending of samples and the first query.

use crate::peers::lanes::Lanes;
use lanes_support::error::{Error, Result};
use std::time::{Duration, Instant};

/// Seals the rows, and waits until the background worker has made every label a column of its
/// metric's view.
pub fn make_ready(ours: &Lanes, seconds: f64) -> Result<()> {
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
