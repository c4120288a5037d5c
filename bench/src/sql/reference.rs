//! The expected answer to each row of the table, computed from the generated data by the plainest
//! means and without any engine. Sums are compensated (Neumaier), so the reference's own error is
//! below the tolerance.

use crate::sql::answer::{Answer, Value};
use crate::sql::function_answers;
use crate::sql::generate::{Data, SYMBOLS, symbol};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// The price that the row `filter` compares with: half of the trades are above it.
pub const PRICE_THRESHOLD: f64 = 100.0;
/// The duration that the row `events_slow` compares with: one event in seven is longer.
pub const DURATION_THRESHOLD: f32 = 100.0;
/// The code of the symbol that the row `point` reads.
pub const POINT_SYMBOL: u16 = 77;
/// The span of the row `ema`.
pub const EMA_SPAN: f64 = 100.0;
/// Half the width of the row `window`, in microseconds.
pub const WINDOW_HALF: i64 = 500_000;
/// The width of the row `bucket`, in microseconds.
pub const BUCKET_WIDTH: i64 = 60_000_000;

/// The most trades that an average of the row `moving` is of.
pub const MOVING_ROWS: usize = 20;
/// How many trades of each symbol the row `best` returns.
pub const BEST_ROWS: usize = 3;

/// A parameter of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// A number; the statement determines its width.
    Float(f64),
    /// Text.
    Text(String),
    /// Microseconds since the Unix epoch.
    Time(i64),
}

/// Returns the parameter of a name. Definitions refer to parameters by name.
pub fn parameter(name: &str, data: &Data) -> Option<Parameter> {
    match name {
        "price_threshold" => Some(Parameter::Float(PRICE_THRESHOLD)),
        "duration_threshold" => Some(Parameter::Float(f64::from(DURATION_THRESHOLD))),
        "symbol" => Some(Parameter::Text(symbol(POINT_SYMBOL))),
        "since" => Some(Parameter::Time(since(data))),
        _ => None,
    }
}

/// Returns the answer of a name. Definitions refer to answers by name.
pub fn answer(name: &str, data: &Data) -> Option<Answer> {
    match name {
        "asof" => Some(asof(data)),
        "group" => Some(group(data)),
        "bucket" => Some(bucket(data)),
        "filter" => Some(filter(data)),
        "point" => Some(point(data)),
        "ema" => Some(ema(data)),
        "window" => Some(window(data)),
        "events_max" => Some(events_max(data)),
        "events_errors" => Some(events_errors(data)),
        "events_slow" => Some(events_slow(data)),
        "distinct" => Some(distinct(data)),
        "percentile" => Some(percentile(data)),
        "minutes" => Some(minutes(data)),
        "many_groups" => Some(many_groups(data)),
        "lag" => Some(lag(data)),
        "moving" => Some(moving(data)),
        "best" => Some(best(data)),
        "cases" => Some(function_answers::cases(data)),
        "minutes_of_hour" => Some(function_answers::minutes_of_hour(data)),
        "rollup" => Some(function_answers::rollup(data)),
        "zero" => Some(vec![vec![Value::Integer(0)]]),
        _ => None,
    }
}

/// Returns the time from which the row `point` reads: nine tenths of the trades are before it.
fn since(data: &Data) -> i64 {
    data.trades
        .ts
        .get(data.trades.ts.len() * 9 / 10)
        .copied()
        .unwrap_or_default()
}

/// Computes sum(price - bid of the symbol's latest quote at or before the trade), and the number of
/// trades that have such a quote.
fn asof(data: &Data) -> Answer {
    let (trades, quotes) = (&data.trades, &data.quotes);
    let mut latest: Vec<Option<f64>> = vec![None; usize::from(SYMBOLS)];
    let (mut next, mut sum, mut count) = (0, Sum::default(), 0);
    for row in 0..trades.ts.len() {
        while next < quotes.ts.len() && quotes.ts[next] <= trades.ts[row] {
            latest[usize::from(quotes.sym[next])] = Some(quotes.bid[next]);
            next += 1;
        }
        if let Some(bid) = latest[usize::from(trades.sym[row])] {
            sum.add(trades.price[row] - bid);
            count += 1;
        }
    }
    vec![vec![sum.or_null(count), Value::Integer(count)]]
}

