//! The start and the end of the measured part of a run.

use super::plan::Plan;
use std::time::Duration;

/// The times of a run, in nanoseconds since its start.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// The end of the warm-up.
    pub opens: u64,
    /// The time after which no request is due.
    pub closes: u64,
    /// The time after which no response is awaited.
    pub gives_up: u64,
}

impl Window {
    /// Returns the window of a plan.
    pub fn of(plan: &Plan) -> Window {
        let nanoseconds = |time: Duration| time.as_nanos() as u64;
        let opens = nanoseconds(plan.warm_up);
        let closes = opens + nanoseconds(plan.window);
        Window {
            opens,
            closes,
            gives_up: closes + nanoseconds(plan.drain),
        }
    }

    /// Whether a time is in the measured part.
    pub fn has(&self, time: u64) -> bool {
        (self.opens..self.closes).contains(&time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Repeated;
    use std::sync::Arc;

    #[test]
    fn the_window_is_between_warm_up_and_drain() {
        let window = Window::of(&Plan {
            warm_up: Duration::from_nanos(10),
            window: Duration::from_nanos(5),
            drain: Duration::from_nanos(3),
            ..Plan::new(([127, 0, 0, 1], 1).into(), Arc::new(Repeated(Vec::new())))
        });
        assert_eq!(
            [9, 10, 14, 15].map(|time| window.has(time)),
            [false, true, true, false]
        );
        assert_eq!(window.gives_up, 18);
    }
}
