//! How much a random test does: little in `make test`, much in `make test-long`.
//!
//! A test states both budgets where it uses them. `LANES_ROUNDS=<number>` replaces either: to try one test for an hour, or to replay a
//! failure quickly.

/// The environment variable by which a long run is told.
pub const VARIABLE: &str = "LANES_BUDGET";
/// Its value in a long run.
pub const LONG: &str = "long";
/// The environment variable that says how many rounds there are, whatever the run.
const ROUNDS: &str = "LANES_ROUNDS";

/// The rounds of a random test (or the seconds, where it goes by time).
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// In `make test`.
    pub short: u32,
    /// In `make test-long`.
    pub long: u32,
}

impl Budget {
    /// How many rounds there are in this run.
    ///
    /// # Panics
    /// `LANES_ROUNDS` is no number.
    pub fn rounds(self) -> u32 {
        let is_long = std::env::var(VARIABLE).is_ok_and(|value| value == LONG);
        self.chosen(std::env::var(ROUNDS).ok().as_deref(), is_long)
    }

    fn chosen(self, asked: Option<&str>, is_long: bool) -> u32 {
        match asked {
            Some(text) => text
                .parse()
                .unwrap_or_else(|_| panic!("{ROUNDS}={text} is not a number")),
            None if is_long => self.long,
            None => self.short,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_goes_before_the_kind_of_run() {
        let budget = Budget { short: 3, long: 40 };
        assert_eq!(budget.chosen(None, false), 3);
        assert_eq!(budget.chosen(None, true), 40);
        assert_eq!(budget.chosen(Some("7"), true), 7);
    }
}
