//! The scenario `overload`: for some seconds more requests than the gateway can process, and then
//! none.
//!
//! ```text
//! feed ─► trials, closed loop ─► the sustainable rate ─► overload, open loop ─► recorded: which were acknowledged ─┐
//!   │                                probe, all the time ─► when latency is normal again                           ▼
//!   └────────────────────────────────────────────────────────────────────── stored, by SQL for each request ─► findings
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`feed`] | the requests, and how much of each is stored |
//! | [`event_feed`] | batches of events |
//! | [`sample_feed`] | remote write |
//! | [`recorded`] | requests that remember which of them were acknowledged |
//! | [`probe`] | small requests, one at a time, before, during and after the load |
//! | [`scenario`] | the run, its figures and their bars |
//!
//! # Requirements
//! - A request that was acknowledged is stored completely and once. A request that was not
//!   acknowledged is stored completely and once, or not at all: a refusal after a timeout does not
//!   determine which.
//! - A request is acknowledged, or refused with 503 or 429 and a `Retry-After`.
//! - During the load the gateway acknowledges most of the sustainable rate.
//! - The gateway's memory stays within its budgets and a stated base.
//! - Within a second after the load a small request takes no longer than before it.

pub mod feed;

pub mod event_feed;
pub mod sample_feed;

pub mod recorded;

pub mod probe;

pub mod scenario;
