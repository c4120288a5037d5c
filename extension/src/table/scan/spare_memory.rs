//! Memory of scans that is kept for the next ones: whoever reads a few rows would spend a good part
//! of the time on making some.
//!
//! While a query runs, any amount is kept, as a node that is started again for each row of another
//! needs it again at once. A join of two tables has two scans at a time, each with memory of its
//! own. When the outermost query ends, what is kept beyond [`IDLE_SPARES`] and [`IDLE_BYTES_MAX`]
//! goes back to the system.

use std::cell::{Cell, RefCell};

use lanes_columnar::streamed::StreamMemory;

/// Memories that are kept while a query runs.
const SPARES: usize = 4;
/// Those that a session keeps which runs no query.
const IDLE_SPARES: usize = 2;
/// What each of those takes at most.
const IDLE_BYTES_MAX: usize = 2 << 20;

thread_local! {
    /// The first is the one that was kept last.
    static SPARE: RefCell<[Option<StreamMemory>; SPARES]> = const { RefCell::new([const { None }; SPARES]) };
    static IN_QUERY: Cell<bool> = const { Cell::new(false) };
}

/// Memory that is kept, or none.
pub fn take() -> StreamMemory {
    SPARE.with_borrow_mut(|spare| {
        let memory = spare[0].take();
        spare.rotate_left(1);
        memory.unwrap_or_default()
    })
}

/// Keeps memory for the next scan, in place of what was kept first if there is too much.
pub fn keep(memory: StreamMemory) {
    if IN_QUERY.get() || memory.bytes() <= IDLE_BYTES_MAX {
        SPARE.with_borrow_mut(|spare| {
            spare.rotate_right(1);
            spare[0] = Some(memory);
        });
    }
}

/// A query begins to run.
pub fn query_begins() {
    IN_QUERY.set(true);
}

/// No query runs any more. Aborts may call it: nothing is allocated or raised.
pub fn queries_ended() {
    IN_QUERY.set(false);
    SPARE.with_borrow_mut(|spare| {
        let is_small = |memory: &StreamMemory| memory.bytes() <= IDLE_BYTES_MAX;
        for (place, memory) in spare.iter_mut().enumerate() {
            if place >= IDLE_SPARES || !memory.as_ref().is_some_and(is_small) {
                *memory = None;
            }
        }
    });
}