/// Computes sym, avg(price), max(size).
fn group(data: &Data) -> Answer {
    let mut groups: BTreeMap<u16, (Sum, i64, i32)> = BTreeMap::new();
    for row in 0..data.trades.ts.len() {
        let (sum, count, largest) =
            groups
                .entry(data.trades.sym[row])
                .or_insert((Sum::default(), 0, i32::MIN));
        sum.add(data.trades.price[row]);
        *count += 1;
        *largest = data.trades.size[row].max(*largest);
    }
    groups
        .into_iter()
        .map(|(sym, (sum, count, largest))| {
            vec![
                Value::Text(symbol(sym)),
                Value::Float(sum.total() / count as f64),
                Value::Integer(i64::from(largest)),
            ]
        })
        .collect()
}

/// Computes the minute, avg(price).
fn bucket(data: &Data) -> Answer {
    let mut buckets: BTreeMap<i64, (Sum, i64)> = BTreeMap::new();
    for (ts, price) in data.trades.ts.iter().zip(&data.trades.price) {
        let (sum, count) = buckets
            .entry(ts.div_euclid(BUCKET_WIDTH) * BUCKET_WIDTH)
            .or_default();
        sum.add(*price);
        *count += 1;
    }
    buckets
        .into_iter()
        .map(|(start, (sum, count))| {
            vec![
                Value::Integer(start),
                Value::Float(sum.total() / count as f64),
            ]
        })
        .collect()
}

/// Computes sum(price), sum(price * size) / sum(size) and count(*) above the threshold.
fn filter(data: &Data) -> Answer {
    let (mut sum, mut weighted, mut weight, mut count) = (Sum::default(), Sum::default(), 0i64, 0);
    for (price, size) in data.trades.price.iter().zip(&data.trades.size) {
        if *price > PRICE_THRESHOLD {
            sum.add(*price);
            weighted.add(price * f64::from(*size));
            weight += i64::from(*size);
            count += 1;
        }
    }
    let mean = match weight {
        0 => Value::Null,
        weight => Value::Float(weighted.total() / weight as f64),
    };
    vec![vec![sum.or_null(count), mean, Value::Integer(count)]]
}

/// Returns all columns of the trades of one symbol after a time.
fn point(data: &Data) -> Answer {
    let since = since(data);
    (0..data.trades.ts.len())
        .filter(|row| data.trades.sym[*row] == POINT_SYMBOL && data.trades.ts[*row] > since)
        .map(|row| {
            vec![
                Value::Integer(data.trades.ts[row]),
                Value::Text(symbol(POINT_SYMBOL)),
                Value::Float(data.trades.price[row]),
                Value::Integer(i64::from(data.trades.size[row])),
            ]
        })
        .collect()
}

/// Computes the exponential moving average of the price after the last trade, seeded by the first
/// price.
fn ema(data: &Data) -> Answer {
    let alpha = 2.0 / (EMA_SPAN + 1.0);
    let last = data
        .trades
        .price
        .iter()
        .copied()
        .reduce(|ema, price| alpha * price + (1.0 - alpha) * ema);
    vec![vec![last.map_or(Value::Null, Value::Float)]]
}

/// Computes the number of trades, the sum of each trade's average bid in its window, and the number
/// of quotes in all windows.
fn window(data: &Data) -> Answer {
    let mut of_symbol: HashMap<u16, Vec<(i64, f64)>> = HashMap::new();
    for row in 0..data.quotes.ts.len() {
        of_symbol
            .entry(data.quotes.sym[row])
            .or_default()
            .push((data.quotes.ts[row], data.quotes.bid[row]));
    }
    let (mut sum, mut with_quotes, mut all) = (Sum::default(), 0, 0);
    for (ts, sym) in data.trades.ts.iter().zip(&data.trades.sym) {
        let quotes = of_symbol.get(sym).map_or([].as_slice(), Vec::as_slice);
        let first = quotes.partition_point(|(at, _)| *at < ts - WINDOW_HALF);
        let end = quotes.partition_point(|(at, _)| *at <= ts + WINDOW_HALF);
        if first < end {
            let mut bids = Sum::default();
            quotes[first..end]
                .iter()
                .for_each(|(_, bid)| bids.add(*bid));
            sum.add(bids.total() / (end - first) as f64);
            with_quotes += 1;
            all += (end - first) as i64;
        }
    }
    vec![vec![
        Value::Integer(data.trades.ts.len() as i64),
        sum.or_null(with_quotes),
        Value::Integer(all),
    ]]
}

