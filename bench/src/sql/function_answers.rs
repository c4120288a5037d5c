//! The expected answers to queries with functions, conditions and grouping sets, by the plainest means.

use std::collections::BTreeMap;

use super::reference::PRICE_THRESHOLD;
use crate::sql::answer::{Answer, Value};
use crate::sql::generate::{Data, symbol};

/// A minute in microseconds.
const MINUTE: i64 = 60_000_000;

/// Computes the sum of the sizes of trades above the threshold, and the number of trades.
pub fn cases(data: &Data) -> Answer {
    let trades = &data.trades;
    let sizes = trades.price.iter().zip(&trades.size);
    let above = sizes.filter(|(price, _)| **price > PRICE_THRESHOLD);
    let sum: i64 = above.map(|(_, size)| i64::from(*size)).sum();
    let count = trades.price.len() as i64;
    let sum = if count == 0 {
        Value::Null
    } else {
        Value::Integer(sum)
    };
    vec![vec![sum, Value::Integer(count)]]
}

/// Computes the minute of the hour, as a double, and the number of trades.
pub fn minutes_of_hour(data: &Data) -> Answer {
    let mut counts: BTreeMap<i64, i64> = BTreeMap::new();
    for ts in &data.trades.ts {
        *counts
            .entry(ts.div_euclid(MINUTE).rem_euclid(60))
            .or_default() += 1;
    }
    let counts = counts.into_iter();
    counts
        .map(|(minute, count)| vec![Value::Float(minute as f64), Value::Integer(count)])
        .collect()
}

/// Computes sym, the number of its trades and the sum of their sizes; then the same of all trades, with NULL as sym.
pub fn rollup(data: &Data) -> Answer {
    let mut groups: BTreeMap<Option<u16>, (i64, i64)> = BTreeMap::new();
    groups.insert(None, (0, 0));
    for (sym, size) in data.trades.sym.iter().zip(&data.trades.size) {
        for key in [Some(*sym), None] {
            let (count, sum) = groups.entry(key).or_default();
            *count += 1;
            *sum += i64::from(*size);
        }
    }
    let groups = groups.into_iter();
    groups
        .map(|(sym, (count, sum))| {
            let sum = if count == 0 {
                Value::Null
            } else {
                Value::Integer(sum)
            };
            let sym = sym.map_or(Value::Null, |sym| Value::Text(symbol(sym)));
            vec![sym, Value::Integer(count), sum]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::{Integer, Null};

    #[test]
    fn totals_are_those_of_all_trades() {
        let data = Data::generate(1000);
        let rollup = rollup(&data);
        let (totals, groups) = rollup.split_first().expect("the group of all trades");
        let sum = |column: usize| -> i64 {
            let values = groups.iter().map(|row| &row[column]);
            values
                .map(|value| {
                    if let Integer(value) = value {
                        *value
                    } else {
                        0
                    }
                })
                .sum()
        };
        assert_eq!(totals[..], [Null, Integer(sum(1)), Integer(sum(2))]);
        assert_eq!(totals[1], Integer(data.trades.ts.len() as i64));
        let (sum, count) = (&cases(&data)[0][0], &cases(&data)[0][1]);
        assert_eq!(*count, totals[1]);
        assert!(
            matches!((sum, &totals[2]), (Integer(some), Integer(all)) if 0 < *some && some < all)
        );
    }

    #[test]
    fn every_trade_has_a_minute() {
        let data = Data::generate(1000);
        let counts = minutes_of_hour(&data);
        let counted = counts.iter().map(|row| {
            if let Integer(count) = row[1] {
                count
            } else {
                0
            }
        });
        assert_eq!(counted.sum::<i64>(), data.trades.ts.len() as i64);
        assert!(counts.len() <= 60);
    }

    #[test]
    fn without_trades_there_is_one_group_of_all() {
        let data = Data::generate(0);
        assert_eq!(rollup(&data), [[Null, Integer(0), Null]]);
        assert_eq!(cases(&data), [[Null, Integer(0)]]);
        assert!(minutes_of_hour(&data).is_empty());
    }
}
