//! The bridge to C++: the signatures of the kernels in Rust and in C++.
//!
//! cxx compiles these files to both languages, and the compilers check that the signatures agree. A
//! thunk of cxx is one jump, and pointers pass unchanged, so a call costs as much as a call of C.
//! [`plain`] has the kernels that exist once, [`typed`] the kernels that exist for each element
//! type.

mod plain;
mod typed;

pub(crate) use plain::*;
pub(crate) use typed::*;