/// Counts the symbols.
fn distinct(data: &Data) -> Answer {
    let symbols: BTreeSet<u16> = data.trades.sym.iter().copied().collect();
    vec![vec![Value::Integer(symbols.len() as i64)]]
}

/// Computes the price at 99 % of all prices in order, between its neighbours.
fn percentile(data: &Data) -> Answer {
    let mut prices = data.trades.price.clone();
    prices.sort_by(f64::total_cmp);
    let Some(last) = prices.len().checked_sub(1) else {
        return vec![vec![Value::Null]];
    };
    let place = 0.99 * last as f64;
    let (low, high) = (
        prices[place.floor() as usize],
        prices[place.ceil() as usize],
    );
    vec![vec![Value::Float(low + place.fract() * (high - low))]]
}

/// Computes sym, the minute, avg(price), max(size).
fn minutes(data: &Data) -> Answer {
    let mut groups: BTreeMap<(u16, i64), (Sum, i64, i32)> = BTreeMap::new();
    let trades = &data.trades;
    for row in 0..trades.ts.len() {
        let minute = trades.ts[row].div_euclid(BUCKET_WIDTH) * BUCKET_WIDTH;
        let group = groups.entry((trades.sym[row], minute));
        let (sum, count, largest) = group.or_insert((Sum::default(), 0, i32::MIN));
        sum.add(trades.price[row]);
        *count += 1;
        *largest = trades.size[row].max(*largest);
    }
    let groups = groups.into_iter();
    groups
        .map(|((sym, minute), (sum, count, largest))| {
            vec![
                Value::Text(symbol(sym)),
                Value::Integer(minute),
                Value::Float(sum.total() / count as f64),
                Value::Integer(i64::from(largest)),
            ]
        })
        .collect()
}

/// Counts the groups by time and symbol, and their rows.
fn many_groups(data: &Data) -> Answer {
    let groups: BTreeSet<_> = data.trades.ts.iter().zip(&data.trades.sym).collect();
    let rows = match data.trades.ts.len() {
        0 => Value::Null,
        rows => Value::Integer(rows as i64),
    };
    vec![vec![Value::Integer(groups.len() as i64), rows]]
}

/// Computes the sum of the distances of each price from the symbol's price before it.
fn lag(data: &Data) -> Answer {
    let mut before = vec![None; usize::from(SYMBOLS)];
    let (mut sum, mut count) = (Sum::default(), 0);
    for (sym, price) in data.trades.sym.iter().zip(&data.trades.price) {
        if let Some(before) = before[usize::from(*sym)].replace(*price) {
            sum.add((price - before).abs());
            count += 1;
        }
    }
    vec![vec![sum.or_null(count)]]
}

/// Computes the sum of the averages of each trade's price and those of the trades of its symbol
/// before it, at most so many in all.
fn moving(data: &Data) -> Answer {
    let mut before = vec![VecDeque::new(); usize::from(SYMBOLS)];
    let mut sum = Sum::default();
    for (sym, price) in data.trades.sym.iter().zip(&data.trades.price) {
        let prices = &mut before[usize::from(*sym)];
        if prices.len() == MOVING_ROWS {
            prices.pop_front();
        }
        prices.push_back(*price);
        let mut total = Sum::default();
        prices.iter().for_each(|price| total.add(*price));
        sum.add(total.total() / prices.len() as f64);
    }
    vec![vec![sum.or_null(data.trades.ts.len() as i64)]]
}

