//! What several crates of Forrest need and the standard library does not have. It knows neither the operating system
//! nor stores.
//!
//! | item | what it is |
//! |---|---|
//! | [`random`] | numbers that a seed replays |
//! | [`tag`] | the bits of a hash that are compared before a key |
//! | [`lock`] | a mutex that a panic does not close |
//! | [`panic_text`] | the text of a panic |
//! | [`weakened!`] | places that the models weaken; nothing outside of them |
#![forbid(unsafe_code)]

pub mod random;
mod weakened;

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The first `bits` bits of a hash, from 1 to 64: a tag, which is compared before a key is.
///
/// Tags hide a wrong comparison of keys from nearly all lookups. So in the build of `cargo xtask test collisions` each
/// has one bit.
#[inline(always)]
pub const fn tag(hash: u64, bits: u32) -> u64 {
    hash >> (64 - if cfg!(forrest_collisions) { 1 } else { bits })
}

/// Takes a mutex, even if a thread panicked while it held it. What the mutex guards must be whole at every step, or the
/// panic must be reported in another way.
#[inline]
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The text of a panic, from what `catch_unwind` returned; `None` if it had none.
pub fn panic_text(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_does_not_close_a_lock() {
        let mutex = Mutex::new(1);
        std::thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let _held = lock(&mutex);
                panic!("with the lock held");
            });
            assert!(panics.join().is_err());
        });
        assert!(mutex.is_poisoned());
        assert_eq!(*lock(&mutex), 1);
    }

    #[test]
    fn a_panic_has_its_text() {
        let text = |panics: fn()| {
            let payload = std::panic::catch_unwind(panics).expect_err("it panics");
            panic_text(&*payload).map(str::to_owned)
        };
        assert_eq!(text(|| panic!("no root")).as_deref(), Some("no root"));
        assert_eq!(text(|| panic!("no root in {}", 7)).as_deref(), Some("no root in 7"));
        assert_eq!(text(|| std::panic::panic_any(7)), None);
    }
}
