//! Remainders of integers of 32 bits by one divisor, by a multiplication instead of a division each.
//!
//! With `n <= 2^31` and `2^(l - 1) < d <= 2^l`, let `s = 31 + l` and `f` be `2^s / d`, rounded up. Then `f * d - 2^s`
//! is less than `2^l`, so `n * f / 2^s` exceeds `n / d` by less than `1 / d`, and both have the same integer part.

/// A divisor, ready to be used.
#[derive(Clone, Copy)]
pub(super) struct Divisor {
    divisor: u64,
    factor: u64,
    shift: u32,
}

impl Divisor {
    /// A divisor; `None` for zero.
    pub(super) fn new(divisor: i32) -> Option<Divisor> {
        let divisor = u64::from(divisor.unsigned_abs());
        let above = divisor
            .checked_next_power_of_two()
            .filter(|_| divisor > 0)?;
        let shift = 31 + above.trailing_zeros();
        Some(Divisor {
            divisor,
            factor: (1_u64 << shift).div_ceil(divisor),
            shift,
        })
    }

    /// The remainder of a number, which has its sign.
    #[inline]
    pub(super) fn remainder(self, number: i32) -> i32 {
        let size = u64::from(number.unsigned_abs());
        let quotient = (size * self.factor) >> self.shift;
        let rest = (size - quotient * self.divisor) as i32;
        if number < 0 { -rest } else { rest }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_support::cases;

    fn any_integer() -> impl Strategy<Value = i32> {
        let near = |middle: i32| (-3..=3).prop_map(move |by| middle.wrapping_add(by));
        let powers = (0..32_u32).prop_flat_map(move |bit| near(1_i32.wrapping_shl(bit)));
        prop_oneof![any::<i32>(), -100..100, powers]
    }

    proptest! {
        #![proptest_config(cases(2_000))]

        #[test]
        fn remainders_are_those_of_a_division(number in any_integer(), divisor in any_integer(), factor in any_integer()) {
            match Divisor::new(divisor) {
                None => prop_assert_eq!(divisor, 0),
                // Also of numbers near multiples.
                Some(prepared) => for number in [number, factor.wrapping_mul(divisor), factor.wrapping_mul(divisor).wrapping_sub(1)] {
                    prop_assert_eq!(prepared.remainder(number), number.wrapping_rem(divisor));
                },
            }
        }
    }
}
