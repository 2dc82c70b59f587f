//! Transactions: all or nothing at every limit, and one time for all commands.

use crate::harness::{Client, Running, everywhere, number, options};
use forrest::{Db, Durability};
use forrest_redis::Options;
use std::net::TcpStream;

/// Runs a test on stores whose batches have at most 100 operations, in memory and on disk.
fn with_small_batches(test: impl Fn(&Running, &mut Client<TcpStream>)) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    for url in ["memory:", path.to_str().unwrap()] {
        let db = Db::builder().durability(Durability::Memory).batch_ops_max(100).open(url).unwrap();
        let running = Running::new(&db, options());
        drop(db);
        test(&running, &mut running.client());
    }
}

/// Sends requests between `MULTI` and `EXEC`, and returns the reply of the latter.
fn exec(client: &mut Client<TcpStream>, requests: impl IntoIterator<Item = String>) -> String {
    assert_eq!(client.call("multi"), "OK");
    requests.into_iter().for_each(|request| assert_eq!(client.call(&request), "QUEUED"));
    client.call("exec")
}

fn members(from: u32, to: u32) -> String {
    (from..to).map(|number| format!(" {number}")).collect()
}

#[test]
fn a_transaction_above_the_limit_of_the_store_changes_nothing() {
    with_small_batches(|running, client| {
        let requests = ["set a 1", "incr n"].map(str::to_owned);
        let many = (0..3).map(|part| format!("rpush l{}", members(part * 40, part * 40 + 40)));
        let reply = exec(client, requests.into_iter().chain(many).chain(["set b 1".to_owned()]));
        assert!(reply.starts_with("(error) EXECABORT Transaction discarded because of: "), "{reply}");
        assert!(reply.contains("operations; at most 100 operations"), "{reply}");
        assert_eq!(client.call("exists a n l b"), ":0");
        // One that waits for what was not made gets nothing, and the client may go on.
        assert_eq!(exec(client, ["set a 1".to_owned(), "get a".to_owned()]), "[OK, \"1\"]");
        assert_eq!(running.client().call("get a"), "\"1\"");
    });
}

#[test]
fn what_is_read_and_who_is_undone_takes_little_of_the_limit() {
    with_small_batches(|_, client| {
        // A key that a command reads and changes counts twice up to its end, and then once.
        assert_eq!(exec(client, (0..99).map(|number| format!("set k{number} v"))).matches("OK").count(), 99);
        // What is read does not count after its command, before the first change and after it.
        let gets = (0..300).map(|number| format!("get k{number}"));
        assert!(exec(client, gets.clone().chain(["set a 1".to_owned()])).ends_with(", OK]"));
        assert!(exec(client, ["set a 1".to_owned()].into_iter().chain(gets)).starts_with("[OK, \"v\", "));
        assert_eq!(exec(client, (0..200).map(|_| "lpush a x".to_owned())).matches("WRONGTYPE").count(), 200);
    });
}

/// Numbers of keys are exact up to 10,000. To count more would keep all other clients waiting.
#[test]
fn many_keys_are_counted_about() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    for url in ["memory:", path.to_str().unwrap()] {
        let db = Db::builder().durability(Durability::Memory).batch_ops_max(15_000).open(url).unwrap();
        let running = Running::new(&db, options());
        drop(db);
        let mut client = running.client();
        let mut fill = |from: u32, to: u32| {
            for keys in (from..to).collect::<Vec<_>>().chunks(500) {
                let requests = keys.iter().map(|key| format!("set key:{key} v px 100000000\r\n"));
                client.send(requests.collect::<String>().as_bytes());
                keys.iter().for_each(|_| assert_eq!(client.reply(), "OK"));
            }
        };
        fill(0, 10_000);
        let mut other = running.client();
        assert_eq!(other.call("dbsize"), ":10000", "{url}");
        assert!(other.call("info").contains("db0:keys=10000,expires=10000,"), "{url}");
        fill(10_000, 20_000);
        for (request, name) in [("info", "keys="), ("info", "expires="), ("dbsize", ":")] {
            let reply = other.call(request);
            let (_, rest) = reply.split_once(name).unwrap();
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            let count: u32 = digits.parse().unwrap();
            assert!((15_000..=25_000).contains(&count), "{url}: {count} {name}");
        }
        // Within EXEC each key that is counted is one that was read.
        let reply = exec(&mut other, ["set key:0 w", "dbsize"].map(str::to_owned));
        assert!(reply.starts_with("[OK, :"), "{url}: {reply}");
    }
}

