//! The times of an evaluation.

/// Equally spaced times, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// The first time.
    pub start: i64,
    /// Milliseconds from one time to the next; at least 1.
    pub step: i64,
    /// The number of times.
    pub count: usize,
    /// Whether they are those of a range, which may contain a single one.
    pub is_range: bool,
}

impl Grid {
    /// A single time.
    pub fn instant(at: i64) -> Grid {
        Grid {
            start: at,
            step: 1,
            count: 1,
            is_range: false,
        }
    }

    /// The times from a first one up to a last one that may be met; none if it is earlier.
    pub fn new(start: i64, end: i64, step: i64) -> Grid {
        let step = step.max(1);
        let length = i128::from(end) - i128::from(start);
        let count = if length < 0 {
            0
        } else {
            length / i128::from(step) + 1
        };
        Grid {
            start,
            step,
            count: usize::try_from(count).unwrap_or(usize::MAX),
            is_range: start != end,
        }
    }

    /// The time of a step.
    #[inline(always)]
    pub fn time(&self, step: usize) -> i64 {
        self.start + self.step * step as i64
    }

    /// The last time; the first one of an empty grid.
    pub fn end(&self) -> i64 {
        let steps = i64::try_from(self.count.saturating_sub(1)).unwrap_or(i64::MAX);
        self.start.saturating_add(self.step.saturating_mul(steps))
    }

    /// The first time alone.
    pub fn first(&self) -> Grid {
        Grid {
            count: self.count.min(1),
            is_range: false,
            ..*self
        }
    }
}
