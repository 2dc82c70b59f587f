//! Stores on disk: everything is there again, and one sync serves many clients.

use crate::harness::{Running, encode, options};
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
