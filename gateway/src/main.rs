//! Gateway.
fn main() {}