/// The members that a command reads count, so that the limit shows how many they are.
#[test]
fn a_few_random_members_are_chosen_without_reading_all() {
    let db = Db::builder().batch_ops_max(1000).open("memory:").unwrap();
    let running = Running::new(&db, options());
    let mut client = running.client();
    for number in (0..2000).step_by(40) {
        let members: Vec<u32> = (number..number + 40).map(|number| number * 997).collect();
        let list =
            |before: &str| members.iter().map(|member| format!(" {before}{member}")).collect::<String>();
        for request in [format!("sadd s{}", list("")), format!("zadd z{}", list("1 "))] {
            client.call(&request);
        }
        client.call(&format!(
            "hset h{}",
            members.iter().map(|member| format!(" {member} v")).collect::<String>()
        ));
    }
    for (request, len) in
        [("spop s 1", 1), ("srandmember s 7", 7), ("zrandmember z 7", 7), ("hrandfield h 7", 7)]
    {
        let reply = exec(&mut client, ["set a 1".to_owned(), request.to_owned()]);
        let chosen = reply.strip_prefix("[OK, [").and_then(|rest| rest.strip_suffix("]]"));
        let mut chosen: Vec<&str> =
            chosen.unwrap_or_else(|| panic!("{request}: {reply}")).split(", ").collect();
        chosen.sort_unstable();
        chosen.dedup();
        assert_eq!(chosen.len(), len, "{request}");
    }
    assert_eq!(client.call("scard s"), ":1999");
    let one = exec(&mut client, ["set a 1".to_owned(), "zrandmember z".to_owned()]);
    assert!(one.starts_with("[OK, \""), "{one}");
    assert_eq!(client.call("srandmember s 1999").matches('"').count(), 2 * 1999);
}

/// In memory one command has no such limit.
#[test]
fn one_command_above_the_limit_changes_nothing() {
    with_small_batches(|running, client| {
        for part in 0..5 {
            let pairs: String = (part * 20..part * 20 + 20).map(|number| format!(" 1 {number}")).collect();
            assert_eq!(client.call(&format!("zadd z{pairs}")), ":20");
        }
        if number(client, "aof_enabled") == 1 {
            let reply = client.call("zremrangebyrank z 0 -2");
            assert!(reply.contains("at most 100 operations"), "{reply}");
            assert_eq!(client.call("zcard z"), ":100");
        }
        // All members go at once.
        assert_eq!(exec(client, ["zremrangebyrank z 0 -1".to_owned(), "zcard z".to_owned()]), "[:100, :0]");
        assert_eq!(running.client().call("exists z"), ":0");
    });
}

/// What a copy has read and is to write is in memory, so that it has a limit in every home.
#[test]
fn a_copy_above_the_limit_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    for url in ["memory:", path.to_str().unwrap()] {
        let db = Db::builder().durability(Durability::Memory).batch_bytes_max(300_000).open(url).unwrap();
        let running = Running::new(&db, options());
        drop(db);
        let mut client = running.client();
        for field in 0..4 {
            let field = field.to_string();
            assert_eq!(client.call_args(&[b"hset", b"h", field.as_bytes(), &[b'x'; 100_000]]), ":1");
        }
        for request in ["copy h i", "copy h h db 1", "move h 1"] {
            let reply = client.call(request);
            assert!(reply.contains("at most 300000 bytes are allowed"), "{url}: {request}: {reply}");
        }
        assert_eq!(client.call("hlen h"), ":4");
        assert_eq!(client.call("exists i"), ":0");
        client.call("hdel h 0 1");
        assert_eq!(client.call("copy h i"), ":1");
        assert_eq!(client.call("hlen i"), ":2");
    }
}

#[test]
fn a_range_that_goes_touches_the_watched_keys_in_it() {
    let running = Running::in_memory(options());
    let (mut client, mut other) = (running.client(), running.client());
    for (watched, expected) in [("b", "(nil)"), ("bb", "[OK]"), ("d", "[OK]")] {
        other.call("mset a 1 b 1 c 1 d 1");
        client.call(&format!("watch {watched}"));
        assert_eq!(other.call("forrest.delrange [b [c"), ":2");
        assert_eq!(exec(&mut client, ["set e 1".to_owned()]), expected, "{watched}");
    }
}

#[test]
fn a_command_that_fails_is_undone_and_the_others_go_on() {
    let wrong = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
    everywhere(&format!(
        "multi => OK
        set a 1 => QUEUED
        lpush a x => QUEUED
        sadd s x y => QUEUED
        smove s t x => QUEUED
        copy s u => QUEUED
        del s => QUEUED
        sadd s z => QUEUED
        smembers s => QUEUED
        scard u => QUEUED
        exec => [OK, {wrong}, :2, :1, :1, :1, :1, [\"z\"], :1]
        smembers t => [\"x\"]
        smembers u => [\"y\"]"
    ));
    let running = Running::in_memory(options());
    let mut client = running.client();
    let long = "x".repeat(70_000);
    let requests =
        [format!("sadd s a {long}"), "exists s".to_owned(), format!("get {long}"), "incr n".to_owned()];
    let reply = exec(&mut client, requests);
    assert_eq!(reply.matches("(error) ERR limit exceeded: key of ").count(), 2, "{reply}");
    assert!(reply.contains(", :0, ") && reply.ends_with(", :1]"), "{reply}");
}

#[test]
fn time_stands_still_within_a_transaction() {
    let running = Running::in_memory(Options { debug: true, ..options() });
    let mut client = running.client();
    // All in one part, so that little time passes before the transaction.
    let requests = "set k v px 100\r\nmulti\r\nexists k\r\ndebug sleep 0.3\r\nexists k\r\nset l v px 200\r\npttl l\r\nexec\r\n";
    client.send(requests.as_bytes());
    let replies: Vec<String> = (0..8).map(|_| client.reply()).collect();
    assert_eq!(replies[7], "[:1, OK, :1, OK, :200]");
    assert_eq!(client.call("exists k l"), ":0");
}
