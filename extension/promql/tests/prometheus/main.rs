//! Prometheus's own tests, read from its Go module and run against this crate.

mod go_module;
mod parser_cases;
