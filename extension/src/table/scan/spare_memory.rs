//! Memory of scans that is kept for the next ones. A scan that reads a few rows would otherwise
//! spend much of its time on allocation.
//!
//! While a query runs, any amount is kept, because a node that is started again for each row of
//! another node needs it again at once. A join of two tables has two scans at a time, each with its
//! own memory. When the outermost query ends, memory beyond [`IDLE_SPARES`] and [`IDLE_BYTES_MAX`]
//! is freed.

use std::cell::{Cell, RefCell};

use lanes_columnar::streamed::StreamMemory;

/// The number of memories that are kept while a query runs.
const SPARES: usize = 4;
/// The number that a session keeps while it runs no query.
const IDLE_SPARES: usize = 2;
/// The most bytes of each of these.
const IDLE_BYTES_MAX: usize = 2 << 20;

thread_local! {
    /// The memory that was kept last comes first.
    static SPARE: RefCell<[Option<StreamMemory>; SPARES]> = const { RefCell::new([const { None }; SPARES]) };
    static IN_QUERY: Cell<bool> = const { Cell::new(false) };
}

/// Takes memory that is kept; new memory if there is none.
pub fn take() -> StreamMemory {
    SPARE.with_borrow_mut(|spare| {
        let memory = spare[0].take();
        spare.rotate_left(1);
        memory.unwrap_or_default()
    })
}

/// Keeps memory for the next scan. If there is too much, the memory that was kept first is freed.
pub fn keep(memory: StreamMemory) {
    if IN_QUERY.get() || memory.bytes() <= IDLE_BYTES_MAX {
        SPARE.with_borrow_mut(|spare| {
            spare.rotate_right(1);
            spare[0] = Some(memory);
        });
    }
}

/// Notes that a query begins.
pub fn query_begins() {
    IN_QUERY.set(true);
}

/// Notes that no query runs any more. Aborts may call this function, so it neither allocates nor
/// raises errors.
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
