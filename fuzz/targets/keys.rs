//! Fuzzes what `remixdb::decoders::keys` does.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| remixdb::decoders::keys(input));
