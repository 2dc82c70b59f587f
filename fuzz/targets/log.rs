//! Fuzzes what `remixdb::decoders::log` does.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| remixdb::decoders::log(input));
