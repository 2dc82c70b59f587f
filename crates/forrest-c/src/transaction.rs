//! Transactions: reads and changes that take place at one instant, if what was read still holds then.

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

/// Reads and changes of a store that take place at one instant, when they are committed, or never. Until then nobody
/// sees the changes, and nobody waits. A transaction that is committed did what it would have done had it run as a
/// whole at that instant; one that has read what is no longer so is `FORREST_CONFLICT`, changes nothing, and is to be
/// run again. Until it is committed, two reads may be of two moments. Keys are read one by one: there are no ranges.
///
/// One thread at a time may use it. It keeps the store open.
#[derive(Debug)]
pub struct Transaction {
    store: forrest_rust::Db,
    running: forrest_rust::Transaction,
    /// The keyspace of what is read and changed.
    on: Keyspace,
}

static TRANSACTIONS: Table<Transaction, 1> = Table::new("transaction", 6);

impl Transaction {
    fn draft(&mut self) -> &mut Draft {
        self.running.on(&self.on)
    }

    /// Begins anew; what ran until now.
    fn end(&mut self) -> forrest_rust::Transaction {
        std::mem::replace(&mut self.running, self.store.transaction())
    }
}

fn of(handle: *const Transaction) -> Result<Exclusive<Transaction>, Failure> {
    TRANSACTIONS.exclusive(handle)
}

/// Begins a transaction, to be given to `forrest_transaction_destroy`. It reads and changes the keyspace of `db`, and
/// others as `forrest_transaction_on` says.
///
/// `FORREST_INVALID_ARGUMENT` if `db` is a snapshot.
///
/// # Safety
/// - `transaction` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_begin(db: *mut Db, transaction: *mut *mut Transaction) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let mut transaction = unsafe { Place::of("transaction", transaction, ptr::null_mut()) }?;
        let db = Db::of(db)?;
        let (store, keyspace) = db.newest()?;
        let begun = Transaction { store: store.clone(), running: store.transaction(), on: keyspace.clone() };
        transaction.put(TRANSACTIONS.insert([begun])?);
        Ok(FORREST_OK)
    })
}

/// Has the transaction read and change the keyspace of a handle from now on, which is of the same store.
///
/// `FORREST_INVALID_ARGUMENT` if `db` is a snapshot. If it is of another store, committing fails.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_transaction_on(transaction: *mut Transaction, db: *const Db) -> i32 {
    guard(|| {
        let on = Db::of(db)?.newest()?.1.clone();
        of(transaction)?.on = on;
        Ok(FORREST_OK)
    })
}

/// Reads the value of a key and holds it, as `forrest_get` does: what the transaction has made of it, or what is in the
/// store, and must still be when the transaction is committed.
///
/// `FORREST_NOT_FOUND` if the key is not there, and nothing is to be released then; errors as of `forrest_get`, and
/// `FORREST_INVALID_ARGUMENT` if the transaction has added to what is no counter.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
/// - `value` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_get(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
    value: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut value, key) =
            unsafe { (Place::of("value", value, ptr::null_mut())?, self::key(key, key_bytes)?) };
        let Some(found) = of(transaction)?.draft().get(key)? else { return Ok(FORREST_NOT_FOUND) };
        value.put(hold(Some(found))?);
        Ok(FORREST_OK)
    })
}

/// Tells whether a key is there: `FORREST_OK`, or `FORREST_NOT_FOUND` if not. It counts as read, with its value. Errors
/// as of `forrest_transaction_get`.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_contains(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let key = unsafe { self::key(key, key_bytes) }?;
        Ok(if of(transaction)?.draft().contains(key)? { FORREST_OK } else { FORREST_NOT_FOUND })
    })
}

/// Will map a key to a value. `FORREST_LIMIT` if one of them is too long for any store.
///
/// # Safety
/// - `key` has `key_bytes` bytes, and `value` has `value_bytes`, or they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_set(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (key, value) = unsafe { (self::key(key, key_bytes)?, self::value(value, value_bytes)?) };
        of(transaction)?.draft().set(key, value)?;
        Ok(FORREST_OK)
    })
}

/// Will remove a key, if it is there. `FORREST_LIMIT` if it is too long for any store.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_delete(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let key = unsafe { self::key(key, key_bytes) }?;
        of(transaction)?.draft().delete(key)?;
        Ok(FORREST_OK)
    })
}

/// Will add to a counter, as `forrest_add` does. It is not read by that: transactions that only add to a counter are
/// not in conflict for it. `FORREST_LIMIT` if the key is too long for any store; `FORREST_INVALID_ARGUMENT` if what the
/// transaction knows of it is no counter, or the sum overflows. If it does not know it, committing fails then.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_add(
    transaction: *mut Transaction,
    key: *const c_void,
    key_bytes: usize,
    delta: i64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let key = unsafe { self::key(key, key_bytes) }?;
        of(transaction)?.draft().add(key, delta)?;
        Ok(FORREST_OK)
    })
}

/// Makes all changes of a transaction at one instant, if what it has read is there at that instant. Whatever is
/// answered, the transaction has ended, and begins anew with nothing read or changed, on the same keyspace: after
/// `FORREST_CONFLICT`, which means that nothing was changed, it can be run again.
///
/// Errors are those of `forrest_write`; nothing was changed then. Each key that was read or changed is a change of a
/// batch, and what was read counts as what is written does. The message tells the key.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_transaction_commit(transaction: *mut Transaction) -> i32 {
    guard(|| {
        let committed = commit(transaction, FORREST_DURABILITY_DEFAULT)?;
        Ok(if committed.is_done() { FORREST_OK } else { FORREST_CONFLICT })
    })
}

/// As `forrest_transaction_commit`, with a durability of its own, one of `FORREST_DURABILITY_DEFAULT` to
/// `FORREST_DURABILITY_SYNC`, which is `FORREST_UNSUPPORTED` if the home cannot keep it. If it is `FORREST_CONFLICT`,
/// `keyspace` is the name of a keyspace, without a zero byte, and `key` a key there that is not as it was read; both
/// are to be given to `forrest_value_release`.
///
/// # Safety
/// - `keyspace` and `key` may each be written to, or are null, if they are not wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_transaction_commit_with(
    transaction: *mut Transaction,
    durability: u64,
    keyspace: *mut *mut Value,
    key: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
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

/// As `forrest_transaction_commit`, but makes no changes: tells whether all that was read was there at one instant, for
/// who gives up because of it.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_transaction_check(transaction: *mut Transaction) -> i32 {
    guard(|| {
        let mut transaction = of(transaction)?;
        let committed = transaction.end().check()?;
        Ok(if committed.is_done() { FORREST_OK } else { FORREST_CONFLICT })
    })
}

/// Forgets what a transaction has read and changed. It begins anew, on the same keyspace.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_transaction_rollback(transaction: *mut Transaction) -> i32 {
    guard(|| {
        drop(of(transaction)?.end());
        Ok(FORREST_OK)
    })
}

/// Gives a transaction back. What was not committed does not take place. Null is nothing to give back.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_transaction_destroy(transaction: *mut Transaction) -> i32 {
    guard(|| TRANSACTIONS.remove(transaction).map(|()| FORREST_OK))
}

fn commit(transaction: *mut Transaction, level: u64) -> Result<Committed, Failure> {
    let mut transaction = of(transaction)?;
    let ended = transaction.end();
    let options = WriteOptions { durability: durability(level)? };
    Ok(ended.commit_with(&options)?)
}
