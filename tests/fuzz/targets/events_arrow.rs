#![no_main]

#[path = "../entries.rs"]
mod entries;

// The Arrow library panics on some streams. The decoder catches these panics and refuses the
// stream. The fuzzer's own hook would end the process at each panic; without it only an uncaught
// panic does.
libfuzzer_sys::fuzz_target!(
    init: std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))),
    |data: &[u8]| entries::events_arrow(data)
);
