//! Fuzzes what `remixdb::decoders::table` does.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| remixdb::decoders::table(input));
