//! Transactions: reads and changes that happen at one instant, if the values that were read still hold then.

use crate::argument::{Place, key, value};
use crate::code::{FORREST_CONFLICT, FORREST_NOT_FOUND, FORREST_OK};
use crate::db::Db;
use crate::failure::{Failure, guard};
use crate::handle::{Exclusive, Table};
use crate::options::{FORREST_DURABILITY_DEFAULT, durability};
use crate::value::{Value, hold, release};
use forrest_rust::{Committed, Draft, Keyspace, WriteOptions};
use std::ffi::c_void;
use std::ptr;

/// Reads and changes of a store that happen at one instant, the commit, or not at all. Before the commit the
/// changes are invisible, and no other thread waits for the transaction. A committed transaction has the
/// effect that it would have if all of it ran at the instant of its commit. If a value that it read has
/// changed, committing returns `FORREST_CONFLICT` and changes nothing; run it again. Before the commit, two
/// reads may see the store at different moments. A transaction reads single keys, not ranges.
///
/// Only one thread at a time may use a transaction. It keeps the store open.
#[derive(Debug)]
pub struct Transaction {
    store: forrest_rust::Db,
    running: forrest_rust::Transaction,
    /// The keyspace of reads and changes.
    on: Keyspace,
}

static TRANSACTIONS: Table<Transaction, 1> = Table::new("transaction", 6);

impl Transaction {
    fn draft(&mut self) -> &mut Draft {
        self.running.on(&self.on)
    }

    /// Begins a new transaction, and returns the old one.
    fn end(&mut self) -> forrest_rust::Transaction {
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
        let begun = Transaction { store: store.clone(), running: store.transaction(), on: keyspace.clone() };
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
        let (mut value, key) =
            unsafe { (Place::of("value", value, ptr::null_mut())?, self::key(key, key_bytes)?) };
        let Some(found) = of(transaction)?.draft().get(key)? else { return Ok(FORREST_NOT_FOUND) };
        value.put(hold(Some(found))?);
        Ok(FORREST_OK)
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

/// Applies all changes of a transaction at one instant, if every value that it read is still the current one
/// at that instant. Otherwise returns `FORREST_CONFLICT` and changes nothing. In each case the transaction
/// ends, and the handle begins a new one on the same keyspace, so it can be run again.
///
/// Errors are those of `forrest_write`; nothing was changed then. The message names the key. The limits are
/// those of a batch: each key that was read or changed counts as a change, and values that were read count
/// like values that are written.
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
        let mut held = Vec::new();
        for (place, found) in places.into_iter().zip([keyspace.into_bytes(), key]) {
            let Some(place) = place else { continue };
            match hold(Some(found.into())) {
                Ok(value) => held.push((place, value)),
                Err(failure) => {
                    release(held.into_iter().map(|(_, value)| value));
                    return Err(failure);
                }
            }
        }
        held.iter_mut().for_each(|(place, value)| place.put(*value));
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

/// Discards all reads and changes of a transaction. The handle begins a new one on the same keyspace.
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
