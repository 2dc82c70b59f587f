//! The tests of `it/concurrency.rs` by themselves. `cargo xtask races` builds them twice, with a sanitizer each time.
//! With all other tests of `it` that takes a multiple of the time.

#[path = "it/concurrency.rs"]
mod concurrency;
#[path = "it/concurrency.rs"]
#[expect(clippy::duplicate_mod, reason = "the same tests, on another home")]
mod concurrency_on_disk;
#[path = "it/random.rs"]
#[expect(dead_code, reason = "the other tests need more of it")]
mod random;
