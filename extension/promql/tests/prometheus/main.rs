//! Prometheus's own tests, read from its Go module and run against this crate.
//!
//! | module | one thing |
//! |---|---|
//! | [`go_module`] | where the module lies |
//! | [`parser_cases`] | the cases of the parser's test |
//! | [`engine_cases`] | the scripts of the engine's tests |
//! | [`script`], [`series_notation`] | a script's text to commands |
//! | [`storage`] | the series that a script has loaded |
//! | [`comparison`] | answers against expectations |
//! | [`skipped`] | evaluations that are skipped, and why |

mod comparison;
mod engine_cases;
mod go_module;
mod parser_cases;
mod script;
mod series_notation;
mod skipped;
mod storage;
