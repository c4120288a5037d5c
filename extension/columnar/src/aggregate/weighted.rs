//! `lanes.vwap`: sum(price * volume) / sum(volume).

use super::accumulator::{Accumulator, Answer, Grouping, Input, each_row};
use super::moments::MAGNITUDE_MAX;
use crate::vector::Evaluation;
use crate::vector::number::{Number, Operation};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;

/// Prices weighted by volumes. A row with a NULL in either does not count.
#[derive(Default)]
pub struct Weighted {
    counts: Vec<u64>,
    products: Vec<f64>,
    volumes: Vec<f64>,
}

/// Products of numbers from here on are no smaller than 1e-300.
const MAGNITUDE_MIN: f64 = 1e-150;

/// Whether a product of selected rows may underflow, which is an error. Prices and volumes are seldom so small, nor
/// negative, so the least ones are looked at first.
///
/// # Safety
/// There are `rows` prices and volumes.
unsafe fn may_vanish(
    prices: *const f64,
    volumes: *const f64,
    rows: usize,
    selection: &Selection,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let ample = |values| {
            lanes_simd::aggregate::minimum::<f64>(values, rows, selection.as_ptr())
                .is_none_or(|least| least >= MAGNITUDE_MIN)
        };
        if ample(prices) && ample(volumes) {
            return false;
        }
        let mut vanishes = false;
        selection.for_each(|row| {
            let (price, volume) = (*prices.add(row), *volumes.add(row));
            vanishes |= (price * volume == 0.0) & (price != 0.0) & (volume != 0.0);
        });
        vanishes
    }
}

impl Accumulator for Weighted {
    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
        // -0 is what changes no float it is added to: sums of zeros have the sign that sums from the first row on have.
        self.products.resize(groups, -0.0);
        self.volumes.resize(groups, -0.0);
    }

    fn add(
        &mut self,
        grouping: &Grouping<'_>,
        input: &Input,
        selection: &Selection,
        rows: usize,
    ) -> Evaluation<()> {
        let Input::Pair(price, volume) = *input else {
            return Ok(());
        };
        let counted = volume.valid(&price.valid(selection));
        if counted.is_empty() {
            return Ok(());
        }
        if let (
            Grouping::One(group),
            Operand::Each { values: prices, .. },
            Operand::Each {
                values: volumes, ..
            },
        ) = (grouping, price, volume)
        {
            let (prices, volumes) = (prices.cast::<f64>(), volumes.cast::<f64>());
            // SAFETY: the operands have a double for each row of the vector. Products of moderate numbers are below 1e200.
            unsafe {
                if lanes_simd::aggregate::magnitude_within(prices, rows, MAGNITUDE_MAX)
                    && lanes_simd::aggregate::magnitude_within(volumes, rows, MAGNITUDE_MAX)
                    && !may_vanish(prices, volumes, rows, &counted)
                {
                    let group = *group as usize;
                    let chosen = counted.as_ptr();
                    self.counts[group] += counted.count() as u64;
                    self.products[group] +=
                        lanes_simd::aggregate::sum_products_f64(prices, volumes, rows, chosen);
                    self.volumes[group] += lanes_simd::aggregate::sum::<f64>(volumes, rows, chosen);
                    return Ok(());
                }
            }
        }
        each_row(grouping, &counted, |row, group| {
            // SAFETY: as above.
            let (p, v) = unsafe { (price.get::<f64>(row), volume.get::<f64>(row)) };
            self.counts[group] += 1;
            let product = p.apply(Operation::Multiply, v)?;
            self.products[group] = self.products[group].apply(Operation::Add, product)?;
            self.volumes[group] = self.volumes[group].apply(Operation::Add, v)?;
            Ok(())
        })
    }

    fn answer(&self, group: usize) -> Answer {
        if self.counts[group] == 0 || self.volumes[group] == 0.0 {
            return Answer::Null;
        }
        Answer::Quotient(self.products[group], self.volumes[group])
    }

    fn bytes(&self) -> usize {
        (self.counts.capacity() + self.products.capacity() + self.volumes.capacity()) * 8
    }
}
