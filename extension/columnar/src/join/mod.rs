//! Joins by time: what the rows of a right side say of each row of a left side that has the same keys.
//!
//! ```text
//! right vectors ── keys::assign ──► series::SeriesBuilder ── finish ──► Series: rows by key, then by time, then by arrival
//! left vector   ── keys::assign, bounds of the time ──► cursor: places in the series
//!                     ├── asof:   the nearest row within the bounds ──► its columns
//!                     └── window: all rows within the bounds ──► aggregates of them
//!                                                        └──► operands that a frame is joined beside its lanes
//! both sides by key, then by time: left and right runs of a key ──► by_key ──► the same operands
//! both sides in the order of their times: left and right vectors ──► merge │ sliding ──► the same operands
//! ```
//!
//! The cast, in the order in which data flow:
//! - [`keys`]: equal keys of both sides get one id.
//! - [`series`]: the right side in memory; [`room`]: how much of that it takes at a time.
//! - [`cursor`]: how many rows of a key are not later than a time; cheap if times of a key come in order.
//! - [`asof`], [`window`]: what is found for each left row.
//! - [`side_by_side`]: without a series, while both sides are in the order of their times: [`merge`] for the nearest rows,
//!   [`sliding`] for aggregates.
//! - [`by_key`]: without a series, while both sides come by key and time: the nearest rows.
//! - [`joined_column`]: the columns of what was found.
//! - [`equal`]: joins without a time: the rows of a small side that have the same keys. [`found`]: which of them each
//!   row has found. [`key_set`]: the zones that rule all of them out. [`key_codes`]: keys that are no lanes, as numbers.
//!
//! Invariants: a place is an index into the series; ids of left rows may be unknown to the series, which then has no rows for
//! them; a NULL key or bound matches nothing (but for keys of `IS NOT DISTINCT FROM`).
//!
//! Order: left rows may come in any order, right rows too. What a row finds does not depend on either, but for right rows of
//! one key and one time, which keep the order of their arrival.

pub mod asof;
pub mod by_key;
pub mod cursor;
pub mod equal;
pub mod found;
pub mod joined_column;
pub mod key_codes;
pub mod key_set;
pub mod keys;
pub mod merge;
pub mod room;
pub mod series;
pub mod side_by_side;
pub mod sliding;
pub mod window;

#[cfg(test)]
mod tests;
