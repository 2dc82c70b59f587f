//! [`MergeOperator`]: how operands become part of values, and [`operators`], those that every build has.
//!
//! A merge gives an operand to a key, and the operator of its keyspace makes a new value of it and the old one, as one
//! change.

use crate::error::{Error, Result};
use crate::op::{Effect, Op, Outcome};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How an operand changes a value. A store calls it from any of its threads, and for the same operands again, at any
/// later time. So it must be a function of its arguments alone. It must not use a store: a change of the same store in
/// memory panics there. If it panics, the call that needs its result fails with `InvalidArgument`, and nothing is
/// changed.
///
/// It has a result for all bytes: [`check_value`](MergeOperator::check_value) and
/// [`check_operand`](MergeOperator::check_operand) refuse bytes before they are stored. The store remembers the name of
/// the operator of each keyspace, not its code. An operator whose results change needs a new name.
///
/// ```
/// use forrest::{Db, MergeOperator};
///
/// /// Keeps the longest of all operands.
/// struct Longest;
///
/// impl MergeOperator for Longest {
///     fn name(&self) -> &str {
///         "longest"
///     }
///
///     fn merge(&self, _key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
///         match old {
///             Some(old) if old.len() >= operand.len() => old.to_vec(),
///             _ => operand.to_vec(),
///         }
///     }
///
///     fn combine(&self, key: &[u8], first: &[u8], then: &[u8]) -> Option<Vec<u8>> {
///         Some(self.merge(key, Some(first), then))
///     }
/// }
///
/// let db = Db::builder().merge_operator(Longest).open("memory:")?;
/// let names = db.keyspace("names")?;
/// names.set_merge_operator("longest")?;
/// names.merge("oak", "Quercus")?;
/// names.merge("oak", "Quercus robur")?;
/// names.merge("oak", "Eiche")?;
/// assert_eq!(names.get("oak")?.unwrap(), "Quercus robur");
/// # Ok::<(), forrest::Error>(())
/// ```
pub trait MergeOperator: Send + Sync + 'static {
    /// Its name, 1 to 255 bytes, which the store remembers.
    fn name(&self) -> &str;

    /// The new value of a key that has the value `old`, or none.
    fn merge(&self, key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Vec<u8>;

    /// One operand that does what `first` and then `then` do to any value; `None` if there is none. Operands that
    /// cannot be combined are kept beside each other until they are merged one after the other. Transactions combine
    /// their operands for a key.
    fn combine(&self, key: &[u8], first: &[u8], then: &[u8]) -> Option<Vec<u8>> {
        let _ = (key, first, then);
        None
    }

    /// Checks an operand before it is stored.
    ///
    /// # Errors
    /// `InvalidArgument`, with what is wrong with it.
    fn check_operand(&self, operand: &[u8]) -> Result<()> {
        let _ = operand;
        Ok(())
    }

    /// Checks a value that is set in the keyspace, before it is stored.
    ///
    /// # Errors
    /// `InvalidArgument`, with what is wrong with it.
    fn check_value(&self, value: &[u8]) -> Result<()> {
        let _ = value;
        Ok(())
    }
}

/// Longest name of an operator, in bytes.
pub const OPERATOR_NAME_BYTES_MAX: usize = 255;

/// An operator, shared.
pub type SharedOperator = Arc<dyn MergeOperator>;

/// The operators that a store may use, by name: those of every build, and those of the program.
#[derive(Clone)]
pub struct Operators {
    by_name: BTreeMap<String, SharedOperator>,
    /// The first name that cannot be used, or that was given twice.
    refused: Option<String>,
}

impl Default for Operators {
    fn default() -> Operators {
        let mut all = Operators { by_name: BTreeMap::new(), refused: None };
        all.add(Arc::new(operators::Sum));
        all.add(Arc::new(operators::Max));
        all.add(Arc::new(operators::Min));
        all.add(Arc::new(operators::Append));
        all.add(Arc::new(operators::Union));
        all
    }
}

impl fmt::Debug for Operators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

