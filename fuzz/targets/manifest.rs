//! Fuzzes what `forrest::fuzzing::manifest` does.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| forrest::fuzzing::manifest(input));
