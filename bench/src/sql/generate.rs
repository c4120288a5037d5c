//! Trades, quotes and events from a fixed seed. They are identical on every machine and with every
//! version of every library.
//!
//! | table | rows | columns | shape |
//! |---|---|---|---|
//! | trades | n | ts, sym, price float8, size int4 | one per 1 ms on average, ts ascending without ties; each symbol has its own price level |
//! | quotes | n | ts, sym, bid float8, ask float8 | as trades; a bid is below the prices of its symbol |
//! | events | 5 n | ts, duration float4, is_error bool, service | one per 0.2 ms on average; durations are exponential with mean 50; one in fifty is an error |
//!
//! There are 1,000 symbols, `S0000` to `S0999`, uniformly distributed, and 20 services. With a
//! million rows a symbol is quoted once a second, so a window of one second contains about one
//! quote. Bids are below prices so that a sum of differences has no cancellation, which could
//! exceed the tolerance.

use crate::sql::random::SplitMix64;

/// The number of symbols in trades and quotes.
pub const SYMBOLS: u16 = 1000;
/// The number of services in events.
pub const SERVICES: u16 = 20;
/// The number of events for each trade.
pub const EVENTS_PER_TRADE: usize = 5;
/// 2026-01-05 09:30:00 UTC in microseconds since the Unix epoch.
pub const START: i64 = 1_767_605_400_000_000;

/// Trades in time order. All vectors have the same length.
#[derive(Debug, Clone, PartialEq)]
pub struct Trades {
    /// The time in microseconds since the Unix epoch.
    pub ts: Vec<i64>,
    /// Symbol codes; see [`symbol`].
    pub sym: Vec<u16>,
    pub price: Vec<f64>,
    pub size: Vec<i32>,
}

/// Quotes in time order. All vectors have the same length.
#[derive(Debug, Clone, PartialEq)]
pub struct Quotes {
    /// The time in microseconds since the Unix epoch.
    pub ts: Vec<i64>,
    /// Symbol codes; see [`symbol`].
    pub sym: Vec<u16>,
    pub bid: Vec<f64>,
    pub ask: Vec<f64>,
}

/// Events in time order. All vectors have the same length.
#[derive(Debug, Clone, PartialEq)]
pub struct Events {
    /// The time in microseconds since the Unix epoch.
    pub ts: Vec<i64>,
    pub duration: Vec<f32>,
    pub is_error: Vec<bool>,
    /// Service codes; see [`service`].
    pub service: Vec<u16>,
}

/// All data of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Data {
    pub trades: Trades,
    pub quotes: Quotes,
    pub events: Events,
}

/// Returns the name of a symbol.
pub fn symbol(code: u16) -> String {
    format!("S{code:04}")
}

/// Returns the name of a service.
pub fn service(code: u16) -> String {
    format!("service-{code:02}")
}

impl Data {
    /// Generates `rows` trades, as many quotes, and five times as many events.
    pub fn generate(rows: usize) -> Data {
        let mut levels = SplitMix64(1);
        // Prices have a market's decimal places: a value is a whole number of ticks of 1/10000.
        let levels: Vec<f64> = (0..SYMBOLS).map(|_| 50.0 + 100.0 * levels.unit()).collect();
        Data {
            trades: trades(rows, &levels),
            quotes: quotes(rows, &levels),
            events: events(rows * EVENTS_PER_TRADE),
        }
    }

    /// Returns the number of rows of a table.
    pub fn rows(&self, table: &str) -> Option<usize> {
        match table {
            "trades" => Some(self.trades.ts.len()),
            "quotes" => Some(self.quotes.ts.len()),
            "events" => Some(self.events.ts.len()),
            _ => None,
        }
    }
}

fn trades(rows: usize, levels: &[f64]) -> Trades {
    let mut random = SplitMix64(2);
    let ts = times(rows, 1000, &mut random);
    let sym: Vec<u16> = (0..rows)
        .map(|_| random.below(u64::from(SYMBOLS)) as u16)
        .collect();
    let price = sym
        .iter()
        .map(|sym| to_tick(levels[usize::from(*sym)] * (1.0 + 0.02 * random.unit())))
        .collect();
    let size = (0..rows).map(|_| 1 + random.below(10_000) as i32).collect();
    Trades {
        ts,
        sym,
        price,
        size,
    }
}

fn quotes(rows: usize, levels: &[f64]) -> Quotes {
    let mut random = SplitMix64(3);
    let ts = times(rows, 1000, &mut random);
    let sym: Vec<u16> = (0..rows)
        .map(|_| random.below(u64::from(SYMBOLS)) as u16)
        .collect();
    let bid: Vec<f64> = sym
        .iter()
        .map(|sym| to_tick(levels[usize::from(*sym)] * (0.98 + 0.01 * random.unit())))
        .collect();
    let ask = bid
        .iter()
        .map(|bid| to_tick(bid + 0.01 + 0.05 * random.unit()))
        .collect();
    Quotes { ts, sym, bid, ask }
}

fn events(rows: usize) -> Events {
    let mut random = SplitMix64(4);
    Events {
        ts: times(rows, 200, &mut random),
        duration: (0..rows)
            .map(|_| (-50.0 * (1.0 - random.unit()).ln()) as f32)
            .collect(),
        is_error: (0..rows).map(|_| random.below(50) == 0).collect(),
        service: (0..rows)
            .map(|_| random.below(u64::from(SERVICES)) as u16)
            .collect(),
    }
}

/// Returns ascending times without ties, `mean_gap` microseconds apart on average.
fn times(rows: usize, mean_gap: u64, random: &mut SplitMix64) -> Vec<i64> {
    let mut now = START;
    (0..rows)
        .map(|_| {
            now += 1 + random.below(2 * mean_gap - 1) as i64;
            now
        })
        .collect()
}

fn to_tick(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_ascend_without_ties_and_values_stay_in_range() {
        let data = Data::generate(5000);
        assert_eq!(data, Data::generate(5000));
        for ts in [&data.trades.ts, &data.quotes.ts, &data.events.ts] {
            assert!(ts.windows(2).all(|pair| pair[0] < pair[1]) && ts[0] > START);
        }
        assert_eq!(data.events.ts.len(), 25_000);
        assert!(
            data.trades
                .sym
                .iter()
                .chain(&data.quotes.sym)
                .all(|sym| *sym < SYMBOLS)
        );
        assert!(
            data.trades
                .size
                .iter()
                .all(|size| (1..=10_000).contains(size))
        );
        assert!(
            data.events
                .duration
                .iter()
                .all(|duration| duration.is_finite() && *duration >= 0.0)
        );
        let errors = data
            .events
            .is_error
            .iter()
            .filter(|is_error| **is_error)
            .count();
        assert!((300..700).contains(&errors), "{errors}");
    }

    #[test]
    fn a_bid_is_below_every_price_of_its_symbol() {
        let data = Data::generate(5000);
        let mut lowest = vec![f64::INFINITY; usize::from(SYMBOLS)];
        for (sym, price) in data.trades.sym.iter().zip(&data.trades.price) {
            let lowest = &mut lowest[usize::from(*sym)];
            *lowest = lowest.min(*price);
        }
        assert!(
            data.quotes
                .sym
                .iter()
                .zip(&data.quotes.bid)
                .all(|(sym, bid)| *bid < lowest[usize::from(*sym)])
        );
    }
}