impl Operators {
    /// Adds one. [`check`](Operators::check) reports a name that is taken already.
    pub fn add(&mut self, operator: SharedOperator) {
        let name = operator.name().to_string();
        let is_possible = (1..=OPERATOR_NAME_BYTES_MAX).contains(&name.len());
        if !is_possible || self.by_name.contains_key(&name) {
            self.refused.get_or_insert(name);
        } else {
            self.by_name.insert(name, operator);
        }
    }

    /// Checks that each has a name of its own.
    ///
    /// # Errors
    /// `InvalidArgument` for the first that has not.
    pub fn check(&self) -> Result<()> {
        match &self.refused {
            None => Ok(()),
            Some(name) => Err(Error::invalid(format!(
                "the merge operator \"{}\": a name has 1 to {OPERATOR_NAME_BYTES_MAX} bytes, and belongs to one operator; \
                 sum, max, min, append and union are in every build",
                name.escape_debug()
            ))),
        }
    }

    /// The operator of a keyspace.
    ///
    /// # Errors
    /// `InvalidArgument` if there is none of this name.
    pub fn get(&self, keyspace: &str, name: &str) -> Result<&SharedOperator> {
        self.by_name.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
            Error::invalid(format!(
                "the merge operator \"{}\" of keyspace \"{}\" is not registered: open the store with a program that \
                 passes it to Builder::merge_operator, in C to forrest_options_add_merge_operator; registered are {}",
                name.escape_debug(),
                keyspace.escape_debug(),
                known.join(", ")
            ))
        })
    }
}

/// Checks that a keyspace which has an operator is to have no other one.
///
/// # Errors
/// `InvalidArgument` if it is.
pub fn check_kept(keyspace: &str, has: &dyn MergeOperator, name: &str) -> Result<()> {
    if has.name() == name {
        return Ok(());
    }
    let (keyspace, has) = (keyspace.escape_debug(), has.name().escape_debug());
    Err(Error::invalid(format!("keyspace \"{keyspace}\" has the merge operator \"{has}\", and keeps it")))
}

/// The error of a merge into a keyspace that has no operator.
pub fn no_operator() -> Error {
    Error::invalid(
        "a merge into a keyspace that has no merge operator; Keyspace::set_merge_operator chooses one",
    )
}

/// The error of a keyspace that is to have an operator and has keys.
pub fn not_empty(keyspace: &str) -> Error {
    let keyspace = keyspace.escape_debug();
    Error::invalid(format!("keyspace \"{keyspace}\" has keys; a merge operator is chosen for an empty one"))
}

/// Calls an operator. A panic in it becomes an error.
fn call<R>(operator: &dyn MergeOperator, call: impl FnOnce() -> R) -> Result<R> {
    // A panic leaves nothing half done: the operator has its arguments only, and they are not used afterwards.
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| {
        Error::invalid(format!("the merge operator \"{}\" has panicked", operator.name().escape_debug()))
    })
}

/// The value that operands make of an old one, in their order. REQUIRES: there is an operand.
///
/// # Errors
/// `InvalidArgument` if the operator panics; `Limit` if the value has more than `most` bytes.
pub fn merged<'o>(
    operator: &dyn MergeOperator,
    key: &[u8],
    old: Option<&[u8]>,
    operands: impl IntoIterator<Item = &'o [u8]>,
    most: usize,
) -> Result<Vec<u8>> {
    let value = call(operator, || {
        let mut value: Option<Vec<u8>> = None;
        for operand in operands {
            value = Some(operator.merge(key, value.as_deref().or(old), operand));
        }
        value
    })?;
    let value = value.expect("there is an operand");
    match value.len() > most {
        true => Err(Error::limit("value", "bytes", value.len(), most)),
        false => Ok(value),
    }
}

/// One operand for two, if there is one.
///
/// # Errors
/// `InvalidArgument` if the operator panics.
pub fn combined(
    operator: &dyn MergeOperator,
    key: &[u8],
    first: &[u8],
    then: &[u8],
) -> Result<Option<Vec<u8>>> {
    call(operator, || operator.combine(key, first, then))
}

/// Checks the operand or value that an operation brings to a keyspace with an operator.
///
/// # Errors
/// `InvalidArgument` if the operator refuses it.
pub fn check(operator: &dyn MergeOperator, op: &Op<&[u8]>) -> Result<()> {
    match *op {
        Op::Merge { operand, .. } => call(operator, || operator.check_operand(operand))?,
        Op::Set { value, .. } | Op::SetUntil { value, .. } | Op::CompareAndSwap { new: Some(value), .. } => {
            check_stored(operator, value)
        }
        _ => Ok(()),
    }
}

