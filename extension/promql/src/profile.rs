//! Where the time of an evaluation goes.
//!
//! Rows are pushed from a node into the node around it, so the part of the plan that is at work
//! changes with every row. A stopwatch runs for one part at a time. [`Profile::within`] sets it to a
//! part and back to the part around; [`Profile::outside`] sets it to the part around while a row is
//! taken, and back.
//!
//! Invariant: at any time the stopwatch runs for the part whose code is executed. So the times of
//! all parts add up to the time of the evaluation.

use crate::span::Span;
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A part of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// The answer that is being made of the rows of the root.
    Answer,
    /// The node of this place in the query.
    Node(Span),
    /// The read of this place among those of the plan.
    Read(usize),
}

/// What a part did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    /// The time, without that of other parts.
    pub(crate) time: Duration,
    /// The rows that a node made, or the series that were read.
    pub(crate) rows: u64,
    /// The samples that were read.
    pub(crate) samples: u64,
    /// What the source did for a read, by name.
    pub(crate) source: Vec<(&'static str, u64)>,
}

/// The figures of all parts.
pub(crate) type Parts = HashMap<Part, Figures>;

/// Measures an evaluation.
#[derive(Debug)]
pub(crate) struct Profile {
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    parts: Parts,
    current: Part,
    since: Instant,
}

impl Profile {
    /// A profile of an evaluation that begins now.
    pub(crate) fn start() -> Profile {
        let state = State {
            parts: Parts::new(),
            current: Part::Answer,
            since: Instant::now(),
        };
        Profile {
            state: RefCell::new(state),
        }
    }

    /// The figures of an evaluation that ends now.
    pub(crate) fn finish(self) -> Parts {
        self.switch(Part::Answer);
        self.state.into_inner().parts
    }

    /// Does the work of a part, which is told the part around it.
    pub(crate) fn within<T>(&self, part: Part, work: impl FnOnce(Part) -> T) -> T {
        let around = self.switch(part);
        let result = work(around);
        self.switch(around);
        result
    }

    /// Does work of the part around in the middle of another one.
    pub(crate) fn outside<T>(&self, around: Part, work: impl FnOnce() -> T) -> T {
        let here = self.switch(around);
        let result = work();
        self.switch(here);
        result
    }

    /// Counts a row of a node.
    pub(crate) fn count_row(&self, part: Part) {
        self.figures(part, |figures| figures.rows += 1);
    }

    /// Counts a series of a read.
    pub(crate) fn count_series(&self, part: Part, samples: usize) {
        self.figures(part, |figures| {
            figures.rows += 1;
            figures.samples += samples as u64;
        });
    }

    /// Counts what a source did for a read: its counters before and after.
    pub(crate) fn count_source(
        &self,
        part: Part,
        before: &[(&'static str, u64)],
        after: &[(&'static str, u64)],
    ) {
        self.figures(part, |figures| {
            figures.source.resize(after.len(), ("", 0));
            let counters = figures.source.iter_mut().zip(before).zip(after);
            for ((counter, (_, before)), (name, after)) in counters {
                *counter = (name, counter.1 + after.saturating_sub(*before));
            }
        });
    }

    fn figures(&self, part: Part, change: impl FnOnce(&mut Figures)) {
        change(self.state.borrow_mut().parts.entry(part).or_default());
    }

    /// Sets the stopwatch to a part, and returns the part that it ran for.
    fn switch(&self, to: Part) -> Part {
        let mut state = self.state.borrow_mut();
        let (now, from) = (Instant::now(), state.current);
        let passed = now - state.since;
        state.parts.entry(from).or_default().time += passed;
        (state.current, state.since) = (to, now);
        from
    }
}
