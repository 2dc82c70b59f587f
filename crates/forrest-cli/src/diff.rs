//! What tells two ordered ranges apart: a merge of both, one step on each side at a time, so that it needs
//! no memory however large they are.

use forrest::{Result, View};
use std::cmp::Ordering;
use std::iter::{Fuse, Peekable};

/// A difference between an old state and a new one. The new state's value is given where there is one, else
/// the old one's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// What happened.
    pub(crate) kind: Kind,
    /// To which key.
    pub(crate) key: Vec<u8>,
    /// The value that the key has, or had.
    pub(crate) value: Vec<u8>,
}

/// What happened to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is only in the new state.
    Added,
    /// It is only in the old state.
    Removed,
    /// It has another value now.
    Changed,
}

/// One pair of a range.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The differences in the order of the keys; both sides must be in that order. An error of either side is
/// passed on.
pub(crate) struct Diff<O: Iterator, N: Iterator> {
    old: Peekable<Fuse<O>>,
    new: Peekable<Fuse<N>>,
}

impl Diff<std::iter::Empty<Result<Pair>>, std::iter::Empty<Result<Pair>>> {
    /// Compares all pairs of two views.
    pub(crate) fn of(
        old: &View,
        new: &View,
    ) -> Diff<impl Iterator<Item = Result<Pair>>, impl Iterator<Item = Result<Pair>>> {
        let pairs = |view: &View| {
            view.range(..).map(|entry| {
                let entry = entry?;
                Ok((entry.key().to_vec(), entry.value()?.to_vec()))
            })
        };
        Diff::new(pairs(old), pairs(new))
    }
}

impl<O, N> Diff<O, N>
where
    O: Iterator<Item = Result<Pair>>,
    N: Iterator<Item = Result<Pair>>,
{
    /// Compares `old` with `new`.
    pub(crate) fn new(old: O, new: N) -> Self {
        Diff { old: old.fuse().peekable(), new: new.fuse().peekable() }
    }

    fn step(&mut self) -> Result<Option<Change>> {
        loop {
            let order = match (self.old.peek(), self.new.peek()) {
                (None, None) => return Ok(None),
                (Some(Ok((old, _))), Some(Ok((new, _)))) => old.cmp(new),
                (Some(_), None) | (Some(Err(_)), _) => Ordering::Less,
                (None, Some(_)) | (_, Some(Err(_))) => Ordering::Greater,
            };
            let old = self.old.next_if(|_| order.is_le()).transpose()?;
            let new = self.new.next_if(|_| order.is_ge()).transpose()?;
            let (kind, (key, value)) = match (old, new) {
                (Some((_, old)), Some((_, new))) if old == new => continue,
                (Some(_), Some(new)) => (Kind::Changed, new),
                (Some(old), None) => (Kind::Removed, old),
                (None, Some(new)) => (Kind::Added, new),
                (None, None) => return Ok(None),
            };
            return Ok(Some(Change { kind, key, value }));
        }
    }
}

impl<O, N> Iterator for Diff<O, N>
where
    O: Iterator<Item = Result<Pair>>,
    N: Iterator<Item = Result<Pair>>,
{
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Map = BTreeMap<Vec<u8>, Vec<u8>>;

    fn side(map: &Map) -> impl Iterator<Item = Result<Pair>> {
        map.clone().into_iter().map(Ok)
    }

    proptest! {
        #[test]
        fn changes_turn_the_old_state_into_the_new(old: Map, new: Map, shared: Map) {
            let old: Map = old.into_iter().chain(shared.clone()).collect();
            let new: Map = new.into_iter().chain(shared).collect();
            let mut state = old.clone();
            let mut last = None;
            for change in Diff::new(side(&old), side(&new)) {
                let Change { kind, key, value } = change.unwrap();
                prop_assert!(last < Some(key.clone()), "not in order");
                last = Some(key.clone());
                match kind {
                    Kind::Added => prop_assert_eq!(state.insert(key, value), None),
                    Kind::Removed => prop_assert_eq!(state.remove(&key), Some(value)),
                    Kind::Changed => prop_assert_ne!(state.insert(key, value.clone()), Some(value)),
                }
            }
            prop_assert_eq!(state, new);
        }
    }
}
