//! `lanes.vwap`: sum(price * volume) / sum(volume).

use super::accumulator::{Accumulator, Added, Answer, Grouping, Input, each_row};
use super::moments::MAGNITUDE_MAX;
use crate::vector::Evaluation;
use crate::vector::number::{Number, Operation};
use crate::vector::value::Operand;

/// Prices weighted by volumes. A row with a NULL in either does not count.
#[derive(Default)]
pub struct Weighted {
    counts: Vec<u64>,
    products: Vec<f64>,
    volumes: Vec<f64>,
}

impl Accumulator for Weighted {
    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
        // -0 changes no float to which it is added. So sums of zeros have the sign of sums from the
        // first row on.
        self.products.resize(groups, -0.0);
        self.volumes.resize(groups, -0.0);
    }

    fn add(&mut self, grouping: &Grouping<'_>, added: Added<'_>) -> Evaluation<()> {
        let Input::Pair(price, volume) = *added.input else {
            return Ok(());
        };
        let (mut priced, mut both) = (None, None);
        let counted = volume.valid_in(price.valid_in(added.selection, &mut priced), &mut both);
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
            // SAFETY: the operands have a double for each row of the vector.
            let sums = unsafe {
                lanes_simd::aggregate::weighted_sums_within(
                    prices,
                    volumes,
                    added.rows,
                    counted.as_ptr(),
                    MAGNITUDE_MAX,
                )
            };
            // Products of moderate numbers are below 1e200; a product that underflows to zero is an
            // error.
            if let Some((products, total)) = sums {
                let group = *group as usize;
                self.counts[group] += counted.count() as u64;
                self.products[group] += products;
                self.volumes[group] += total;
                return Ok(());
            }
        }
        each_row(grouping, counted, |row, group| {
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

    fn clear(&mut self) {
        *self = Weighted::default();
    }

    fn bytes(&self) -> usize {
        (self.counts.capacity() + self.products.capacity() + self.volumes.capacity()) * 8
    }
}
