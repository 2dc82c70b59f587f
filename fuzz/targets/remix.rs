//! Fuzzes what `forrest::fuzzing::remix` does.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| forrest::fuzzing::remix(input));
