//! The source of randomness in tests: seeded, printed, replayable.
//!
//! `LANES_SEED=<number>` replays a run. `make test` sets it to the number of the day, so that each
//! day uses another seed and everyone uses the same one on a day. Without the variable, the seed
//! comes from the operating system. The seed is printed, and the test runner shows it if the test
//! fails.

use rand::rngs::{StdRng, SysRng};
use rand::{SeedableRng, TryRng};
use std::time::{SystemTime, UNIX_EPOCH};

/// The environment variable with the seed of random tests.
pub const VARIABLE: &str = "LANES_SEED";

/// The generator of the tests. Its algorithm is fixed for a given lock file.
pub type Random = StdRng;

/// Returns a generator for the named test, and its seed.
pub fn seeded(test: &str) -> (Random, u64) {
    let seed = given().unwrap_or_else(fresh);
    println!("{test}: replay with {VARIABLE}={seed}");
    (StdRng::seed_from_u64(seed), seed)
}

/// Returns the seed in the environment, or the number of days since 1970.
pub fn of_the_day() -> u64 {
    const DAY_SECONDS: u64 = 24 * 60 * 60;
    given().unwrap_or_else(|| {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        since_1970.unwrap_or_default().as_secs() / DAY_SECONDS
    })
}

/// Returns the seed in the environment.
fn given() -> Option<u64> {
    let text = std::env::var(VARIABLE).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{VARIABLE}={text} is not a number")))
}

/// Returns a password of 32 hexadecimal digits (128 bits) from the operating system's randomness.
pub fn password() -> String {
    format!("{:016x}{:016x}", fresh(), fresh())
}

/// Returns a number from the operating system's randomness.
pub fn fresh() -> u64 {
    SysRng
        .try_next_u64()
        .expect("the operating system has randomness")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn equal_seeds_produce_equal_numbers() {
        let (mut first, mut second) = (StdRng::seed_from_u64(7), StdRng::seed_from_u64(7));
        assert_eq!(first.next_u64(), second.next_u64());
        assert_ne!(first.next_u64(), StdRng::seed_from_u64(8).next_u64());
    }

    #[test]
    fn passwords_differ_and_need_no_quoting() {
        let (first, second) = (password(), password());
        assert_ne!(first, second);
        assert!(first.len() == 32 && first.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
