//! The instruction sets that the kernels are compiled for. At run time the best that the CPU has is
//! used.

use crate::bridge;
use std::ffi::CStr;
use std::fmt;

/// An instruction set.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target(i64);

impl Target {
    /// The compiled instruction sets that this CPU supports, the best first.
    pub fn supported() -> Vec<Target> {
        let all = bridge::supported_targets();
        (0..63)
            .map(|bit| Target(1 << bit))
            .filter(|target| target.0 & all != 0)
            .collect()
    }

    /// Highway's name, for instance `AVX2`.
    pub fn name(self) -> &'static str {
        let name = bridge::target_name(self.0);
        // SAFETY: a string literal of C++.
        unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default()
    }

    /// From now on the whole process uses this one: for tests and benchmarks. [`Target::supported`]
    /// and [`Target::use_best`] undo it. Kernels that run meanwhile are right on either.
    pub fn use_only(self) {
        bridge::restrict_targets(self.0);
    }

    /// From now on the best is used, as in the beginning.
    pub fn use_best() {
        bridge::restrict_targets(0);
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
