//! Commands that wait for a key: who is served, in which order, and when nobody is.

use crate::harness::{Client, PATIENCE, Running, encode, number, options};
use forrest_redis::{Limits, Options};
use std::collections::VecDeque;
use std::net::TcpStream;
use std::time::Instant;

/// A client whose command waits.
fn waiter(running: &Running, line: &str) -> Client<TcpStream> {
    let before = blocked(running);
    let mut client = running.client();
    send(&mut client, line);
    wait_until(running, before + 1);
    client
}

fn send(client: &mut Client<TcpStream>, line: &str) {
    let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    client.send(&encode(&args));
}

fn blocked(running: &Running) -> u64 {
    number(&mut running.client(), "blocked_clients")
}

/// Returns when this number of clients waits.
fn wait_until(running: &Running, clients: u64) {
    let mut client = running.client();
    let begin = Instant::now();
    while number(&mut client, "blocked_clients") != clients {
        assert!(begin.elapsed() < PATIENCE, "there are not {clients} clients that wait");
        std::thread::yield_now();
    }
}

/// Runs a test in memory and on disk.
fn everywhere(test: impl Fn(&Running)) {
    test(&Running::in_memory(options()));
    let directory = tempfile::tempdir().unwrap();
    test(&Running::on_disk(&directory.path().join("store"), options()));
}

#[test]
fn who_came_first_is_served_first() {
    everywhere(|running| {
        let waits = ["blpop q 0", "brpop p q 0", "blmove q other left right 0", "blpop q 0"];
        let mut waiters: Vec<_> = waits.iter().map(|line| waiter(running, line)).collect();
        let mut client = running.client();
        assert_eq!(client.call("rpush q a b c"), ":3");
        let replies: Vec<String> = waiters[..3].iter_mut().map(Client::reply).collect();
        assert_eq!(replies, ["[\"q\", \"a\"]", "[\"q\", \"c\"]", "\"b\""]);
        assert_eq!(client.call("lrange other 0 -1"), "[\"b\"]");
        assert_eq!((client.call("exists q").as_str(), blocked(running)), (":0", 1));
        // Who asks later gets nothing that another waits for.
        send(&mut client, "rpush q d");
        send(&mut client, "lpop q");
        assert_eq!([client.reply(), client.reply(), waiters[3].reply()], [":1", "(nil)", "[\"q\", \"d\"]"]);
    });
}

