//! Stores on disk: everything is there again, and one sync serves many clients.

use crate::harness::{Running, encode, options};
use forrest::simulated::{self, Failure, Fate, Fault, Simulated, Times};
use forrest::{Db, Durability};
use forrest_redis::{Options, Sync};

#[test]
fn a_store_has_everything_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    for round in 0..3 {
        let running = Running::on_disk(&path, options());
        let mut client = running.client();
        if round == 0 {
            client.call("swapdb 0 5");
            client.call("mset a 1 b 2");
            client.call("expire b 1000");
        }
        assert_eq!(client.call(&format!("rpush list{round} x y")), ":2");
        assert_eq!(client.call("keys list*").matches("list").count(), round + 1);
        assert_eq!(client.call(&format!("lrange list{} 0 -1", round / 2)), "[\"x\", \"y\"]");
        assert_eq!(client.call("get a"), "\"1\"");
        let left: i64 = client.call("ttl b")[1..].parse().unwrap();
        assert!((900..=1000).contains(&left), "{left}");
        client.call("select 5");
        assert_eq!(client.call("dbsize"), ":0");
    }
}

#[test]
fn a_reply_of_always_comes_after_its_sync() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let running = Running::on_disk(&path, Options { sync: Sync::Always, ..options() });
    let mut client = running.client();
    let syncs = |text: String| -> u64 {
        let (_, rest) = text.split_once("syncs:").unwrap();
        rest.split(|letter: char| !letter.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    for number in 1..=20 {
        assert_eq!(client.call(&format!("set key{number} v")), "OK");
    }
    // The server looks at the count from time to time.
    while syncs(client.call("info stats")) < 20 {
        std::thread::yield_now();
    }
    // Reads and changes that do nothing need none.
    let before = syncs(client.call("info stats"));
    for _ in 0..20 {
        client.call("get key1");
        client.call("del none");
    }
    assert_eq!(syncs(client.call("info stats")), before);
}

#[test]
fn changes_that_were_replied_to_survive_the_end_of_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let running = Running::on_disk(&path, options());
    let mut client = running.client();
    client.send(&[encode(&[b"set", b"a", b"1"]), encode(&[b"hset", b"h", b"f", b"v"])].concat());
    assert_eq!((client.reply(), client.reply()), ("OK".to_owned(), ":1".to_owned()));
    // What the operating system has is what another process reads.
    let reader = Db::open_read_only(path.to_str().unwrap()).unwrap();
    let keyspace = reader.keyspace("redis").unwrap();
    assert_eq!(keyspace.get([0, 0, b'a']).unwrap().unwrap(), [0, b'1']);
    assert!(keyspace.contains([0, 0, b'h']).unwrap());
}

#[test]
fn a_keyspace_of_others_is_refused() {
    let db = Db::builder().durability(Durability::Memory).open("memory:").unwrap();
    db.keyspace("redis").unwrap().set("mine", "1").unwrap();
    let error = forrest_redis::Server::bind(&db, options()).err().unwrap();
    assert!(error.to_string().contains("a store of its own"), "{error}");
}

/// The replies that say OK do not hold then. The connection ended without a word.
#[test]
fn a_sync_that_fails_is_the_reply() {
    for sync in [Sync::Always, Sync::No] {
        let disk = Simulated::new();
        let db = simulated::open(disk.clone(), &Db::builder().durability(Durability::Memory)).unwrap();
        let running = Running::new(&db, Options { sync, ..options() });
        let mut client = running.client();
        assert_eq!(client.call("set a 1"), "OK");
        let kind = if sync == Sync::Always { Failure::SyncFails(Fate::Dropped) } else { Failure::Eio };
        disk.fail(Fault { at: disk.ios(), times: Times::Once, kind });
        client.send(b"set a 2\r\nset b 2\r\n");
        let rest = client.rest();
        assert!(
            rest.starts_with("-MISCONF changes were not made durable and may be lost: "),
            "{sync:?}: {rest}"
        );
        assert_eq!(rest.matches("\r\n").count(), 1, "{sync:?}: {rest}");
        // Others read, and see why they cannot write.
        let mut client = running.client();
        assert_ne!(client.call("get a"), "(nil)");
        assert!(client.call("set a 3").starts_with("(error) MISCONF "), "{sync:?}");
        // Once the store goes on, syncs are made again.
        db.resume().unwrap();
        assert_eq!(running.client().call("set a 4"), "OK");
    }
}