/// Checks a value that is going to be stored in a keyspace with an operator.
///
/// # Errors
/// `InvalidArgument` if the operator refuses it.
pub fn check_stored(operator: &dyn MergeOperator, value: &[u8]) -> Result<()> {
    call(operator, || operator.check_value(value))?
}

/// [`Op::resolve`] for a keyspace that may have an operator. Checks what is going to be stored.
///
/// # Errors
/// As [`check`] and [`Op::resolve`]; `InvalidArgument` for a merge without an operator; `Limit` if a merged value has
/// more than `most` bytes.
#[inline]
pub fn resolve<'v>(
    operator: Option<&SharedOperator>,
    op: &Op<&'v [u8]>,
    old: Option<&[u8]>,
    most: usize,
) -> Result<(Effect<'v>, Outcome)> {
    match (operator, op) {
        (Some(operator), _) => resolve_with(&**operator, op, old, most),
        (None, Op::Merge { .. }) => Err(no_operator()),
        (None, _) => op.resolve(old),
    }
}

fn resolve_with<'v>(
    operator: &dyn MergeOperator,
    op: &Op<&'v [u8]>,
    old: Option<&[u8]>,
    most: usize,
) -> Result<(Effect<'v>, Outcome)> {
    check(operator, op)?;
    if let Op::Merge { key, operand } = *op {
        let value = merged(operator, key, old, [operand], most)?;
        return Ok((Effect::Put(Cow::Owned(value)), Outcome::Merged));
    }
    let (effect, outcome) = op.resolve(old)?;
    if let Effect::PutValue(computed) = &effect {
        check_stored(operator, computed)?;
    }
    Ok((effect, outcome))
}

/// The operators of every build. Each combines its operands.
///
/// ```
/// use forrest::{Db, operators};
/// let db = Db::open("memory:")?;
/// let tags = db.keyspace("tags")?;
/// tags.set_merge_operator("union")?;
/// tags.merge("oak", operators::set(["tree", "wood"]))?;
/// tags.merge("oak", operators::set(["leaf", "tree"]))?;
/// let value = tags.get("oak")?.unwrap();
/// let items: Vec<&[u8]> = operators::items(&value).collect();
/// assert_eq!(items, [&b"leaf"[..], b"tree", b"wood"]);
/// # Ok::<(), forrest::Error>(())
/// ```
pub mod operators {
    use super::MergeOperator;
    use crate::error::{Error, Result};
    use std::collections::BTreeSet;

    /// `sum`: adds integers of 8 bytes, as [`Op::Add`](crate::Op::Add) stores them. A sum that would overflow stays at
    /// the greatest or least integer.
    #[derive(Debug, Clone, Copy)]
    pub struct Sum;
    /// `max`: the greatest of value and operands, in the order of bytes.
    #[derive(Debug, Clone, Copy)]
    pub struct Max;
    /// `min`: the least of value and operands, in the order of bytes.
    #[derive(Debug, Clone, Copy)]
    pub struct Min;
    /// `append`: the value, followed by the operands.
    #[derive(Debug, Clone, Copy)]
    pub struct Append;
    /// `union`: a [`set`], and all items of the operands, which are sets as well.
    #[derive(Debug, Clone, Copy)]
    pub struct Union;

    fn integer(bytes: &[u8]) -> i64 {
        bytes.try_into().map_or(0, i64::from_be_bytes)
    }

    fn check_integer(bytes: &[u8]) -> Result<()> {
        if bytes.len() == 8 {
            return Ok(());
        }
        Err(Error::invalid(format!("{} bytes for the operator \"sum\", which adds 8 bytes", bytes.len())))
    }

    impl MergeOperator for Sum {
        fn name(&self) -> &str {
            "sum"
        }

        fn merge(&self, _key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
            let sum = old.map_or(0, integer).saturating_add(integer(operand));
            sum.to_be_bytes().to_vec()
        }

