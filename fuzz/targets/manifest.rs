//! Fuzzes what `remixdb::decoders::manifest` does.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| remixdb::decoders::manifest(input));
