//! Commands at their limits: what is accepted can be sent, logged and applied, and what cannot is refused by all nodes.

use super::machine::{apply, entry, id, pairs, set};
use super::node::block;
use crate::{Command, MAX_COMMAND_BYTES, MAX_COMMAND_OPS, State, Store};
use forrest::{Db, ErrorKind, Op, Value};

fn memory() -> Store {
    Store::open_inline(Db::open("memory:").expect("a new store")).expect("a new store")
}

/// A command of deletes of the empty key, as a log may have it.
fn deletes(count: usize) -> Command {
    let bytes = [&[0][..], &[2, 0, 0, 0, 0].repeat(count)].concat();
    Command::in_value(Value::from(&bytes[..]), 0)
}

fn applied(state: &State) -> Option<crate::LogId> {
    state.reader().moment().expect("it can be read").applied()
}

/// Its bytes are within the limit. As a batch of the store it would be beyond one, and stop the group.
#[test]
fn a_command_of_too_many_operations_is_refused() {
    let store = memory();
    let (_log, mut state) = store.group(1).expect("a group");
    let many = deletes((1 << 20) + 1);
    let error = Command::from_bytes(many.as_bytes()).map(drop).expect_err("it has too many operations");
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    block(apply(&mut state, [entry(1, &many), entry(2, &set("a", "1"))]));
    assert_eq!(applied(&state), Some(id(2)));
}

/// The longest command is applied in the run of others.
#[test]
fn a_command_of_the_most_operations_is_applied() {
    let store = memory();
    let (_log, mut state) = store.group(1).expect("a group");
    let before = (1..1000).map(|index| entry(index, &deletes(1)));
    let most = deletes(MAX_COMMAND_OPS).with_session(1, 1).expect("it ends no session");
    let most = Command::from_bytes(most.as_bytes()).expect("it is within the limit");
    block(apply(&mut state, before.chain([entry(1000, &most)])));
    assert_eq!(applied(&state), Some(id(1000)));
    let mut batch = forrest::WriteBatch::new();
    for _ in 0..=MAX_COMMAND_OPS {
        batch.delete("");
    }
    let refused = Command::try_from(&batch).map(drop).expect_err("one too many");
    assert_eq!(refused.kind(), ErrorKind::Limit);
}

/// Changes of sessions count to a batch, also where the commands have no operations.
#[test]
fn many_sessions_in_a_run_are_several_batches() {
    let db = Db::builder().batch_ops_max(2100).open("memory:").expect("a new store");
    let store = Store::open_inline(db).expect("a new store");
    let (_log, mut state) = store.group(1).expect("a group");
    block(apply(&mut state, (1..=5000).map(|index| entry(index, &Command::end_session(index)))));
    assert_eq!(applied(&state), Some(id(5000)));
}

/// A session makes a command longer. The followers take it all the same.
#[test]
fn the_longest_command_may_have_a_session() {
    let value = vec![7; MAX_COMMAND_BYTES - 18];
    let longest = Command::one(Op::Set { key: &b""[..], value: &value[..] }).expect("it fits");
    assert_eq!(longest.as_bytes().len(), MAX_COMMAND_BYTES - 8);
    let sent = longest.with_session(1, 1).expect("it ends no session");
    let received = Command::from_bytes(sent.as_bytes()).expect("it was accepted");
    let store = memory();
    let (_log, mut state) = store.group(1).expect("a group");
    block(apply(&mut state, [entry(1, &received)]));
    assert_eq!(pairs(&state.reader()).len(), 1);
}

/// The greatest serial number ends a session. As that of a change it would make the change vanish.
#[test]
fn a_change_has_no_serial_number_that_ends_its_session() {
    assert!(set("a", "1").with_session(5, u64::MAX).is_err());
    let mut bytes = set("a", "1").with_session(5, 1).expect("it ends no session").as_bytes().to_vec();
    bytes[9..17].copy_from_slice(&u64::MAX.to_be_bytes());
    assert!(Command::from_bytes(&bytes).is_err());
    let end = Command::end_session(5);
    assert_eq!(Command::from_bytes(end.as_bytes()).expect("it is one"), end);
}