#[test]
fn what_is_there_is_taken_at_once() {
    everywhere(|running| {
        let mut client = running.client();
        let script = "rpush q a b c d e f g => :7
            blpop none q 0 => [\"q\", \"a\"]
            brpop q none 0 => [\"q\", \"g\"]
            blmove q r right left 0 => \"f\"
            brpoplpush q r 0 => \"e\"
            lrange r 0 -1 => [\"e\", \"f\"]
            lmpop 2 none q left count 2 => [\"q\", [\"b\", \"c\"]]
            blmpop 0 2 none q right count 9 => [\"q\", [\"d\"]]
            lmpop 1 q left => (nil)
            zadd z 1 a 2 b 3 c 4 d 5 e => :5
            bzpopmin none z 0 => [\"z\", \"a\", \"1\"]
            bzpopmax z 0 => [\"z\", \"e\", \"5\"]
            zmpop 2 none z min => [\"z\", [[\"b\", \"2\"]]]
            bzmpop 0 1 z max count 5 => [\"z\", [[\"d\", \"4\"], [\"c\", \"3\"]]]
            zmpop 1 z max => (nil)
            dbsize => :1";
        for line in script.lines().map(str::trim) {
            let (request, expected) = line.split_once(" => ").unwrap();
            assert_eq!(client.call(request), expected, "{request}");
        }
    });
}

#[test]
fn nothing_comes_in_time() {
    let running = Running::in_memory(options());
    for version in ["2", "3"] {
        let mut client = running.client();
        client.call(&format!("hello {version}"));
        for request in [
            "blpop a b 0.01",
            "brpop a 0.01",
            "blmove a b left left 0.01",
            "brpoplpush a b 0.01",
            "blmpop 0.01 1 a left",
            "bzpopmin a 0.01",
            "bzpopmax a 0.01",
            "bzmpop 0.01 1 a min",
        ] {
            assert_eq!(client.call(request), "(nil)", "{request}");
        }
        // The other requests were not lost, and nobody waits any more.
        assert_eq!(client.call("ping"), "PONG");
        assert_eq!(blocked(&running), 0);
    }
}

#[test]
fn bad_arguments_are_named() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    client.call("set text x");
    for (request, error) in [
        ("blpop q -1", "ERR timeout is negative"),
        ("blpop q soon", "ERR timeout is not a float or out of range"),
        ("blpop q inf", "ERR timeout is not a float or out of range"),
        ("blpop q 1e300", "ERR timeout is out of range"),
        ("blpop q text 0", "WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("blmove q r up left 0", "ERR syntax error"),
        ("blmpop 0 3 q left", "ERR Number of keys can't be greater than number of args"),
        ("blmpop 0 0 q left", "ERR numkeys should be greater than 0"),
        ("blmpop 0 1 q left count 0", "ERR count should be greater than 0"),
        ("bzmpop 0 1 q left", "ERR syntax error"),
        ("client unblock 1 soon", "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
    ] {
        assert!(client.call(request).contains(error), "{request}");
        assert_eq!(blocked(&running), 0, "{request}");
    }
}

#[test]
fn a_transaction_neither_waits_nor_is_interrupted() {
    everywhere(|running| {
        let mut waiting = waiter(running, "blpop q 0");
        let mut client = running.client();
        for request in ["multi", "lpush q a", "blpop q 0", "blpop q 0", "brpoplpush q r 0"] {
            client.call(request);
        }
        assert_eq!(client.call("exec"), "[:1, [\"q\", \"a\"], (nil), (nil)]");
        assert_eq!(blocked(running), 1);
        // What a transaction leaves is served after it.
        for request in ["multi", "lpush q a", "lpush q b"] {
            client.call(request);
        }
        assert_eq!(client.call("exec"), "[:1, :2]");
        assert_eq!(waiting.reply(), "[\"q\", \"b\"]");
    });
}

#[test]
fn what_one_gets_may_serve_another() {
    everywhere(|running| {
        let mut last = waiter(running, "blpop c 0");
        let mut second = waiter(running, "blmove b c left left 0");
        let mut first = waiter(running, "brpoplpush a b 0");
        running.client().call("lpush a x");
        assert_eq!(first.reply(), "\"x\"");
        assert_eq!(second.reply(), "\"x\"");
        assert_eq!(last.reply(), "[\"c\", \"x\"]");
        // Back to the list where it came from, it is there for the next.
        let mut round = waiter(running, "blmove ring ring left right 0");
        let mut next = waiter(running, "blpop ring 0");
        running.client().call("lpush ring x");
        assert_eq!(round.reply(), "\"x\"");
        assert_eq!(next.reply(), "[\"ring\", \"x\"]");
    });
}

#[test]
fn every_way_to_make_a_key_serves() {
    everywhere(|running| {
        let mut client = running.client();
        for requests in [
            &["rpush old x", "rename old q"][..],
            &["rpush old x", "copy old q", "del old"],
            &["select 1", "rpush q x", "move q 0", "select 0"],
            &["select 1", "rpush q x", "swapdb 0 1", "flushdb", "select 0"],
            &["rpush old x", "lmove old q left left"],
        ] {
            let mut waiting = waiter(running, "blpop q 0");
            requests.iter().for_each(|request| drop(client.call(request)));
            assert_eq!(waiting.reply(), "[\"q\", \"x\"]", "{requests:?}");
            assert_eq!(client.call("dbsize"), ":0", "{requests:?}");
        }
        let mut waiting = waiter(running, "bzpopmin z 0");
        client.call("sadd s a b");
        client.call("zunionstore z 1 s");
        assert_eq!(waiting.reply(), "[\"z\", \"a\", \"1\"]");
    });
}

#[test]
fn keys_of_another_type_serve_nobody() {
    everywhere(|running| {
        let mut list = waiter(running, "blpop text q 0");
        let mut sorted = waiter(running, "bzpopmin q 0");
        let mut target = waiter(running, "blmove from text left left 0");
        let mut client = running.client();
        client.call("set text x");
        client.call("set q x");
        assert_eq!(blocked(running), 3);
        client.call("del q");
        client.call("zadd q 1 a");
        assert_eq!(sorted.reply(), "[\"q\", \"a\", \"1\"]");
        client.call("rpush q a");
        assert_eq!(list.reply(), "[\"q\", \"a\"]");
        // Where it cannot be put, it stays.
        client.call("rpush from a");
        assert!(target.reply().starts_with("(error) WRONGTYPE"));
        assert_eq!(client.call("lrange from 0 -1"), "[\"a\"]");
    });
}

#[test]
fn who_has_left_takes_nothing() {
    everywhere(|running| {
        let mut client = running.client();
        let gone = waiter(running, "blpop q 0");
        let ended = waiter(running, "blpop q 0");
        drop(gone);
        wait_until(running, 1);
        let id = waiting_id(&mut client);
        assert_eq!(client.call(&format!("client kill id {id}")), ":1");
        wait_until(running, 0);
        drop(ended);
        client.call("rpush q a");
        assert_eq!(client.call("lrange q 0 -1"), "[\"a\"]");
    });
}

/// A client that waits is read on, so that its end is noticed after any number of further requests. It was read up to
/// 16 KiB only: then it stayed for ever, and took an element with it.
#[test]
fn who_has_left_is_noticed_after_many_requests() {
    everywhere(|running| {
        let mut client = running.client();
        for bytes in [1 << 10, 20_000, 1 << 20, 16 << 20] {
            let mut gone = waiter(running, "blpop q 0");
            gone.send(&encode(&[b"set", b"left", &vec![b'x'; bytes]]));
            drop(gone);
            wait_until(running, 0);
            assert_eq!(client.call("rpush q a"), ":1", "{bytes}");
            assert_eq!(client.call("lpop q"), "\"a\"", "{bytes}");
            assert_eq!(client.call("exists left"), ":0", "{bytes}");
        }
        while number(&mut client, "mem_clients_normal") > 100_000 {
            std::thread::yield_now();
        }
    });
}

/// What a client sends while it waits has the limit of a request.
#[test]
fn a_client_that_waits_may_send_as_much_as_a_request() {
    let limits = Limits { request_bytes: 100_000, ..Limits::default() };
    let running = Running::in_memory(Options { limits, ..options() });
    let mut client = running.client();
    let request = encode(&[b"append", b"a", &[b'x'; 969]]);
    assert_eq!(request.len(), 1000);
    // Its last request is executed after the others, however many of them wait too.
    let mut fits = waiter(&running, "blpop q 0");
    (0..49).for_each(|_| fits.send(&request));
    send(&mut fits, "blpop q 0");
    (0..49).for_each(|_| fits.send(&request));
    send(&mut fits, "strlen a");
    for strings in [49, 98] {
        wait_until(&running, 1);
        client.call("rpush q b");
        assert_eq!(fits.reply(), "[\"q\", \"b\"]");
        (strings - 48..=strings).for_each(|number| assert_eq!(fits.reply(), format!(":{}", number * 969)));
    }
    assert_eq!(fits.reply(), format!(":{}", 98 * 969));

    let mut ends = waiter(&running, "blpop q 0");
    (0..100).for_each(|_| ends.send(&request));
    assert_eq!(blocked(&running), 1);
    ends.send(b"P");
    let error = "-ERR a client that waits has sent more than 100000 bytes (--request-bytes)\r\n";
    assert_eq!(ends.rest(), error);
    assert_eq!(blocked(&running), 0);
    assert_eq!(client.call("rpush q a"), ":1");
    assert_eq!(client.call("lpop q"), "\"a\"");
}

/// The budget of all buffers holds for clients that wait as well.
#[test]
fn clients_that_wait_have_the_budget_of_all() {
    let limits = Limits { buffers_bytes: 1 << 20, ..Limits::default() };
    let running = Running::in_memory(Options { limits, ..options() });
    let mut small = waiter(&running, "blpop q 0");
    let mut large = waiter(&running, "blpop q 0");
    small.send(&encode(&[b"set", b"a", &[b'x'; 100_000]]));
    // The server may close it before all is sent.
    let _ = std::io::Write::write_all(large.stream.get_mut(), &encode(&[b"set", b"b", &vec![b'x'; 8 << 20]]));
    assert_eq!(large.rest(), "");
    wait_until(&running, 1);
    let mut client = running.client();
    client.call("rpush q a");
    assert_eq!([small.reply(), small.reply()], ["[\"q\", \"a\"]", "OK"]);
    assert_eq!(number(&mut client, "evicted_clients"), 1);
}

/// The number of the client that waits.
fn waiting_id(client: &mut Client<TcpStream>) -> u64 {
    let list = client.call("client list");
    let line = list.split("\\n").find(|line| line.contains("flags=b")).expect("one waits");
    let (_, id) = line.split_once("id=").unwrap();
    id.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn waiting_ends_when_another_client_says_so() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    for (how, expected) in [
        ("", "(nil)"),
        (" timeout", "(nil)"),
        (" error", "(error) UNBLOCKED client unblocked via CLIENT UNBLOCK"),
    ] {
        let mut waiting = waiter(&running, "blpop q 0");
        let id = waiting_id(&mut client);
        assert_eq!(client.call(&format!("client unblock {id}{how}")), ":1");
        assert_eq!(waiting.reply(), expected);
        assert_eq!(client.call(&format!("client unblock {id}{how}")), ":0");
        assert_eq!(waiting.call("ping"), "PONG");
    }
    assert_eq!(client.call("client unblock -1"), ":0");
}

/// Requests after one that waits are executed after it, however many there are.
#[test]
fn later_requests_come_later() {
    let running = Running::in_memory(options());
    let mut waiting = waiter(&running, "blpop q 0");
    let value = "x".repeat(5_000);
    for number in 0..20 {
        send(&mut waiting, &format!("set {number} {value}"));
    }
    send(&mut waiting, "client reply skip");
    send(&mut waiting, "blpop q 0");
    send(&mut waiting, "dbsize");
    let mut client = running.client();
    assert_eq!(client.call("dbsize"), ":0");
    client.call("rpush q a");
    assert_eq!(waiting.reply(), "[\"q\", \"a\"]");
    (0..20).for_each(|_| assert_eq!(waiting.reply(), "OK"));
    wait_until(&running, 1);
    // This one's reply was to be left out.
    client.call("rpush q b");
    assert_eq!(waiting.reply(), ":20");
}

#[test]
fn many_wait_and_each_gets_one() {
    let running = Running::in_memory(options());
    let mut waiters: Vec<_> = (0..200).map(|_| running.client()).collect();
    for (number, waiting) in waiters.iter_mut().enumerate() {
        send(waiting, "blpop q 0");
        wait_until(&running, number as u64 + 1);
    }
    let mut client = running.client();
    (0..200).for_each(|number| assert_eq!(client.call(&format!("rpush q {number}")), ":1"));
    for (number, waiting) in waiters.iter_mut().enumerate() {
        assert_eq!(waiting.reply(), format!("[\"q\", \"{number}\"]"));
    }
    assert_eq!((client.call("exists q").as_str(), blocked(&running)), (":0", 0));
}

/// Moves within one list are as those of a deque.
#[test]
fn a_list_that_turns_keeps_its_order() {
    everywhere(|running| {
        let mut client = running.client();
        let mut model: VecDeque<u32> = (0..5).collect();
        client.call("rpush q 0 1 2 3 4");
        for (number, sides) in
            ["left right", "left right", "right left", "left left", "right right", "right left"]
                .iter()
                .enumerate()
        {
            let from_front = sides.starts_with("left");
            let element = if from_front { model.pop_front() } else { model.pop_back() }.unwrap();
            if sides.ends_with("left") {
                model.push_front(element)
            } else {
                model.push_back(element)
            }
            assert_eq!(client.call(&format!("lmove q q {sides}")), format!("\"{element}\""), "move {number}");
            let expected: Vec<String> = model.iter().map(|element| format!("\"{element}\"")).collect();
            assert_eq!(client.call("lrange q 0 -1"), format!("[{}]", expected.join(", ")), "move {number}");
        }
        client.call("rpush one x");
        assert_eq!(client.call("rpoplpush one one"), "\"x\"");
        assert_eq!(client.call("lrange one 0 -1"), "[\"x\"]");
    });
}

/// Nobody would get the element.
#[test]
fn one_that_was_ended_takes_nothing() {
    everywhere(|running| {
        let mut waiter = running.client();
        let id = waiter.call("client id");
        send(&mut waiter, "blpop q 0");
        wait_until(running, 1);
        let mut client = running.client();
        let kill = encode(&[b"client", b"kill", b"id", &id.as_bytes()[1..]]);
        // The task of the waiter does not run between these.
        client
            .send(&[kill, encode(&[b"rpush", b"q", b"a"]), encode(&[b"lrange", b"q", b"0", b"-1"])].concat());
        assert_eq!([client.reply(), client.reply(), client.reply()], [":1", ":1", "[\"a\"]"]);
        assert_eq!((waiter.rest().as_str(), blocked(running)), ("", 0));
    });
}
