//! A fleet of machines that all run node_exporter, as one remote-write sender would send it.
//!
//! ```text
//! capture: node_exporter ──► two pages, a second apart ──► page: series ──► shape: names, labels, movement of each value
//!                                                                              │
//!                    bodies: one request for some targets of one scrape ◄── values: of every series of every target
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`capture`] | pages of a real node_exporter of this machine |
//! | [`page`] | the text format: series, labels, values, types |
//! | [`shape`] | the common properties of all targets: label sets, and the movement of each value |
//! | [`values`] | the current value of each series of each target, advanced scrape by scrape |
//! | [`bodies`] | remote-write requests of a scrape, encoded and compressed, with their counts and sums |
//!
//! A target is a machine: its series are those of the captured page with `instance` and `job`
//! added, as a scrape adds them. The machine gets more CPUs until the page has the requested number
//! of series; surplus series are left out.
//!
//! Values move as in the two pages. A constant counter stays constant, a growing counter grows at
//! about its rate (with a separate rate for each target and scrape), and a moving gauge walks
//! randomly around its captured value. Integers stay integers, and decimals keep their number of
//! digits. The data therefore compresses as well as real data, and no better.
//!
//! # Invariants
//! - Equal shape, seed and number of a scrape produce equal bytes.
//! - All values are finite.
//! - A body has the number and the sum of its samples, so the content of a store can be verified
//!   without decoding.

pub mod bodies;
pub mod capture;
pub mod page;
pub mod shape;
pub mod values;
