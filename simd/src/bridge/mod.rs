//! The way to C++: the kernels' signatures, as Rust and C++ both see them.
//!
//! cxx compiles these files to both languages, and the compilers check that the signatures agree. Its thunk is one jump, and
//! pointers pass unchanged, so a call costs what a call to C costs. [`plain`] has the kernels that exist once, [`typed`] those
//! that exist for each element type.

mod plain;
mod typed;

pub(crate) use plain::*;
pub(crate) use typed::*;
