//! Division by a number that divides most dividends without remainder.

/// The greatest common divisor of all distances from the first; at least 1.
#[inline(always)]
pub(super) fn common_factor(residuals: &[i64]) -> u64 {
    let Some((&first, rest)) = residuals.split_first() else {
        return 1;
    };
    let mut factor = 0_u64;
    let mut divisor = Divisor::of(1);
    for residual in rest {
        let mut distance = residual.abs_diff(first);
        // Once found, a factor divides most.
        if distance == 0 || factor != 0 && divisor.divides(distance) {
            continue;
        }
        while distance != 0 {
            (factor, distance) = (distance, factor % distance);
        }
        if factor == 1 {
            break;
        }
        divisor = Divisor::of(factor);
    }
    factor.max(1)
}

/// The greatest power of two that divides all distances from the first; at least 1.
#[inline(always)]
pub(super) fn common_power_of_two(residuals: &[i64]) -> u64 {
    let first = residuals.first().copied().unwrap_or_default();
    let bits = residuals
        .iter()
        .fold(0, |bits, &residual| bits | (residual ^ first));
    1_u64.checked_shl(bits.trailing_zeros()).unwrap_or(1)
}

/// Divides by multiplying with the inverse modulo 2^64, which is several times as fast as a
/// division (Granlund and Montgomery: "Division by Invariant Integers using Multiplication", 1994,
/// section 9).
#[derive(Clone, Copy)]
pub(super) struct Divisor {
    /// The inverse of the odd part.
    inverse: u64,
    twos: u32,
    quotient_max: u64,
}

impl Divisor {
    /// `number` is at least 1.
    #[inline(always)]
    pub(super) fn of(number: u64) -> Divisor {
        let twos = number.trailing_zeros();
        let odd = number >> twos;
        // Right in the 3 lowest bits, and in twice as many after each step.
        let mut inverse = odd;
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        }
        Divisor {
            inverse,
            twos,
            quotient_max: u64::MAX / number,
        }
    }

    /// The quotient, if nothing is left; else a number that is greater than any quotient.
    #[inline(always)]
    pub(super) fn quotient(self, number: u64) -> u64 {
        number.wrapping_mul(self.inverse).rotate_right(self.twos)
    }

    #[inline(always)]
    fn divides(self, number: u64) -> bool {
        self.quotient(number) <= self.quotient_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_divides_what_a_division_leaves_nothing_of() {
        let numbers = [1, 2, 3, 6, 7, 12, 1_000, 4_096, 999_983, 1 << 63, u64::MAX];
        for divisor in numbers {
            let by = Divisor::of(divisor);
            for factor in [0, 1, 2, 5, 1 << 20, u64::MAX / divisor] {
                let Some(number) = divisor.checked_mul(factor) else {
                    continue;
                };
                assert_eq!(by.quotient(number), factor, "{number} by {divisor}");
                for number in [number.wrapping_sub(1), number, number.wrapping_add(1)] {
                    let is_multiple = number.is_multiple_of(divisor);
                    assert_eq!(by.divides(number), is_multiple, "{number} by {divisor}");
                }
            }
        }
    }

    #[test]
    fn the_common_power_of_two_is_that_of_the_distances() {
        assert_eq!(common_power_of_two(&[]), 1);
        assert_eq!(common_power_of_two(&[5, 5, 5]), 1);
        assert_eq!(common_power_of_two(&[3, 27, 51, 3]), 8);
        assert_eq!(common_power_of_two(&[i64::MIN, 0]), 1 << 63);
        assert_eq!(common_power_of_two(&[-6, 6, 18, 19]), 1);
    }

    #[test]
    fn the_common_factor_is_that_of_the_distances() {
        assert_eq!(common_factor(&[]), 1);
        assert_eq!(common_factor(&[5, 5, 5]), 1);
        assert_eq!(common_factor(&[3, 13, 28, 3]), 5);
        assert_eq!(common_factor(&[i64::MIN, i64::MAX]), u64::MAX);
        assert_eq!(common_factor(&[-6, 6, 18, 19]), 1);
    }
}
