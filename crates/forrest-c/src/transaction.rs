//! Transactions: reads and changes that happen at one instant, if the values that were read still hold then.

use crate::argument::{self, Place, key, value};
use crate::code::{FORREST_CONFLICT, FORREST_NOT_FOUND, FORREST_OK};
use crate::db::Db;
use crate::failure::{Failure, guard};
use crate::handle::{Exclusive, Table};
use crate::options::{FORREST_DURABILITY_DEFAULT, durability};
use crate::value::{Value, answer, hold, release};
use forrest_rust::{Committed, Draft, Keyspace, RangeCursor, Savepoint, WriteOptions};
use std::ffi::c_void;
use std::ptr;
use std::time::Duration;

/// Reads and changes of a store that happen at one instant, the commit, or not at all. Before the commit the
/// changes are invisible, and no other thread waits for the transaction. A committed transaction has the
/// effect that it would have if all of it ran at the instant of its commit. If a value that it read has
/// changed, or the keys of a range that it read, committing returns `FORREST_CONFLICT` and changes nothing; run it
/// again. Before the commit, two reads may see the store at different moments.
///
/// Reads, changes and locks count towards the limits of a batch when they are made: each key or range as a change, and
/// all keys and values as bytes. The call that exceeds them fails with `FORREST_LIMIT`.
///
/// Only one thread at a time may use a transaction. It keeps the store open.
#[derive(Debug)]
pub struct Transaction {
    store: forrest_rust::Db,
    running: forrest_rust::Transaction,
    /// The keyspace of reads and changes.
    on: Keyspace,
    /// The range that is being read, and its keyspace.
    range: Option<(RangeCursor, Keyspace)>,
}

static TRANSACTIONS: Table<Transaction, 1> = Table::new("transaction", 6);

impl Transaction {
    fn draft(&mut self) -> &mut Draft {
        self.running.on(&self.on)
    }

    /// Begins a new transaction, and returns the old one.
    fn end(&mut self) -> forrest_rust::Transaction {
        self.range = None;
        std::mem::replace(&mut self.running, self.store.transaction())
    }
}

fn of(handle: *const Transaction) -> Result<Exclusive<Transaction>, Failure> {
    TRANSACTIONS.exclusive(handle)
}

/// Begins a transaction. Destroy it with `forrest_transaction_destroy`. It reads and changes the keyspace of
/// `db`; `forrest_transaction_on` selects another one.
///
/// `FORREST_INVALID_ARGUMENT` if `db` is a snapshot.
///
/// # Safety
/// - `transaction` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_begin(db: *mut Db, transaction: *mut *mut Transaction) -> i32 {
    guard(|| {
        // SAFETY: `transaction` is null or writable, as the Safety section demands.
        let mut transaction = unsafe { Place::of("transaction", transaction, ptr::null_mut()) }?;
        let db = Db::of(db)?;
        let (store, keyspace) = db.newest()?;
        let begun = Transaction {
            store: store.clone(),
            running: store.transaction(),
            on: keyspace.clone(),
            range: None,
        };
        transaction.put(TRANSACTIONS.insert([begun])?);
        Ok(FORREST_OK)
    })
}

/// Selects the keyspace for all further reads and changes: that of the handle `db`, which must belong to the
/// same store.
///
/// `FORREST_INVALID_ARGUMENT` if `db` is a snapshot. If it belongs to another store, committing fails.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_transaction_on(transaction: *mut Transaction, db: *const Db) -> i32 {
    guard(|| {
        let on = Db::of(db)?.newest()?.1.clone();
        of(transaction)?.on = on;
        Ok(FORREST_OK)
    })
}

/// Reads the value of a key and holds it, like `forrest_get`: the transaction's own change, or else the value
/// in the store. The latter must be unchanged when the transaction is committed.
///
/// `FORREST_NOT_FOUND` if the key does not exist; there is nothing to release then. Errors as of
/// `forrest_get`, and `FORREST_INVALID_ARGUMENT` if the transaction has added to a value that is not a
/// counter.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
/// - `value` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_get(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
    value: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, and `value` is null or writable, as the
        // Safety section demands.
        let (value, key) =
            unsafe { (Place::of("value", value, ptr::null_mut())?, self::key(key, key_bytes)?) };
        answer(value, of(transaction)?.draft().get(key)?)
    })
}

