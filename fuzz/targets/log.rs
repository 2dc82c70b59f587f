//! Fuzzes what `forrest::fuzzing::log` does.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| forrest::fuzzing::log(input));
