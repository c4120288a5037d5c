//! The current value of each series of each target, advanced scrape by scrape.

use super::shape::{Movement, TargetShape};

/// The values of a range of targets. Two fleets of equal shape and seed have equal values at each
/// scrape.
#[derive(Debug, Clone)]
pub struct Values {
    /// `targets × series` values, target after target.
    now: Vec<f64>,
    /// The speed of each target relative to the captured machine.
    speed: Vec<f64>,
    random: Random,
}

impl Values {
    /// Creates the values of the first scrape. Each target's counters start at a different value.
    pub fn new(shape: &TargetShape, targets: usize, seed: u64) -> Values {
        let mut random = Random(seed);
        let mut now = Vec::with_capacity(targets * shape.series.len());
        let mut speed = Vec::with_capacity(targets);
        for _ in 0..targets {
            let of_target = 0.25 + 1.5 * random.unit();
            speed.push(of_target);
            for one in &shape.series {
                now.push(match one.movement {
                    Movement::Still => one.value,
                    Movement::Grows(_) | Movement::Walks(_) => {
                        rounded(one.value * of_target, one.scale)
                    }
                });
            }
        }
        Values { now, speed, random }
    }

    /// Returns the number of targets.
    pub fn targets(&self) -> usize {
        self.speed.len()
    }

    /// Returns the values of one target, in the order of the shape.
    pub fn of(&self, target: usize) -> &[f64] {
        let series = self.now.len() / self.speed.len().max(1);
        &self.now[target * series..(target + 1) * series]
    }

    /// Advances all values by this many seconds.
    pub fn advance(&mut self, shape: &TargetShape, seconds: f64) {
        let targets = self.now.chunks_exact_mut(shape.series.len());
        for (values, speed) in targets.zip(&self.speed) {
            for (value, one) in values.iter_mut().zip(&shape.series) {
                match one.movement {
                    Movement::Still => {}
                    Movement::Grows(rate) => {
                        // The growth is random, from zero to twice the average.
                        let grown = rate * speed * seconds * 2.0 * self.random.unit();
                        *value += rounded(grown, one.scale);
                        *value = rounded(*value, one.scale);
                    }
                    Movement::Walks(step) => {
                        // A gauge is pulled back slightly towards its captured value. It never
                        // becomes negative unless that value is negative.
                        let home = one.value * speed;
                        let moved = *value + step * (2.0 * self.random.unit() - 1.0)
                            - (*value - home) * 0.05;
                        *value = rounded(
                            if one.value >= 0.0 {
                                moved.max(0.0)
                            } else {
                                moved
                            },
                            one.scale,
                        );
                    }
                }
            }
        }
    }
}

fn rounded(value: f64, scale: Option<f64>) -> f64 {
    scale.map_or(value, |scale| (value * scale).round() / scale)
}

/// SplitMix64, identical on every machine and with every version of every library.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    /// Returns a number from 0 to below 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::small;
    use super::*;

    #[test]
    fn counters_never_fall_constants_stay_and_digits_are_kept() {
        let shape = small(4);
        let mut values = Values::new(&shape, 3, 1);
        let mut moved = false;
        for _ in 0..200 {
            let before = values.clone();
            values.advance(&shape, 10.0);
            for target in 0..3 {
                let (old, new) = (before.of(target), values.of(target));
                assert!(new[0] >= old[0] && new[1] == 0.0 && new[3] == 5e-5);
                assert!((new[0] * 100.0 - (new[0] * 100.0).round()).abs() < 1e-6);
                assert!((0.0..10.0).contains(&new[2]), "{}", new[2]);
                moved |= new[0] > old[0] && new[2] != old[2];
            }
        }
        assert!(moved);
        assert_ne!(values.of(0), values.of(1));
    }

    #[test]
    fn equal_seeds_produce_equal_values() {
        let shape = small(4);
        let run = |seed| {
            let mut values = Values::new(&shape, 2, seed);
            values.advance(&shape, 10.0);
            values.of(1).to_vec()
        };
        assert_eq!(run(5), run(5));
        assert_ne!(run(5), run(6));
    }
}