/// Checks whether a key exists: `FORREST_OK` if it does, `FORREST_NOT_FOUND` if not. The key counts as read,
/// with its value. Errors as of `forrest_transaction_get`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_contains(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { self::key(key, key_bytes) }?;
        Ok(if of(transaction)?.draft().contains(key)? { FORREST_OK } else { FORREST_NOT_FOUND })
    })
}

/// Locks a key, and then reads it like `forrest_transaction_get`. Until this transaction ends, other transactions that
/// lock the key wait. So transactions that lock what they change take turns, instead of being in conflict. Lock a key
/// before you read it in another way. A lock holds off only those that ask for it: changes outside of transactions, and
/// transactions that read the key without a lock, do not wait, and may put this one in conflict. Other processes that
/// share a store do not see locks.
///
/// `FORREST_BUSY` if another transaction holds the lock for longer than `forrest_transaction_set_lock_wait` allows, by
/// default 1 second; and at once if waiting would never end, because its owner waits for a lock of this transaction.
/// Then this one can only be in conflict: roll it back and run it again. `FORREST_LIMIT` if the locks of all
/// transactions of the store exceed 64 MiB, at 256 bytes each and their keys. Otherwise as `forrest_transaction_get`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
/// - `value` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_get_for_update(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
    value: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, and `value` is null or writable, as the
        // Safety section demands.
        let (value, key) =
            unsafe { (Place::of("value", value, ptr::null_mut())?, self::key(key, key_bytes)?) };
        answer(value, of(transaction)?.draft().get_for_update(key)?)
    })
}

/// Locks a key like `forrest_transaction_get_for_update`, without reading it. The key need not exist: it may stand for
/// anything on which transactions agree, such as the front of a queue.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_lock(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { self::key(key, key_bytes) }?;
        of(transaction)?.draft().lock(key)?;
        Ok(FORREST_OK)
    })
}

/// Sets how long the transaction waits for each lock, in milliseconds; the next transaction of the handle waits 1
/// second again. With 0 it takes only locks that are free.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_transaction_set_lock_wait(transaction: *mut Transaction, milliseconds: u64) -> i32 {
    guard(|| {
        of(transaction)?.running.set_lock_wait(Duration::from_millis(milliseconds));
        Ok(FORREST_OK)
    })
}

/// Begins to read a range, from `start` up to, but without, `end`. A null `end` is no end. `forrest_transaction_next`
/// and `forrest_transaction_prev` return its pairs. A transaction reads one range at a time: this one replaces the one
/// before.
///
/// # Safety
/// - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_range(
    transaction: *mut Transaction,
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `start` and `end` are null or have `start_bytes` and `end_bytes` readable bytes, as the
        // Safety section demands.
        let range = unsafe { argument::range(start, start_bytes, end, end_bytes) }?;
        let mut transaction = of(transaction)?;
        transaction.range = Some((RangeCursor::new(range), transaction.on.clone()));
        Ok(FORREST_OK)
    })
}

/// The next pair from the front of the range that is being read: the store's, with the transaction's own changes, which
/// may be made between two calls. Release the key and the value with `forrest_value_release`.
///
/// The range counts as read up to the last pair that was returned, or as a whole after `FORREST_NOT_FOUND`. What was
/// read must be unchanged when the transaction is committed: the same keys, no others, and the same values.
///
/// `FORREST_NOT_FOUND` at the end of the range; there is nothing to release then. `FORREST_INVALID_ARGUMENT` if no
/// range is being read. Otherwise errors as of `forrest_transaction_get`; the range keeps its place.
///
/// # Safety
/// - `key` and `value` are each writable, or null if the result is not wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_next(
    transaction: *mut Transaction,
    key: *mut *mut Value,
    value: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: `key` and `value` are null or writable, as the Safety section demands.
        let places =
            unsafe { [Place::perhaps(key, ptr::null_mut()), Place::perhaps(value, ptr::null_mut())] };
        step(transaction, RangeCursor::next, places)
    })
}

/// Like `forrest_transaction_next`, from the back of the range. The two ends never cross.
///
/// # Safety
/// - `key` and `value` are each writable, or null if the result is not wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_prev(
    transaction: *mut Transaction,
    key: *mut *mut Value,
    value: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: `key` and `value` are null or writable, as the Safety section demands.
        let places =
            unsafe { [Place::perhaps(key, ptr::null_mut()), Place::perhaps(value, ptr::null_mut())] };
        step(transaction, RangeCursor::next_back, places)
    })
}

