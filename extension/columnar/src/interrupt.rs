//! Checks for a request to cancel in long loops. The program that embeds this crate installs its
//! check once. The check may panic, which drops everything on the way. Without a check, nothing is
//! cancelled.

use std::cell::Cell;
use std::sync::OnceLock;

static CHECK: OnceLock<fn()> = OnceLock::new();

/// Looks as often as a loop of cheap steps should: some microseconds apart.
const STEPS: u32 = 4096;

/// From now on `check` is called; the first one stays.
pub fn register(check: fn()) {
    let _ = CHECK.set(check);
}

/// Cancels the current work if that was requested.
#[inline]
pub fn check() {
    #[cfg(test)]
    LOOKS.with(|looks| looks.set(looks.get() + 1));
    if let Some(check) = CHECK.get() {
        check();
    }
}

/// Counts the steps of a loop.
#[derive(Default)]
pub struct Steps(Cell<u32>);

impl Steps {
    /// Counts one more step, and checks for a request to cancel every few steps.
    #[inline(always)]
    pub fn step(&self) {
        let steps = self.0.get() + 1;
        self.0.set(steps % STEPS);
        if steps == STEPS {
            check();
        }
    }
}

#[cfg(test)]
thread_local! {
    static LOOKS: Cell<u32> = const { Cell::new(0) };
}

/// How often this thread has looked while something ran.
#[cfg(test)]
pub(crate) fn looks_of(run: impl FnOnce()) -> u32 {
    let before = LOOKS.with(Cell::get);
    run();
    LOOKS.with(Cell::get) - before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_so_many_steps_it_is_looked() {
        let steps = Steps::default();
        let looks = looks_of(|| (0..3 * STEPS + 5).for_each(|_| steps.step()));
        assert_eq!(looks, 3);
    }
}
