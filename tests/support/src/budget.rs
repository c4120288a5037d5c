//! The number of rounds of a random test: few in `make test`, many in `make test-long`.
//!
//! A test states both numbers where it uses them. `LANES_ROUNDS=<number>` overrides them, to run
//! one test for an hour or to replay a failure quickly.

/// The environment variable that marks a long run.
pub const VARIABLE: &str = "LANES_BUDGET";
/// Its value in a long run.
pub const LONG: &str = "long";
/// The environment variable that overrides the number of rounds.
const ROUNDS: &str = "LANES_ROUNDS";

/// The number of rounds of a random test, or of seconds if the test runs by time.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// The number in `make test`.
    pub short: u32,
    /// The number in `make test-long`.
    pub long: u32,
}

impl Budget {
    /// Returns the number of rounds in this run.
    ///
    /// # Panics
    /// `LANES_ROUNDS` is not a number.
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
    fn an_explicit_number_of_rounds_overrides_the_kind_of_run() {
        let budget = Budget { short: 3, long: 40 };
        assert_eq!(budget.chosen(None, false), 3);
        assert_eq!(budget.chosen(None, true), 40);
        assert_eq!(budget.chosen(Some("7"), true), 7);
    }
}