/// Computes the sum of the best prices of each symbol, and how many they are.
fn best(data: &Data) -> Answer {
    let mut prices = vec![Vec::new(); usize::from(SYMBOLS)];
    for (sym, price) in data.trades.sym.iter().zip(&data.trades.price) {
        prices[usize::from(*sym)].push(*price);
    }
    let (mut sum, mut count) = (Sum::default(), 0);
    for prices in &mut prices {
        prices.sort_by(|a, b| b.total_cmp(a));
        for price in prices.iter().take(BEST_ROWS) {
            sum.add(*price);
            count += 1;
        }
    }
    vec![vec![sum.or_null(count), Value::Integer(count)]]
}

fn events_max(data: &Data) -> Answer {
    let longest = data.events.duration.iter().copied().reduce(f32::max);
    vec![vec![longest.map_or(Value::Null, |longest| {
        Value::Float(f64::from(longest))
    })]]
}

fn events_errors(data: &Data) -> Answer {
    let count = data
        .events
        .is_error
        .iter()
        .filter(|is_error| **is_error)
        .count();
    vec![vec![Value::Integer(count as i64)]]
}

fn events_slow(data: &Data) -> Answer {
    let count = data
        .events
        .duration
        .iter()
        .filter(|duration| **duration > DURATION_THRESHOLD)
        .count();
    vec![vec![Value::Integer(count as i64)]]
}

