//! Fuzzes what `fuzzed::line` of the library's tests does.
#![no_main]
#![expect(dead_code, reason = "the tests' modules are here for one function")]

#[path = "../../crates/forrest/tests/it/command.rs"]
mod command;
#[path = "../../crates/forrest/tests/it/drive.rs"]
mod drive;
#[path = "../../crates/forrest/tests/it/fuzzed.rs"]
mod fuzzed;
#[path = "../../crates/forrest/tests/it/model.rs"]
mod model;
#[path = "../../crates/forrest/tests/it/random.rs"]
mod random;
#[path = "../../crates/forrest/tests/it/script.rs"]
mod script;
#[path = "../../crates/forrest/tests/it/world.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzed::line(input));
