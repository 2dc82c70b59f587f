//! Fuzzes what `remixdb::decoders::store` does.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| remixdb::decoders::store(input));
