//! The one source of randomness in tests: seeded, printed, replayable.
//!
//! `LANES_SEED=<number>` replays a run. Without it a seed is drawn from the operating system and printed, and the test
//! runner shows it when the test fails.

use rand::rngs::{StdRng, SysRng};
use rand::{SeedableRng, TryRng};

/// The generator that tests use; its algorithm is fixed for a given lock file.
pub type Random = StdRng;

/// A generator for the named test, and its seed.
pub fn seeded(test: &str) -> (Random, u64) {
    let seed = match std::env::var("LANES_SEED") {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("LANES_SEED={text} is not a number")),
        Err(_) => fresh(),
    };
    println!("{test}: replay with LANES_SEED={seed}");
    (StdRng::seed_from_u64(seed), seed)
}

/// A password of 32 hexadecimal digits (128 bits) from the operating system's randomness.
pub fn password() -> String {
    format!("{:016x}{:016x}", fresh(), fresh())
}

fn fresh() -> u64 {
    SysRng
        .try_next_u64()
        .expect("the operating system gives randomness")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
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
