//! Memory that is freed as soon as a computation is done.

use pgrx::PgMemoryContexts;

/// Runs `work`, and frees what PostgreSQL's functions allocate in it. The result must not point there, which `Copy`
/// values without pointers do not.
pub fn within(work: impl FnOnce() -> i64) -> i64 {
    let mut memory = PgMemoryContexts::new("lanes scratch memory");
    // SAFETY: the result is a number, so nothing points into the memory when it is freed.
    unsafe { memory.switch_to(|_| work()) }
}
