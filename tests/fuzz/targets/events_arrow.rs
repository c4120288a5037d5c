#![no_main]

#[path = "../entries.rs"]
mod entries;

// The Arrow library panics at some streams, which the decoder catches and refuses. The fuzzer's own hook would end the
// process at each panic; without it only those end the process that nobody catches.
libfuzzer_sys::fuzz_target!(
    init: std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))),
    |data: &[u8]| entries::events_arrow(data)
);
