//! Times of the system's interface.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Returns the CPU seconds of the calling thread.
pub fn thread_cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Converts nanoseconds.
pub fn timespec(nanoseconds: u64) -> Timespec {
    Timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as i64,
        tv_nsec: (nanoseconds % 1_000_000_000) as i64,
    }
}
