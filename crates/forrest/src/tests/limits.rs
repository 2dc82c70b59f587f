//! What a transaction may read, change and lock.

use crate::{Db, ErrorKind, RangeCursor, Result, Transaction};
use std::time::Duration;

/// Does calls until one fails; returns their number, and checks that the failed one has changed nothing.
fn until_the_limit(
    ops: usize,
    bytes: usize,
    mut call: impl FnMut(&mut Transaction, u8) -> Result<()>,
) -> usize {
    let db = Db::builder().batch_ops_max(ops).batch_bytes_max(bytes).open("memory:").unwrap();
    (0..20_u8).for_each(|key| db.set([key], [key; 10]).unwrap());
    let mut transaction = db.transaction();
    for number in 0..=255 {
        let Err(error) = call(&mut transaction, number) else { continue };
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        let message = error.to_string();
        let of_ops =
            format!("limit exceeded: transaction of {} operations; at most {ops} operations", ops + 1);
        assert!(message.starts_with("limit exceeded: transaction of "), "{message}");
        assert!(
            message.starts_with(&of_ops) || message.contains(&format!("at most {bytes} bytes")),
            "{message}"
        );
        assert_eq!(call(&mut transaction, number).unwrap_err().kind(), ErrorKind::Limit);
        assert!(transaction.commit().unwrap().is_done());
        return number.into();
    }
    panic!("there is no limit");
}

/// Mutants must fail here.
pub(super) fn of_a_transaction() {
    const MANY: usize = 1 << 20;
    let db = Db::open("memory:").unwrap();
    let long = vec![0; crate::MAX_KEY_BYTES + 1];
    assert_eq!(db.transaction().set(&long, "").unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(db.transaction().lock(&long).unwrap_err().kind(), ErrorKind::Limit);

    let set = |transaction: &mut Transaction, number: u8| transaction.set([number], [0; 10]);
    assert_eq!(until_the_limit(5, MANY, set), 5);
    assert_eq!(until_the_limit(MANY, 54, set), 4);
    assert_eq!(until_the_limit(MANY, 55, set), 5);
    let get = |transaction: &mut Transaction, number: u8| transaction.get([number]).map(drop);
    assert_eq!(until_the_limit(5, MANY, get), 5);
    assert_eq!(until_the_limit(MANY, 95, get), 5);
    // A key counts once as read and once as changed, even if that happens several times.
    let again = |transaction: &mut Transaction, number: u8| {
        (0..3).try_for_each(|_| get(transaction, number).and_then(|()| set(transaction, number)))
    };
    assert_eq!(until_the_limit(6, MANY, again), 3);
    assert_eq!(until_the_limit(MANY, 90, again), 3);
    // The pairs of a range, and the range itself: from the empty key to after the last pair, which is 2 bytes.
    let mut cursor = RangeCursor::new(..);
    let step = |transaction: &mut Transaction, _: u8| cursor.next(transaction).map(drop);
    assert_eq!(until_the_limit(6, MANY, step), 5);
    let mut cursor = RangeCursor::new(..);
    let step = |transaction: &mut Transaction, _: u8| cursor.next(transaction).map(drop);
    assert_eq!(until_the_limit(MANY, 97, step), 5);
    // Ranges that touch are one.
    let delete_range =
        |transaction: &mut Transaction, number: u8| transaction.delete_range([2 * number]..[2 * number + 1]);
    assert_eq!(until_the_limit(5, MANY, delete_range), 5);
    assert_eq!(until_the_limit(MANY, 10, delete_range), 5);
    let lock = |transaction: &mut Transaction, number: u8| transaction.lock([number]);
    assert_eq!(until_the_limit(5, MANY, lock), 5);
    // With a savepoint, each change also counts with what it replaces.
    let undone = |transaction: &mut Transaction, number: u8| {
        if number == 0 {
            transaction.savepoint()?;
        }
        transaction.set("one", [number; 10])
    };
    assert_eq!(until_the_limit(6, MANY, undone), 4);
    assert_eq!(until_the_limit(MANY, 13 + 3 + 13 + 13, undone), 3);
    // Taking changes back gives the room back.
    let mut savepoint = None;
    let taken_back = |transaction: &mut Transaction, number: u8| {
        let savepoint = match savepoint {
            Some(savepoint) => savepoint,
            None => *savepoint.insert(transaction.savepoint()?),
        };
        transaction.set([number], [0; 10])?;
        transaction.delete_range(..)?;
        transaction.set([number], [0; 10])?;
        transaction.rollback_to(savepoint)?;
        if number == 100 { transaction.set([0; 200], "") } else { Ok(()) }
    };
    assert_eq!(until_the_limit(7, 150, taken_back), 100);
    let many = |transaction: &mut Transaction, _: u8| transaction.savepoint().map(drop);
    assert_eq!(until_the_limit(5, MANY, many), 5);
    // What a transaction may have, its batch may have.
    let db = Db::builder().batch_ops_max(4).open("memory:").unwrap();
    let mut transaction = db.transaction();
    assert_eq!(transaction.range("a".."b").count(), 0);
    transaction.delete_range("b".."c").unwrap();
    transaction.get("e").unwrap();
    transaction.set("f", "").unwrap();
    assert!(transaction.commit().unwrap().is_done());
}

/// A lock has one owner, until that ends. Mutants must fail here.
pub(super) fn of_a_lock() {
    let db = Db::open("memory:").unwrap();
    let people = db.keyspace("people").unwrap();
    let mut one = db.transaction();
    one.lock("a").unwrap();
    one.lock("a").unwrap();
    let mut two = db.transaction();
    two.set_lock_wait(Duration::ZERO);
    let error = two.get_for_update("a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(
        error.to_string().starts_with("busy: locking key \"a\" of keyspace \"default\": another transaction")
    );
    // Others are free: another key, and the same key of another keyspace.
    two.lock("b").unwrap();
    two.on(&people).lock("a").unwrap();
    let mut three = db.transaction();
    three.set_lock_wait(Duration::from_millis(1));
    assert_eq!(three.on(&people).lock("a").unwrap_err().kind(), ErrorKind::Busy);
    drop(one);
    two.lock("a").unwrap();
    assert!(two.commit().unwrap().is_done());
    three.on(&people).lock("a").unwrap();
    three.lock("a").unwrap();
    three.lock("b").unwrap();
}

#[test]
fn limits_are_those_of_a_batch() {
    of_a_transaction();
}

#[test]
fn a_lock_has_one_owner() {
    of_a_lock();
}
