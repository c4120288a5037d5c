//! Ends the servers on Ctrl-C. They are in separate process groups, so the terminal's signal does
//! not reach them.

use lanes_support::process::{Signal, children, send};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The exit code that a shell reports for a program ended by SIGINT.
const EXIT_CODE: i32 = 130;

/// Watches for SIGINT and SIGTERM, then ends all children at once, and this process with them. The
/// next run removes their files from the temporary folder.
pub fn end_children_when_interrupted() {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&interrupted)) {
            eprintln!("an interrupted run will leave its servers running: {error}");
        }
    }
    std::thread::spawn(move || {
        while !interrupted.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_EVERY);
        }
        eprintln!("interrupted");
        for child in children(std::process::id()) {
            // PostgreSQL ends at once on SIGQUIT, together with its own children. The other servers
            // end on it too.
            send(child, Signal::QUIT);
        }
        std::process::exit(EXIT_CODE);
    });
}