/// A compensated sum: A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen" (1974).
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, value: f64) {
        let next = self.sum + value;
        self.lost += if self.sum.abs() >= value.abs() {
            (self.sum - next) + value
        } else {
            (value - next) + self.sum
        };
        self.sum = next;
    }

    fn total(self) -> f64 {
        self.sum + self.lost
    }

    /// Returns SQL's sum, which is NULL if there are no rows.
    fn or_null(self, count: i64) -> Value {
        match count {
            0 => Value::Null,
            _ => Value::Float(self.total()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::generate::{Events, Quotes, START, Trades};
    use Value::{Float, Integer, Null, Text};

    const MINUTE: i64 = BUCKET_WIDTH;

    /// Returns three trades of S0077 and one of S0001, few enough to compute by hand.
    fn tiny() -> Data {
        let at = |milliseconds: &[i64]| {
            milliseconds
                .iter()
                .map(|ms| START + ms * 1000)
                .collect::<Vec<i64>>()
        };
        Data {
            trades: Trades {
                ts: at(&[1000, 2000, 3000, 61_000]),
                sym: vec![77, 1, 77, 77],
                price: vec![101.0, 50.0, 103.0, 105.0],
                size: vec![1, 5, 3, 2],
            },
            quotes: Quotes {
                ts: at(&[1000, 1400, 1501, 3400, 3500]),
                sym: vec![77, 77, 77, 1, 77],
                bid: vec![100.0, 101.0, 99.0, 7.0, 104.0],
                ask: vec![0.0; 5],
            },
            events: Events {
                ts: at(&[1, 2, 3]),
                duration: vec![99.0, 100.0, 100.5],
                is_error: vec![true, false, true],
                service: vec![0, 1, 2],
            },
        }
    }

    #[test]
    fn asof_takes_the_latest_quote_at_or_before_the_trade() {
        // 101 - 100 (at the same time), none for S0001, 103 - 99, 105 - 104.
        assert_eq!(asof(&tiny()), [[Float(6.0), Integer(3)]]);
    }

    #[test]
    fn windows_are_inclusive_and_an_empty_one_has_no_average() {
        // Trade at 1000: quotes at 1000 and 1400 (1501 is 1 ms too late). Trade at 2000, of S0001:
        // no quote. Trade at 3000: the quote at 3500. Trade at 61000: no quote.
        assert_eq!(
            window(&tiny()),
            [[Integer(4), Float(100.5 + 104.0), Integer(3)]]
        );
    }

    #[test]
    fn groups_and_buckets_are_computed() {
        let group = group(&tiny());
        assert_eq!(group[0], [Text("S0001".into()), Float(50.0), Integer(5)]);
        assert_eq!(group[1], [Text("S0077".into()), Float(103.0), Integer(3)]);
        let bucket = bucket(&tiny());
        assert_eq!(START % MINUTE, 0);
        assert_eq!(bucket[0], [Integer(START), Float(254.0 / 3.0)]);
        assert_eq!(bucket[1], [Integer(START + MINUTE), Float(105.0)]);
    }

    #[test]
    fn moving_averages_and_best_prices_are_those_of_each_symbol() {
        let averages = 101.0 + 50.0 + 102.0 + 103.0;
        assert_eq!(moving(&tiny()), [[Float(averages)]]);
        assert_eq!(best(&tiny()), [[Float(359.0), Integer(4)]]);
    }

    #[test]
    fn filters_point_reads_and_averages_are_computed() {
        assert_eq!(
            filter(&tiny()),
            [[
                Float(309.0),
                Float((101.0 + 309.0 + 210.0) / 6.0),
                Integer(3)
            ]]
        );
        // Nine tenths of four trades are three, so no trade is after the fourth.
        assert!(point(&tiny()).is_empty());
        let mut data = tiny();
        data.trades.sym.push(77);
        data.trades.ts.push(START + 2 * MINUTE);
        data.trades.price.push(1.0);
        data.trades.size.push(9);
        data.trades.ts[4] += 1;
        assert!(point(&data).is_empty());
        let alpha = 2.0 / 101.0;
        let expected = [101.0, 50.0, 103.0, 105.0]
            .into_iter()
            .reduce(|ema: f64, x| ema + alpha * (x - ema))
            .unwrap();
        assert!(crate::sql::answer::verify(&vec![vec![Float(expected)]], &ema(&tiny())).is_ok());
    }

    #[test]
    fn a_point_is_after_its_time_and_of_its_symbol() {
        let mut data = Data::generate(100_000);
        data.trades.sym[95_000] = POINT_SYMBOL;
        let since = since(&data);
        let rows = point(&data);
        assert!(!rows.is_empty() && rows.len() < 100);
        assert!(rows.iter().all(
            |row| matches!(row[0], Integer(ts) if ts > since) && row[1] == Text("S0077".into())
        ));
    }

    #[test]
    fn events_compare_strictly() {
        assert_eq!(events_max(&tiny()), [[Float(100.5)]]);
        assert_eq!(events_errors(&tiny()), [[Integer(2)]]);
        assert_eq!(events_slow(&tiny()), [[Integer(1)]]);
    }

    #[test]
    fn distinct_values_percentiles_and_distances_are_computed() {
        assert_eq!(distinct(&tiny()), [[Integer(2)]]);
        // 99 % of the way from the first to the fourth of 50, 101, 103, 105.
        let expected = vec![vec![Float(103.0 + 0.97 * 2.0)]];
        assert!(crate::sql::answer::verify(&expected, &percentile(&tiny())).is_ok());
        let minutes = minutes(&tiny());
        assert_eq!(minutes.len(), 3);
        assert_eq!(minutes[1][2..], [Float(102.0), Integer(3)]);
        assert_eq!(many_groups(&tiny()), [[Integer(4), Integer(4)]]);
        assert_eq!(lag(&tiny()), [[Float(4.0)]]);
    }

    #[test]
    fn sums_without_rows_are_null_and_counts_are_zero() {
        let data = Data::generate(0);
        assert_eq!(asof(&data), [[Null, Integer(0)]]);
        assert_eq!(filter(&data), [[Null, Null, Integer(0)]]);
        assert_eq!(window(&data), [[Integer(0), Null, Integer(0)]]);
        assert_eq!(
            (events_max(&data), ema(&data)),
            (vec![vec![Null]], vec![vec![Null]])
        );
        assert!(group(&data).is_empty() && bucket(&data).is_empty() && point(&data).is_empty());
    }

    #[test]
    fn compensated_sums_keep_what_plain_addition_loses() {
        let mut sum = Sum::default();
        [1e16, 1.0, -1e16]
            .into_iter()
            .for_each(|value| sum.add(value));
        assert_eq!(sum.total(), 1.0);
    }
}
