//! Lets the unit tests of this crate link.
//!
//! The server defines the functions and variables of PostgreSQL, and it loads the extension. A unit test is a program
//! without a server. It calls nothing of PostgreSQL, but the linker may meet such a name in code that shares an object
//! file with the tested code. The linker then leaves the name undefined instead of failing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg=-Wl,--unresolved-symbols=ignore-all");
}