        /// Only where that cannot overflow: a sum that stays at a bound is not the same in another order.
        fn combine(&self, _key: &[u8], first: &[u8], then: &[u8]) -> Option<Vec<u8>> {
            let sum = integer(first).checked_add(integer(then))?;
            let same_sign = (integer(first) < 0) == (integer(then) < 0);
            same_sign.then(|| sum.to_be_bytes().to_vec())
        }

        fn check_operand(&self, operand: &[u8]) -> Result<()> {
            check_integer(operand)
        }

        fn check_value(&self, value: &[u8]) -> Result<()> {
            check_integer(value)
        }
    }

    impl MergeOperator for Max {
        fn name(&self) -> &str {
            "max"
        }

        fn merge(&self, _key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
            old.map_or(operand, |old| old.max(operand)).to_vec()
        }

        fn combine(&self, _key: &[u8], first: &[u8], then: &[u8]) -> Option<Vec<u8>> {
            Some(first.max(then).to_vec())
        }
    }

    impl MergeOperator for Min {
        fn name(&self) -> &str {
            "min"
        }

        fn merge(&self, _key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
            old.map_or(operand, |old| old.min(operand)).to_vec()
        }

        fn combine(&self, _key: &[u8], first: &[u8], then: &[u8]) -> Option<Vec<u8>> {
            Some(first.min(then).to_vec())
        }
    }

    impl MergeOperator for Append {
        fn name(&self) -> &str {
            "append"
        }

        fn merge(&self, _key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
            [old.unwrap_or_default(), operand].concat()
        }

        fn combine(&self, _key: &[u8], first: &[u8], then: &[u8]) -> Option<Vec<u8>> {
            Some([first, then].concat())
        }
    }

    impl MergeOperator for Union {
        fn name(&self) -> &str {
            "union"
        }

        fn merge(&self, _key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
            set(items(old.unwrap_or_default()).chain(items(operand)))
        }

        fn combine(&self, key: &[u8], first: &[u8], then: &[u8]) -> Option<Vec<u8>> {
            Some(self.merge(key, Some(first), then))
        }

        fn check_operand(&self, operand: &[u8]) -> Result<()> {
            let mut left = items(operand);
            let mut last = None;
            for item in left.by_ref() {
                if last >= Some(item) {
                    return Err(Error::invalid(
                        "the items of a set must ascend; operators::set encodes them",
                    ));
                }
                last = Some(item);
            }
            if left.0.is_empty() {
                return Ok(());
            }
            let at = operand.len() - left.0.len();
            Err(Error::invalid(format!("no set: malformed at byte {at}; operators::set encodes one")))
        }

        fn check_value(&self, value: &[u8]) -> Result<()> {
            self.check_operand(value)
        }
    }

    /// A set as bytes: its items in ascending order, each once, and each after its length as a little-endian `u32`.
    /// REQUIRES: no item has 4 GiB or more.
    ///
    /// ```
    /// assert_eq!(forrest::operators::set(["b", "a", "b"]), b"\x01\0\0\0a\x01\0\0\0b");
    /// ```
    pub fn set<B: AsRef<[u8]>>(items: impl IntoIterator<Item = B>) -> Vec<u8> {
        let items: Vec<B> = items.into_iter().collect();
        let sorted: BTreeSet<&[u8]> = items.iter().map(AsRef::as_ref).collect();
        let mut bytes = Vec::with_capacity(sorted.iter().map(|item| 4 + item.len()).sum());
        for item in sorted {
            bytes.extend_from_slice(&u32::try_from(item.len()).expect("an item below 4 GiB").to_le_bytes());
            bytes.extend_from_slice(item);
        }
        bytes
    }

