//! Joins by time and by equality: the rows of a right side that match each row of a left side.
//!
//! ```text
//! right vectors ── keys::assign ──► series::SeriesBuilder ── finish ──► Series: rows by key, then by time, then by arrival
//! left vector   ── keys::assign, bounds of the time ──► cursor: places in the series
//!                     ├── asof:   the nearest row within the bounds ──► its columns
//!                     └── window: all rows within the bounds ──► aggregates of them
//!                                                        └──► joined columns, operands of a frame beside its lanes
//! both sides by key, then by time: left and right stretches of a key ──► by_key ──► joined columns
//! both sides in the order of their times: left and right vectors ──► merge │ sliding ──► joined columns
//! ```
//!
//! The cast, in the direction of the data:
//! - [`keys`]: ids of keys; equal keys of both sides have one id.
//! - [`series`]: the right side in memory; [`room`]: the growth of that memory.
//! - [`cursor`]: the number of rows of a key that are not later than a time; cheap if the times of
//!   a key are searched in order.
//! - [`asof`], [`window`]: the match of each left row.
//! - [`side_by_side`]: joins without a series, while both sides are read in the order of their
//!   times: [`merge`] for the nearest rows, [`sliding`] for aggregates. [`reading`]: the order of
//!   their calls.
//! - [`by_key`]: joins without a series, while both sides are read by key and time: the nearest
//!   rows.
//! - [`joined_column`]: the columns of the matches.
//! - [`equal`]: joins without a time: the rows of a small side that have equal keys. [`found`]: the
//!   match of each row. [`key_set`]: the values by which zones rule out vectors. [`key_codes`]:
//!   keys that are not lanes, as numbers. `chains`: the rows of each key. `equal_key`: one key. `many_keys`: the keys
//!   of many rows.
//!
//! Invariants: a place is an index into the series; ids of left rows may be unknown to the series,
//! which then has no rows for them; a NULL key or bound matches nothing, except for keys of `IS NOT
//! DISTINCT FROM`.
//!
//! Order: left and right rows may come in any order. The matches depend on neither, except that
//! right rows of one key and one time keep the order of their arrival.

pub mod asof;
pub mod by_key;
mod chains;
pub mod cursor;
pub mod equal;
mod equal_key;
pub mod found;
pub mod joined_column;
pub mod key_codes;
pub mod key_set;
pub mod keys;
mod many_keys;
pub mod merge;
pub mod reading;
pub mod room;
pub mod series;
pub mod side_by_side;
pub mod sliding;
pub mod window;

#[cfg(test)]
mod tests;
