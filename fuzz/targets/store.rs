//! Fuzzes what `forrest::fuzzing::store` does.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| forrest::fuzzing::store(input));
