//! Operands of merges that are stored until they are applied.
//!
//! A merge into a key that no memtable has is stored as an operand, without a read of the key. An entry of a memtable
//! or a table that has operands ([`wrapped`](crate::wrapped)) is complete in itself: it has all operands that came
//! while that place took changes, and they are to be applied to what older places have. So who reads the key gathers
//! such entries from the newest place to the first value or tombstone, and applies them in their order.
//!
//! The memtable joins the operands that it gets for a key: those that the operator combines become one. It takes up to
//! [`COUNT_MAX`] for a key, and [`BYTES_MAX`] bytes of them. A merge beyond that reads the key, and stores a value. A
//! merge of tables that would join more reads what older tables have, unless one of these is damaged. So a read applies
//! few operands for each table.
//!
//! A value that grows beyond the maximum length stays without the operand that would do that.

use crate::catalog::Catalog;
use crate::wrapped;
use forrest_engine::merge::{self, MergeOperator, SharedOperator};
use forrest_engine::{Error, ErrorKind, MAX_VALUE_BYTES, Result};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

/// Operands that a memtable or a table has for a key, at most.
pub(crate) const COUNT_MAX: usize = if cfg!(test) { 4 } else { 64 };
/// Bytes of these, about, at most.
pub(crate) const BYTES_MAX: usize = 4096;
/// A value that operands make has at most this many bytes: the limit of values, less what any place has beside them.
const VALUE_MOST: usize = MAX_VALUE_BYTES - 64;

/// What a store knows of operands.
#[derive(Default)]
pub(crate) struct Operated {
    /// The merge operators of the keyspaces for which the manifest names one, by their identifiers.
    operators: RwLock<BTreeMap<u32, SharedOperator>>,
    /// Whether the manifest says that logs and tables may have operands.
    are_stored: AtomicBool,
}

impl Operated {
    /// That of a store with a catalogue, whose manifest says whether there may be operands.
    pub(crate) fn of(catalog: &Catalog, are_stored: bool) -> Operated {
        let operated = Operated { are_stored: AtomicBool::new(are_stored), ..Operated::default() };
        operated.add_all(catalog);
        operated
    }

    /// Whether the manifest says that logs and tables may have operands.
    pub(crate) fn are_stored(&self) -> bool {
        // ORDERING: Acquire pairs with the Release below: what is logged after it comes after the manifest.
        self.are_stored.load(Ordering::Acquire)
    }

    /// Notes that the manifest says so.
    pub(crate) fn store(&self) {
        self.are_stored.store(true, Ordering::Release);
    }

    /// Whether the manifest names a merge operator of a keyspace.
    pub(crate) fn has(&self, space: u32) -> bool {
        self.operators.read().unwrap_or_else(PoisonError::into_inner).contains_key(&space)
    }

    /// Adds those of the keyspaces of a catalogue.
    pub(crate) fn add_all(&self, catalog: &Catalog) {
        for space in catalog.spaces.values() {
            if let Some(operator) = space.operator() {
                self.add(space.id, operator);
            }
        }
    }

    /// Adds that of a keyspace, which keeps it.
    pub(crate) fn add(&self, space: u32, operator: &SharedOperator) {
        let mut operators = self.operators.write().unwrap_or_else(PoisonError::into_inner);
        operators.entry(space).or_insert_with(|| operator.clone());
    }

    /// The operator of a keyspace that has operands.
    ///
    /// # Errors
    /// `Corrupt` if it has none: no store writes such operands.
    pub(crate) fn get(&self, space: u32) -> Result<SharedOperator> {
        let operators = self.operators.read().unwrap_or_else(PoisonError::into_inner);
        operators.get(&space).cloned().ok_or_else(|| {
            let what = format!("keyspace {space} has operands of merges, and no merge operator");
            Error::new(ErrorKind::Corrupt, what)
        })
    }
}

fn listed(bytes: &[u8]) -> Result<Vec<&[u8]>> {
    wrapped::operands(bytes).ok_or_else(|| Error::new(ErrorKind::Corrupt, wrapped::FLAW))
}