/// Sets the value of a key. `FORREST_LIMIT` if one of them is too long for any store.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_set(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `key` and `value` are null or have `key_bytes` and `value_bytes` readable bytes, as the
        // Safety section demands.
        let (key, value) = unsafe { (self::key(key, key_bytes)?, self::value(value, value_bytes)?) };
        of(transaction)?.draft().set(key, value)?;
        Ok(FORREST_OK)
    })
}

/// Sets the value of a key for `ttl_ms` milliseconds from the commit on. Until then the transaction reads the value.
/// See `forrest_set_with_ttl`. `FORREST_LIMIT` if one of them is too long for any store.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_set_with_ttl(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
    ttl_ms: u64,
) -> i32 {
    guard(|| {
        // SAFETY: `key` and `value` are null or have `key_bytes` and `value_bytes` readable bytes, as the
        // Safety section demands.
        let (key, value) = unsafe { (self::key(key, key_bytes)?, self::value(value, value_bytes)?) };
        of(transaction)?.draft().set_with_ttl(key, value, Duration::from_millis(ttl_ms))?;
        Ok(FORREST_OK)
    })
}

/// Removes a key, if it exists. `FORREST_LIMIT` if it is too long for any store.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_delete(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { self::key(key, key_bytes) }?;
        of(transaction)?.draft().delete(key)?;
        Ok(FORREST_OK)
    })
}

/// Removes all keys from `start` up to, but without, `end`, those that exist at the commit. A null `end` is no end.
/// This is not a read: a key that appears in the range meanwhile is no conflict, and is removed.
///
/// # Safety
/// - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_delete_range(
    transaction: *mut Transaction,
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `start` and `end` are null or have `start_bytes` and `end_bytes` readable bytes, as the
        // Safety section demands.
        let range = unsafe { argument::range(start, start_bytes, end, end_bytes) }?;
        of(transaction)?.draft().delete_range(range)?;
        Ok(FORREST_OK)
    })
}

/// Marks a place to which the changes can be taken back by `forrest_transaction_rollback_to`, and returns its number.
/// From the first savepoint on, a transaction also keeps what its changes replace, which counts towards its limits.
///
/// # Safety
/// - `savepoint` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_savepoint(
    transaction: *mut Transaction,
    savepoint: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: `savepoint` is null or writable, as the Safety section demands.
        let mut savepoint = unsafe { Place::of("savepoint", savepoint, 0) }?;
        savepoint.put(of(transaction)?.running.savepoint()?.to_number());
        Ok(FORREST_OK)
    })
}

/// Takes back all changes since a savepoint, in all keyspaces. The savepoint can be used again; later ones are gone.
/// What was read since then still counts as read, and locks are kept until the transaction ends.
///
/// `FORREST_INVALID_ARGUMENT` if the savepoint is gone, or is one of another transaction; nothing is taken back then.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_transaction_rollback_to(transaction: *mut Transaction, savepoint: u64) -> i32 {
    guard(|| {
        of(transaction)?.running.rollback_to(Savepoint::from_number(savepoint))?;
        Ok(FORREST_OK)
    })
}

/// Adds to a counter, like `forrest_add`. This is not a read: transactions that only add to the same counter
/// are not in conflict.
///
/// `FORREST_LIMIT` if the key is too long for any store; `FORREST_INVALID_ARGUMENT` if the transaction has
/// read or set the key, and its value is not a counter, or if the sum overflows. For any other key the commit
/// reports these errors.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_add(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
    delta: i64,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { self::key(key, key_bytes) }?;
        of(transaction)?.draft().add(key, delta)?;
        Ok(FORREST_OK)
    })
}

/// Gives an operand to the merge operator of the keyspace, like `forrest_merge`. It is no read: transactions that only
/// merge into one key are in no conflict. The operands of a key are combined where the operator can do that.
///
/// `FORREST_INVALID_ARGUMENT` if the keyspace has no operator, or if it refuses the operand; otherwise as
/// `forrest_transaction_set`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes, and `operand` is null or has `operand_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_merge(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
    operand: *const c_void,
    operand_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: each is null or has as many readable bytes, as the Safety section demands.
        let (key, operand) = unsafe { (self::key(key, key_bytes)?, value(operand, operand_bytes)?) };
        of(transaction)?.draft().merge(key, operand)?;
        Ok(FORREST_OK)
    })
}

