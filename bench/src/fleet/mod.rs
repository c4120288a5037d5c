//! A fleet of machines that all run node_exporter, as one sender would remote-write it.
//!
//! ```text
//! capture: node_exporter ──► two pages, a second apart ──► page: series ──► shape: names, labels, how each value moves
//!                                                                              │
//!                    bodies: one request for some targets of one scrape ◄── values: of every series of every target
//! ```
//!
//! | module | one thing |
//! |---|---|
//! | [`capture`] | the pages of a real node_exporter of this machine |
//! | [`page`] | the text format: series, labels, values, types |
//! | [`shape`] | what all targets have in common: label sets, and how each value moves |
//! | [`values`] | the value of each series of each target now, moved on scrape by scrape |
//! | [`bodies`] | remote write requests of a scrape, encoded and compressed, with what they hold |
//!
//! A target is a machine: its series are those of the captured page with `instance` and `job` added, as a scrape adds them. The
//! page is brought to the wanted number of series by giving the machine more CPUs (or by leaving out its last series).
//!
//! Values move as the two pages did: a counter that stood still goes on standing still, one that grew grows at about that rate (a
//! rate of its own for each target and scrape), a gauge that moved walks at random around its captured value; integers stay integers,
//! decimals keep their number of digits. So what a store can compress is there to be compressed, and nothing else is.
//!
//! Invariants: the same shape, seed and number of a scrape give the same bytes; all values are finite; a body says how many samples it
//! holds and their sum, so that what a store holds can be verified without decoding anything.

pub mod bodies;
pub mod capture;
pub mod page;
pub mod shape;
pub mod values;
