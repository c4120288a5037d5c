//! Scenario `overload`: more than can be taken, for some seconds, and then nothing.
//!
//! ```text
//! feed ─► trials, closed loop ─► the sustainable rate ─► overload, open loop ─► recorded: which were acknowledged ─┐
//!   │                                probe, all the time ─► when it is as before                                   ▼
//!   └────────────────────────────────────────────────────────────────────── stored: what SQL says of each ─► findings
//! ```
//!
//! | module | one thing |
//! |---|---|
//! | [`feed`] | what is sent, and what is stored of each request |
//! | [`event_feed`] | batches of events |
//! | [`sample_feed`] | remote write |
//! | [`recorded`] | requests that remember which of them were acknowledged |
//! | [`probe`] | small requests, one at a time, before, during and after |
//! | [`scenario`] | the run, its figures and their bars |
//!
//! # What has to hold
//! - A request that was acknowledged is stored, wholly and once. One that was not is stored wholly and once, or not at all: a refusal that
//!   came because an answer was late does not say which.
//! - A request is acknowledged, or refused with 503 or 429 and a `Retry-After`; nothing else.
//! - What is acknowledged while the load lasts is most of the sustainable rate.
//! - The gateway's memory stays within its budgets and a stated base.
//! - Within a second after the load a small request takes no longer than before it.

pub mod feed;

pub mod event_feed;
pub mod sample_feed;

pub mod recorded;

pub mod probe;

pub mod scenario;