    /// The items of a [`set`]. Ends where the bytes are no set.
    pub fn items(bytes: &[u8]) -> Items<'_> {
        Items(bytes)
    }

    /// See [`items`].
    #[derive(Debug, Clone)]
    pub struct Items<'b>(&'b [u8]);

    impl<'b> Iterator for Items<'b> {
        type Item = &'b [u8];

        fn next(&mut self) -> Option<&'b [u8]> {
            let (length, rest) = self.0.split_first_chunk::<4>()?;
            let (item, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            self.0 = rest;
            Some(item)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    /// Operands for an operator.
    fn operands(name: &str) -> Vec<Vec<u8>> {
        match name {
            "sum" => [i64::MAX, 1, -3, i64::MIN, -1, 7].map(|number| number.to_be_bytes().to_vec()).into(),
            "union" => vec![operators::set([""]), operators::set(["b", "a"]), operators::set(["a", "c"])],
            _ => vec![b"b".to_vec(), b"".to_vec(), b"ab".to_vec(), b"c".to_vec()],
        }
    }

    #[test]
    fn combined_operands_do_what_they_do_one_by_one() {
        for (name, operator) in &Operators::default().by_name {
            let all = operands(name);
            for old in all.iter().map(|old| Some(&old[..])).chain([None]) {
                for first in &all {
                    for then in &all {
                        let Some(both) = operator.combine(b"k", first, then) else { continue };
                        let apart = merged(&**operator, b"k", old, [&first[..], then], 100).unwrap();
                        let together = merged(&**operator, b"k", old, [&both[..]], 100).unwrap();
                        assert_eq!(apart, together, "{name} of {old:?}, {first:?}, {then:?}");
                        operator.check_operand(&both).expect("a combined operand is one");
                    }
                }
            }
        }
    }

    #[test]
    fn bytes_that_do_not_fit_are_refused() {
        let all = Operators::default();
        let sum = all.get("k", "sum").unwrap();
        let merge = Op::Merge { key: &b"n"[..], operand: &b"seven"[..] };
        let set = Op::Set { key: &b"n"[..], value: &b"seven"[..] };
        for op in [merge, set] {
            let error = check(&**sum, &op).unwrap_err();
            assert!(error.message().starts_with("5 bytes for"), "{error}");
        }
        let union = all.get("k", "union").unwrap();
        for (bytes, what) in [(&b"\x02\0\0\0a"[..], "at byte 0"), (b"\x01\0\0\0b\x01\0\0\0a", "ascend")] {
            let error = union.check_operand(bytes).unwrap_err();
            assert!(error.message().contains(what), "{error}");
        }
        let error = resolve(None, &merge, None, 100).unwrap_err();
        assert!(error.message().contains("no merge operator"), "{error}");
    }

    #[test]
    fn what_is_computed_is_checked_and_short_enough() {
        /// Takes no value that ends with 3.
        struct NoThree;
        impl MergeOperator for NoThree {
            fn name(&self) -> &str {
                "no three"
            }
            fn merge(&self, _: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
                [old.unwrap_or_default(), operand].concat()
            }
            fn check_value(&self, value: &[u8]) -> Result<()> {
                if value.ends_with(&[3]) { Err(Error::invalid("a three")) } else { Ok(()) }
            }
        }
        let operator: SharedOperator = Arc::new(NoThree);
        let two = 2_i64.to_be_bytes();
        let resolve =
            |op: Op<&[u8]>| resolve(Some(&operator), &op, Some(&two), 9).map(|(_, outcome)| outcome);
        let add = |delta| Op::Add { key: &b"n"[..], delta };
        assert_eq!(resolve(add(1)).unwrap_err().message(), "a three");
        assert_eq!(resolve(add(3)).unwrap(), Outcome::Added(5), "what is stored counts, not what is added");
        let merge = |operand| Op::Merge { key: &b"n"[..], operand };
        assert_eq!(resolve(merge(b"4")).unwrap(), Outcome::Merged);
        assert_eq!(resolve(merge(b"45")).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn a_name_belongs_to_one_operator() {
        let mut all = Operators::default();
        assert!(all.check().is_ok());
        all.add(Arc::new(operators::Max));
        let error = all.check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("\"max\""), "{error}");
        let error = all.get("counts", "mine").err().expect("it is not there");
        assert!(error.message().contains("\"counts\"") && error.message().contains("\"mine\""), "{error}");
    }

    #[test]
    fn a_panic_is_an_error() {
        struct Panics;
        impl MergeOperator for Panics {
            fn name(&self) -> &str {
                "panics"
            }
            fn merge(&self, _: &[u8], _: Option<&[u8]>, _: &[u8]) -> Vec<u8> {
                panic!("as it should")
            }
        }
        let error = merged(&Panics, b"k", None, [&b"o"[..]], 100).unwrap_err();
        assert!(error.message().contains("\"panics\" has panicked"), "{error}");
    }
}
