//! [`Buffers`]: memory for operations and answers, which each thread keeps from one call to the next.

use crate::wire::Ops;
use forrest_engine::{Error, ErrorKind, Result};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// The first capacity for answers, in bytes.
pub(super) const ROOM_BYTES: usize = 64 << 10;
/// Longer buffers are freed after the call.
const KEPT_BYTES: usize = 1 << 20;

thread_local! {
    static KEPT: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// Operations, and room for their answers.
pub(super) struct Buffers {
    pub(super) ops: Ops,
    /// All of its length is room for answers. Bytes after the answers are left from earlier calls.
    pub(super) answers: Vec<u8>,
    /// Pairs of a seqlock scan.
    pub(super) seen: Vec<u8>,
}

/// Buffers in use.
pub(super) struct Taken(Option<Box<Buffers>>);

impl Buffers {
    /// Takes this thread's buffers, with no operations in them; new ones if a caller further up has taken
    /// them.
    pub(super) fn take() -> Taken {
        let kept = KEPT.try_with(Cell::take).ok().flatten();
        let mut buffers = kept.unwrap_or_else(|| {
            Box::new(Buffers { ops: Ops::default(), answers: vec![0; ROOM_BYTES], seen: Vec::new() })
        });
        buffers.ops.clear();
        Taken(Some(buffers))
    }
}

impl Deref for Taken {
    type Target = Buffers;
    fn deref(&self) -> &Buffers {
        self.0.as_deref().expect("only drop takes the buffers")
    }
}

impl DerefMut for Taken {
    fn deref_mut(&mut self) -> &mut Buffers {
        self.0.as_deref_mut().expect("only drop takes the buffers")
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let kept = self.0.take().filter(|buffers| {
            let longest = buffers.answers.len().max(buffers.ops.capacity()).max(buffers.seen.capacity());
            longest <= KEPT_BYTES
        });
        // Fails while the thread ends; then the buffers are freed.
        let _ = KEPT.try_with(|place| place.set(kept));
    }
}

/// Makes room for `bytes` bytes of answers.
pub(super) fn make_room(answers: &mut Vec<u8>, bytes: usize) -> Result<()> {
    let more = bytes.saturating_sub(answers.len());
    if answers.try_reserve(more).is_err() {
        let message = format!("there is no memory for an answer of {bytes} bytes");
        return Err(Error::new(ErrorKind::OutOfSpace, message));
    }
    if more > 0 {
        answers.resize(bytes, 0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_what_is_not_too_long() {
        let mut first = Buffers::take();
        make_room(&mut first.answers, 100_000).expect("there is memory");
        // A nested call gets other buffers.
        assert_eq!(Buffers::take().answers.len(), ROOM_BYTES);
        drop(first);
        let mut second = Buffers::take();
        assert_eq!(second.answers.len(), 100_000);
        make_room(&mut second.answers, 10).expect("there is more already");
        assert_eq!(second.answers.len(), 100_000);
        make_room(&mut second.answers, KEPT_BYTES + 1).expect("there is memory");
        drop(second);
        assert_eq!(Buffers::take().answers.len(), ROOM_BYTES);
    }
}