/// Applies all changes of a transaction at one instant, if everything that it read is still so at that instant.
/// Otherwise returns `FORREST_CONFLICT` and changes nothing. In each case the transaction ends, and the handle begins a
/// new one on the keyspace that was selected last. A run that selects another one begins by selecting its first.
///
/// Errors are those of `forrest_write`; nothing was changed then. The message names the key.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_transaction_commit(transaction: *mut Transaction) -> i32 {
    guard(|| {
        let committed = commit(transaction, FORREST_DURABILITY_DEFAULT)?;
        Ok(if committed.is_done() { FORREST_OK } else { FORREST_CONFLICT })
    })
}

/// Like `forrest_transaction_commit`, with this durability, one of `FORREST_DURABILITY_DEFAULT` to
/// `FORREST_DURABILITY_SYNC`. `FORREST_UNSUPPORTED` if the home does not have it. After `FORREST_CONFLICT`,
/// `key` is a key whose value has changed since it was read, and `keyspace` the name of its keyspace, without
/// a zero byte at its end. Release both with `forrest_value_release`.
///
/// # Safety
/// - `keyspace` and `key` are each writable, or null if the result is not wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_commit_with(
    transaction: *mut Transaction,
    durability: u64,
    keyspace: *mut *mut Value,
    key: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: `keyspace` and `key` are null or writable, as the Safety section demands.
        let places =
            unsafe { [Place::perhaps(keyspace, ptr::null_mut()), Place::perhaps(key, ptr::null_mut())] };
        let Committed::Conflict { keyspace, key } = commit(transaction, durability)? else {
            return Ok(FORREST_OK);
        };
        hold_all(places, [keyspace.into_bytes().into(), key.into()])?;
        Ok(FORREST_CONFLICT)
    })
}

/// Like `forrest_transaction_commit`, but discards the changes. It verifies that all values that were read
/// existed at one instant, before the caller gives up because of them.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_transaction_check(transaction: *mut Transaction) -> i32 {
    guard(|| {
        let mut transaction = of(transaction)?;
        let committed = transaction.end().check()?;
        Ok(if committed.is_done() { FORREST_OK } else { FORREST_CONFLICT })
    })
}

/// Discards all reads and changes of a transaction. The handle begins a new one on the keyspace that was selected last.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_transaction_rollback(transaction: *mut Transaction) -> i32 {
    guard(|| {
        drop(of(transaction)?.end());
        Ok(FORREST_OK)
    })
}

/// Destroys a transaction. Changes that were not committed are discarded. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_transaction_destroy(transaction: *mut Transaction) -> i32 {
    guard(|| TRANSACTIONS.remove(transaction).map(|()| FORREST_OK))
}

fn commit(transaction: *mut Transaction, level: u64) -> Result<Committed, Failure> {
    let mut transaction = of(transaction)?;
    let ended = transaction.end();
    let options = WriteOptions::new().durability(durability(level)?);
    Ok(ended.commit_with(&options)?)
}

/// A key and its value, or the end of a range.
type Pair = Option<(Vec<u8>, forrest_rust::Value)>;

/// Moves the range that is being read.
fn step(
    transaction: *mut Transaction,
    step: fn(&mut RangeCursor, &mut Draft) -> forrest_rust::Result<Pair>,
    places: [Option<Place<*mut Value>>; 2],
) -> Result<i32, Failure> {
    let mut transaction = of(transaction)?;
    let Transaction { running, range, .. } = &mut *transaction;
    let Some((cursor, on)) = range else {
        return Err(Failure::invalid(format_args!(
            "the transaction reads no range; begin one with forrest_transaction_range"
        )));
    };
    let Some((key, value)) = step(cursor, running.on(on))? else { return Ok(FORREST_NOT_FOUND) };
    hold_all(places, [key.into(), value])?;
    Ok(FORREST_OK)
}

/// Holds the results that are wanted, all or none.
fn hold_all(
    places: [Option<Place<*mut Value>>; 2],
    results: [forrest_rust::Value; 2],
) -> Result<(), Failure> {
    let mut held = Vec::new();
    for (place, result) in places.into_iter().zip(results) {
        let Some(place) = place else { continue };
        match hold(Some(result)) {
            Ok(value) => held.push((place, value)),
            Err(failure) => {
                release(held.into_iter().map(|(_, value)| value));
                return Err(failure);
            }
        }
    }
    held.iter_mut().for_each(|(place, value)| place.put(*value));
    Ok(())
}
