//! [`Cursors`]: the positions of `SCAN` and its family.
//!
//! Redis's cursor is a number, and a position in an ordered store is a key. So the server keeps the keys, and gives
//! their numbers to clients. It keeps a limited number and size of them; the oldest go first, and a client that comes
//! back with such a number gets an error.

use std::collections::{BTreeMap, VecDeque};

/// Most cursors.
const COUNT_MAX: usize = 16_384;
/// Most bytes of their keys.
const BYTES_MAX: usize = 16 << 20;

/// See the module.
#[derive(Default)]
pub(crate) struct Cursors {
    last: u64,
    bytes: usize,
    keys: BTreeMap<u64, Vec<u8>>,
    order: VecDeque<u64>,
}

impl Cursors {
    /// The number of a position. It is never 0.
    pub(crate) fn keep(&mut self, key: Vec<u8>) -> u64 {
        self.last += 1;
        self.bytes += key.len();
        self.keys.insert(self.last, key);
        self.order.push_back(self.last);
        while self.order.len() > COUNT_MAX || (self.bytes > BYTES_MAX && self.order.len() > 1) {
            if let Some(key) = self.order.pop_front().and_then(|oldest| self.keys.remove(&oldest)) {
                self.bytes -= key.len();
            }
        }
        self.last
    }

    /// The position of a number, which may be asked for again.
    pub(crate) fn get(&self, number: u64) -> Option<&[u8]> {
        self.keys.get(&number).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_at_both_limits() {
        let mut cursors = Cursors::default();
        let first = cursors.keep(b"a".to_vec());
        for _ in 1..COUNT_MAX {
            cursors.keep(b"b".to_vec());
        }
        assert_eq!(cursors.get(first), Some(&b"a"[..]));
        cursors.keep(b"c".to_vec());
        assert_eq!(cursors.get(first), None);
        assert_eq!(cursors.get(first + 1), Some(&b"b"[..]));
        let large = cursors.keep(vec![b'x'; BYTES_MAX]);
        assert_eq!(cursors.order.len(), 1);
        assert_eq!(cursors.get(large).map(<[u8]>::len), Some(BYTES_MAX));
        assert_eq!(cursors.bytes, BYTES_MAX);
        cursors.keep(b"y".to_vec());
        assert_eq!((cursors.bytes, cursors.get(large)), (1, None));
        assert_eq!(cursors.get(0), None);
    }
}
