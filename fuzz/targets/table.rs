//! Fuzzes what `forrest::fuzzing::table` does.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| forrest::fuzzing::table(input));
