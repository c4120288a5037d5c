//! Memory of a scan that is kept for the next one: whoever reads a few rows would spend a good part of the time on
//! making some.
//!
//! While a query runs, any amount is kept, as a node that is started again for each row of another needs it again at
//! once. When the outermost query ends, what is kept beyond [`IDLE_BYTES_MAX`] goes back to the system.

use std::cell::Cell;

use lanes_columnar::streamed::StreamMemory;

/// What a session that runs no query keeps at most.
const IDLE_BYTES_MAX: usize = 2 << 20;

thread_local! {
    static SPARE: Cell<Option<StreamMemory>> = const { Cell::new(None) };
    static IN_QUERY: Cell<bool> = const { Cell::new(false) };
}

/// The memory that is kept, or none.
pub fn take() -> StreamMemory {
    SPARE.take().unwrap_or_default()
}

/// Keeps memory for the next scan, in place of what is kept.
pub fn keep(memory: StreamMemory) {
    if IN_QUERY.get() || memory.bytes() <= IDLE_BYTES_MAX {
        SPARE.set(Some(memory));
    }
}

/// A query begins to run.
pub fn query_begins() {
    IN_QUERY.set(true);
}

/// No query runs any more. Aborts may call it: nothing is allocated or raised.
pub fn queries_ended() {
    IN_QUERY.set(false);
    if let Some(memory) = SPARE.take()
        && memory.bytes() <= IDLE_BYTES_MAX
    {
        SPARE.set(Some(memory));
    }
}
