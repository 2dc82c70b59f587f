//! Fuzzes what `remixdb::decoders::remix` does.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| remixdb::decoders::remix(input));