/// One entry with the operands of an older one and then those of a newer one.
///
/// # Errors
/// `Corrupt` if an entry has no operands.
pub(crate) fn joined(
    operator: &dyn MergeOperator,
    key: &[u8],
    older: &[u8],
    newer: &[u8],
) -> Result<Vec<u8>> {
    let mut all: Vec<Cow<'_, [u8]>> = listed(older)?.into_iter().map(Cow::Borrowed).collect();
    for operand in listed(newer)? {
        // One that panics does not combine them: they are applied one by one, as they are read.
        let one = all.last().and_then(|last| merge::combined(operator, key, last, operand).ok().flatten());
        match (all.last_mut(), one) {
            (Some(last), Some(one)) => *last = Cow::Owned(one),
            _ => all.push(Cow::Borrowed(operand)),
        }
    }
    Ok(wrapped::of_operands(all.iter().map(|operand| &operand[..])))
}

/// The time at which a value must be there for operands to be applied to it. None is stored for a key whose value may
/// still expire. So a value that expires had done so when they came, whatever the time is now.
pub(crate) fn base_ms(entries: &[Vec<u8>], now_ms: impl FnOnce() -> u64) -> u64 {
    if entries.is_empty() { now_ms() } else { u64::MAX }
}

/// Whether a place takes an entry with these operands; if not, the key gets a value.
pub(crate) fn fits(bytes: &[u8]) -> bool {
    bytes.len() <= BYTES_MAX && wrapped::operands(bytes).is_some_and(|all| all.len() <= COUNT_MAX)
}

/// The value that entries with operands make of an older value. The newest entry comes first.
///
/// # Errors
/// As [`joined`]; `InvalidArgument` if the operator panics.
pub(crate) fn applied(
    operator: &dyn MergeOperator,
    key: &[u8],
    old: Option<&[u8]>,
    entries: &[Vec<u8>],
) -> Result<Vec<u8>> {
    let mut value: Option<Cow<'_, [u8]>> = old.map(Cow::Borrowed);
    for entry in entries.iter().rev() {
        for operand in listed(entry)? {
            let new = merge::merged(operator, key, value.as_deref(), [operand], usize::MAX)?;
            if new.len() <= VALUE_MOST {
                value = Some(Cow::Owned(new));
            }
        }
    }
    Ok(value.unwrap_or_default().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_engine::merge::operators::{Append, Sum};

    fn sums(all: &[i64]) -> Vec<u8> {
        let all: Vec<_> = all.iter().map(|one| one.to_be_bytes()).collect();
        wrapped::of_operands(all.iter().map(|one| &one[..]))
    }

    #[test]
    fn operands_are_joined_where_they_combine_and_applied_in_order() {
        let join = |older: &[i64], newer: &[i64]| joined(&Sum, b"k", &sums(older), &sums(newer)).unwrap();
        assert_eq!(join(&[1], &[2]), sums(&[3]));
        assert_eq!(join(&[1], &[-2, -3, 4]), sums(&[1, -5, 4]));
        assert!(fits(&join(&[1, -1], &[1, -1])) && !fits(&join(&[1, -1, 1], &[-1, 1])));
        let lists = [sums(&[-1]), sums(&[i64::MAX])];
        let value = applied(&Sum, b"k", Some(&5_i64.to_be_bytes()), &lists).unwrap();
        assert_eq!(value, (i64::MAX - 1).to_be_bytes(), "the older operand first");
        let lists = [wrapped::of_operands([&b"c"[..]]), wrapped::of_operands([&b"a"[..], b"b"])];
        assert_eq!(applied(&Append, b"k", None, &lists).unwrap(), b"abc");
        assert_eq!(applied(&Append, b"k", Some(b"_"), &lists).unwrap(), b"_abc");
        assert_eq!(joined(&Append, b"k", b"\x01", &lists[0]).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(Operated::default().get(3).err().map(|error| error.kind()), Some(ErrorKind::Corrupt));
    }
}
