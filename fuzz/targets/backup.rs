//! Fuzzes what `remixdb::decoders::description` does.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| remixdb::decoders::description(input));
