//! Fuzzes what `fuzzed::image` of the tests of Raft's storage does.
#![no_main]

#[path = "../../crates/forrest-raft/tests/it/fuzzed.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzed::image(input));
