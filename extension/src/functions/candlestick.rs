//! `lanes.candlestick(ts, price, volume)`: first, greatest, least and last price, with their times, and the volume.
//!
//! Rows whose time or price is NULL do not count. A NULL volume adds nothing. Among equal times, the open is of the row
//! that arrives first, and the close is of the row that arrives last. Of equal prices, the greatest and the least are
//! of the earliest time, in whichever order processes combine their candles. NaN is the greatest price.

use std::cmp::Reverse;

use lanes_columnar::aggregate::ema::order_key;
use pgrx::{IntoDatum, pg_sys};

use super::vwap::{self, Sums};
use crate::arithmetic::float8;
use crate::pg::call::{Call, float8_datum};

crate::sql_callables! {
    lanes_candlestick_transition, pg_finfo_lanes_candlestick_transition => transition;
    lanes_candlestick_combine, pg_finfo_lanes_candlestick_combine => combine;
    lanes_candlestick_serialise, pg_finfo_lanes_candlestick_serialise => serialise;
    lanes_candlestick_deserialise, pg_finfo_lanes_candlestick_deserialise => deserialise;
    lanes_candlestick_final, pg_finfo_lanes_candlestick_final => finish;
}

/// A price and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Trade {
    time: i64,
    price: f64,
}

/// The candle so far.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Candle {
    open: Trade,
    high: Trade,
    low: Trade,
    close: Trade,
    /// The rows with a volume, the sum of price times volume, and the sum of volumes.
    sums: Sums,
}

/// The bytes of a serialised candle.
const BYTES: usize = 8 * 11;

impl Candle {
    fn new(trade: Trade) -> Candle {
        Candle {
            open: trade,
            high: trade,
            low: trade,
            close: trade,
            sums: [0.0; 3],
        }
    }

    /// Adds a candle, whose rows came later.
    #[inline]
    fn add(&mut self, later: &Candle) {
        self.add_trades(later);
        self.sums = vwap::merge(&self.sums, &later.sums);
    }

    /// Adds the prices and times of a candle, whose rows came later.
    #[inline]
    fn add_trades(&mut self, later: &Candle) {
        if later.open.time < self.open.time {
            self.open = later.open;
        }
        if later.close.time >= self.close.time {
            self.close = later.close;
        }
        let high = |trade: &Trade| (order_key(trade.price), Reverse(trade.time));
        if high(&later.high) > high(&self.high) {
            self.high = later.high;
        }
        let low = |trade: &Trade| (order_key(trade.price), trade.time);
        if low(&later.low) < low(&self.low) {
            self.low = later.low;
        }
    }

    fn to_bytes(self) -> [u8; BYTES] {
        let mut words = [0; BYTES / 8];
        for (place, trade) in [self.open, self.high, self.low, self.close]
            .iter()
            .enumerate()
        {
            words[2 * place] = trade.time as u64;
            words[2 * place + 1] = trade.price.to_bits();
        }
        words[8..].copy_from_slice(&self.sums.map(f64::to_bits));
        let mut bytes = [0; BYTES];
        let (chunks, _) = bytes.as_chunks_mut();
        let places = chunks.iter_mut().zip(words);
        places.for_each(|(place, word)| *place = word.to_ne_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; BYTES]) -> Candle {
        let (chunks, _) = bytes.as_chunks();
        let word = |place: usize| u64::from_ne_bytes(chunks[place]);
        let trade = |place: usize| Trade {
            time: word(2 * place) as i64,
            price: f64::from_bits(word(2 * place + 1)),
        };
        Candle {
            open: trade(0),
            high: trade(1),
            low: trade(2),
            close: trade(3),
            sums: [8, 9, 10].map(|place| f64::from_bits(word(place))),
        }
    }
}

/// The state as the datum that PostgreSQL passes on.
fn datum(state: &mut Candle) -> pg_sys::Datum {
    pg_sys::Datum::from(&raw mut *state)
}

fn transition(call: &Call) -> Option<pg_sys::Datum> {
    let (Some(time), Some(price)) = (call.int8(1), call.float8(2)) else {
        return call.argument(0);
    };
    let mut row = Candle::new(Trade { time, price });
    if let Some(volume) = call.float8(3) {
        row.sums = [1.0, float8::multiply(price, volume), volume];
    }
    Some(merged(call, &row))
}

fn combine(call: &Call) -> Option<pg_sys::Datum> {
    let Some(later) = call.state::<Candle>(1).copied() else {
        return call.argument(0);
    };
    Some(merged(call, &later))
}

/// The state with a candle added.
#[inline]
fn merged(call: &Call, later: &Candle) -> pg_sys::Datum {
    match call.state::<Candle>(0) {
        Some(candle) => {
            candle.add(later);
            datum(candle)
        }
        None => datum(call.new_state(super::aggregate_memory(call), *later)),
    }
}

fn serialise(call: &Call) -> Option<pg_sys::Datum> {
    let candle = call.state::<Candle>(0)?;
    candle.to_bytes().as_slice().into_datum()
}

fn deserialise(call: &Call) -> Option<pg_sys::Datum> {
    let candle = Candle::from_bytes(call.text(0)?.first_chunk()?);
    Some(datum(call.new_state(call.current_memory(), candle)))
}

/// A row of `lanes.candle`.
fn finish(call: &Call) -> Option<pg_sys::Datum> {
    let candle = call.state::<Candle>(0)?;
    let has_volume = candle.sums[0] > 0.0;
    let price = |trade: Trade| Some(float8_datum(trade.price));
    let time = |trade: Trade| Some(pg_sys::Datum::from(trade.time));
    call.composite(&[
        price(candle.open),
        price(candle.high),
        price(candle.low),
        price(candle.close),
        has_volume.then(|| float8_datum(candle.sums[2])),
        vwap::average(&candle.sums).map(float8_datum),
        time(candle.open),
        time(candle.high),
        time(candle.low),
        time(candle.close),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candle(rows: &[(i64, f64)]) -> Candle {
        let one = |row: &(i64, f64)| {
            Candle::new(Trade {
                time: row.0,
                price: row.1,
            })
        };
        let mut candle = one(&rows[0]);
        rows[1..]
            .iter()
            .for_each(|row| candle.add_trades(&one(row)));
        candle
    }

    #[test]
    fn of_equal_times_the_first_opens_and_the_last_closes() {
        let candle = candle(&[(5, 2.0), (1, 7.0), (1, 3.0), (5, 4.0)]);
        assert_eq!((candle.open.price, candle.close.price), (7.0, 4.0));
        assert_eq!((candle.high.time, candle.low.time), (1, 5));
    }

    #[test]
    fn of_equal_prices_the_earliest_counts() {
        let candle = candle(&[(5, 2.0), (4, 7.0), (1, 7.0), (2, 7.0), (3, 2.0), (6, 2.0)]);
        assert_eq!((candle.high.time, candle.low.time), (1, 3));
    }

    #[test]
    fn bytes_give_the_candle_back() {
        let mut candle = candle(&[(5, 2.0), (-1, 7.0)]);
        candle.sums = [2.0, 3.5, -4.0];
        assert_eq!(Candle::from_bytes(&candle.to_bytes()), candle);
    }
}
