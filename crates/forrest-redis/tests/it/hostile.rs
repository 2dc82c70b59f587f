//! Clients that send halves, claim much, read slowly, or are too many. Each limit holds at its edge, and other clients
//! go on.

use crate::harness::{Client, Running, encode, number, options};
use forrest_redis::{Limits, Options};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn with(limits: Limits) -> Running {
    Running::in_memory(Options { limits, ..options() })
}

/// Another client is served.
fn goes_on(running: &Running) {
    assert_eq!(running.client().call("ping"), "PONG");
}

#[test]
fn half_a_request_ends_after_its_time() {
    let running = with(Limits { half_request: Duration::from_millis(50), ..Limits::default() });
    let mut silent = running.client();
    assert_eq!(silent.call("ping"), "PONG");
    for half in ["*2\r\n$3\r\nGE", "*2\r\n", "GET a", "*1000000\r\n$1\r\nx\r\n"] {
        let mut client = running.client();
        client.send(half.as_bytes());
        goes_on(&running);
        assert_eq!(client.rest(), "", "{half}");
    }
    assert_eq!(number(&mut running.client(), "clients_ended_for_time"), 4);
    // A client that was silent between requests all that time may stay.
    assert_eq!(silent.call("ping"), "PONG");
}

#[test]
fn silence_ends_if_that_was_chosen() {
    let running = with(Limits { idle: Some(Duration::from_millis(20)), ..Limits::default() });
    assert_eq!(running.client().rest(), "");
}

/// Others could hold all places for ever.
#[test]
fn who_does_not_give_the_password_has_a_time() {
    let limits = Limits { half_request: Duration::from_millis(300), ..Limits::default() };
    let password = Some(b"secret".to_vec());
    let running = Running::in_memory(Options { password, limits, ..options() });
    let mut known = running.client();
    assert_eq!(known.call("auth secret"), "OK");
    assert_eq!(running.client().rest(), "");
    // Requests that get an error do not give it more time.
    let mut busy = running.client();
    busy.stream.get_ref().set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let mut one = [0; 64];
    let began = std::time::Instant::now();
    loop {
        assert!(began.elapsed() < crate::harness::PATIENCE, "the connection stays");
        if busy.stream.get_mut().write_all(b"PING\r\n").is_err() {
            break;
        }
        match busy.stream.get_mut().read(&mut one) {
            Ok(0) => break,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            _ => {}
        }
    }
    // One that is known may be silent, and has a time again once it is not known.
    assert_eq!(known.call("ping"), "PONG");
    assert_eq!(known.call("reset"), "RESET");
    assert_eq!(known.call("auth secret"), "OK");
    assert_eq!(known.call("reset"), "RESET");
    assert_eq!(known.rest(), "");
    assert_eq!(number_with_password(&running), 3);
}

fn number_with_password(running: &Running) -> u64 {
    let mut client = running.client();
    client.call("auth secret");
    number(&mut client, "clients_ended_for_time")
}

#[test]
fn a_large_claim_takes_nothing_and_a_large_request_is_refused_at_the_limit() {
    let running = with(Limits { request_bytes: 100_000, ..Limits::default() });
    // "*3\r\n$3\r\nset\r\n$1\r\na\r\n$99970\r\n" has 28 bytes, and the end of the string 2.
    let most = 100_000 - 28 - 2;
    let mut client = running.client();
    assert_eq!(client.call_args(&[b"set", b"a", &vec![b'x'; most]]), "OK");
    assert_eq!(client.call("strlen a"), format!(":{most}"));

    let mut client = running.client();
    client.send(format!("*3\r\n$3\r\nset\r\n$1\r\na\r\n${}\r\n", 512 << 20).as_bytes());
    assert_eq!(client.rest(), "-ERR Protocol error: invalid bulk length\r\n");
    let mut client = running.client();
    client.send(&encode(&[b"set", b"a", &vec![b'x'; most + 1]])[..60]);
    assert!(client.rest().contains("a request of more than 100000 bytes"));

    // A claim within the limit is waited for, and nothing is taken for it.
    let mut client = running.client();
    client.send(b"*3\r\n$3\r\nset\r\n$1\r\na\r\n$99900\r\nx");
    let mut other = running.client();
    while number(&mut other, "mem_clients_normal") == 0 {
        std::thread::yield_now();
    }
    assert!(number(&mut other, "mem_clients_normal") < 40_000);
    goes_on(&running);
}

#[test]
fn strings_and_transactions_have_the_limit_of_requests() {
    let running = with(Limits { request_bytes: 1000, ..Limits::default() });
    let mut client = running.client();
    assert_eq!(client.call("setrange a 999 x"), ":1000");
    let too_long = "(error) ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    assert_eq!(client.call("setrange a 1000 x"), too_long);
    assert_eq!(client.call("append a x"), too_long);
    assert_eq!(client.call("setbit a 7999 1"), ":0");
    assert!(client.call("setbit a 8000 1").contains("out of range"));
    client.call("multi");
    let replies: Vec<String> = (0..20).map(|_| client.call("get a")).collect();
    let queued = replies.iter().filter(|reply| *reply == "QUEUED").count();
    assert!(queued > 5 && queued < 20);
    assert!(replies[queued].contains("the transaction has more than 1000 bytes"), "{replies:?}");
    assert!(client.call("exec").contains("EXECABORT"));
}

#[test]
fn a_long_reply_is_an_error() {
    let running = with(Limits { reply_bytes: 1000, ..Limits::default() });
    let mut client = running.client();
    client.call("set a 1");
    client.call("setrange a 899 x");
    assert_eq!(client.call("mget a").len(), 6 + 4 * 898);
    let too_long = "(error) ERR the reply has more than 1000 bytes (--reply-bytes); ask for less at a time";
    assert_eq!(client.call("mget a a"), too_long);
    assert_eq!(client.call("ping"), "PONG");
}

/// A client of a server whose replies have at most 1,000 bytes.
fn with_short_replies(test: impl Fn(&Running, &mut Client<TcpStream>)) {
    let limits = Limits { reply_bytes: 1000, ..Limits::default() };
    let running = with(limits);
    test(&running, &mut running.client());
    let directory = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&directory.path().join("store"), Options { limits, ..options() });
    test(&running, &mut running.client());
}

const TOO_LONG: &str =
    "(error) ERR the reply has more than 1000 bytes (--reply-bytes); ask for less at a time";

/// The data would be gone, because nobody has got it.
#[test]
fn a_command_whose_reply_is_too_long_changes_nothing() {
    with_short_replies(|running, client| {
        client.call("setrange a 1499 x");
        for request in ["getdel a", "getset a 1", "set a 1 get", "getex a px 1"] {
            assert_eq!(client.call(request), TOO_LONG, "{request}");
            assert_eq!([client.call("strlen a"), client.call("ttl a")], [":1500", ":-1"], "{request}");
        }
        for number in 10..50 {
            client.call(&format!("zadd z 0.12345678901234568 {number}"));
            client.call(&format!("sadd s {}{number}", "x".repeat(20)));
            client.call(&format!("rpush l {}{number}", "x".repeat(20)));
        }
        for (request, count) in [
            ("zpopmin z 40", "zcard z"),
            ("zmpop 1 z max count 40", "zcard z"),
            ("bzmpop 0 1 z min count 40", "zcard z"),
            ("spop s 40", "scard s"),
            ("lpop l 40", "llen l"),
            ("lmpop 1 l left count 40", "llen l"),
        ] {
            let reply = client.call(request);
            assert!(reply.contains("more than 1000 bytes"), "{request}: {reply}");
            assert_eq!(client.call(count), ":40", "{request}");
        }
        assert_eq!(client.call("zpopmin z"), "[\"10\", \"0.12345678901234568\"]");

        // The same for one that has waited.
        let mut waiter = running.client();
        waiter.send(&encode(&[b"blpop", b"q", b"0"]));
        while !client.call("client list").contains("flags=b") {
            std::thread::yield_now();
        }
        assert_eq!(client.call_args(&[b"rpush", b"q", &[b'x'; 985]]), ":1");
        assert_eq!(waiter.reply(), TOO_LONG);
        assert_eq!(client.call("llen q"), ":1");
    });
}

#[test]
fn a_transaction_whose_replies_are_too_long_changes_nothing() {
    with_short_replies(|_, client| {
        let mut exec = |requests: &[&str]| {
            client.call("setrange a 599 x");
            client.call("setrange b 599 x");
            client.call("multi");
            requests.iter().for_each(|request| drop(client.call(request)));
            (client.call("exec"), client.call("exists a b c"), client.call("get n"))
        };
        let (replies, ..) =
            exec(&["incr n", "select 1", "incr n", "select 0", "getdel a", "get a", "set d 1"]);
        assert!(replies.starts_with("[:1, OK, :1, OK, \""), "{replies}");
        // The second string has the room that the first has left.
        let abort = TOO_LONG.replace("ERR", "EXECABORT Transaction discarded because of:");
        for requests in [
            ["getdel a", "getset b 1", "select 1", "incr n", "set c 1"],
            ["set c 1", "del a", "get b", "incr n", "get b"],
        ] {
            assert_eq!(exec(&requests), (abort.clone(), ":2".to_owned(), "\"1\"".to_owned()), "{requests:?}");
        }
    });
}

/// A page makes the browser send what it likes to an address of this machine, after some lines of HTTP.
#[test]
fn requests_of_web_pages_end_the_connection() {
    let password = Some(b"secret".to_vec());
    for options in [options(), Options { password, ..options() }] {
        let running = Running::in_memory(options);
        for head in [
            "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n",
            "post\r\n",
            "*1\r\n$5\r\nHOST:\r\n",
            "MULTI\r\nPOST /\r\n",
        ] {
            let mut client = running.client();
            client.send(format!("{head}auth secret\r\nset a 1\r\nexec\r\n").as_bytes());
            let rest = client.rest();
            assert!(!rest.contains("QUEUED"), "{head}: {rest}");
            let mut client = running.client();
            client.call("auth secret");
            assert_eq!(client.call("exists a"), ":0", "{head}");
        }
    }
}

#[test]
fn the_longest_times_end_nothing() {
    let limits = Limits {
        idle: Some(Duration::MAX),
        half_request: Duration::MAX,
        slow_reader: Duration::MAX,
        ..Limits::default()
    };
    let running = with(limits);
    let mut client = running.client();
    client.send(b"PI");
    goes_on(&running);
    client.send(b"NG\r\n");
    assert_eq!(client.reply(), "PONG");
    client.call_args(&[b"set", b"a", &vec![b'x'; 16 << 20]]);
    client.send(&encode(&[b"get", b"a"]));
    goes_on(&running);
    assert_eq!(client.reply().len(), (16 << 20) + 2);
}

#[test]
fn parameters_have_the_bounds_of_redis() {
    let running = with(Limits { connections: 50, ..Limits::default() });
    let mut client = running.client();
    let wrong = "argument must be between 0 and 2147483647 inclusive";
    for value in ["9223372036854775807", "2147483648", "-1"] {
        assert!(client.call(&format!("config set timeout {value}")).ends_with(wrong), "{value}");
    }
    assert_eq!(client.call("config set timeout 2147483647"), "OK");
    assert_eq!(client.call("config get timeout"), "[\"timeout\", \"2147483647\"]");
    goes_on(&running);

    for (value, then) in [(1, 1), (20, 20), (1000, 50), (0, 1)] {
        assert_eq!(client.call(&format!("config set maxclients {value}")), "OK");
        assert_eq!(client.call("config get maxclients"), format!("[\"maxclients\", \"{then}\"]"));
    }
}

/// The most memory that this process ever had, in bytes.
#[cfg(target_os = "linux")]
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

#[cfg(target_os = "linux")]
#[test]
fn random_members_are_not_held_before_their_reply_is_too_long() {
    let limits = Limits { reply_bytes: 4 << 20, ..Limits::default() };
    let running = with(limits);
    let mut client = running.client();
    client.call_args(&[b"hset", b"h", b"f", &vec![b'x'; 1 << 20]]);
    let member = vec![b'x'; 60_000];
    client.call_args(&[b"sadd", b"s", &member]);
    client.call_args(&[b"zadd", b"z", b"1", &member]);
    let before = most_memory();
    for (request, fits) in [
        ("hrandfield h -1200 withvalues", "hrandfield h -3 withvalues"),
        ("srandmember s -20000", "srandmember s -60"),
        ("zrandmember z -20000", "zrandmember z -60"),
        ("zrandmember z -20000 withscores", "zrandmember z -60 withscores"),
    ] {
        assert!(client.call(request).contains("the reply has more than 4194304 bytes"), "{request}");
        assert!(client.call(fits).len() > 3 << 20);
    }
    let more = most_memory() - before;
    assert!(more < 600 << 20, "{more} bytes");
}

#[test]
fn a_step_of_a_scan_has_a_limit_in_bytes() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    let value = vec![b'x'; 300_000];
    for number in 0..20 {
        client.call_args(&[b"hset", b"h", format!("f{number:02}").as_bytes(), &value]);
        let name = [format!("{number:02}").as_bytes(), &value[..60_000]].concat();
        client.call_args(&[b"set", &name, b""]);
        client.call_args(&[b"sadd", b"s", &name]);
        client.call_args(&[b"zadd", b"z", b"1", &name]);
    }
    for (request, items, most) in [
        (&[&b"hscan"[..], b"h"][..], 20, 5),
        (&[b"scan"], 23, 19),
        (&[b"sscan", b"s"], 20, 18),
        (&[b"zscan", b"z"], 20, 18),
    ] {
        let (mut cursor, mut found) = ("0".to_owned(), 0);
        loop {
            let reply = client.call_args(&[request, &[cursor.as_bytes(), b"count", b"1000"]].concat());
            let (next, rest) = reply[2..].split_once('"').unwrap();
            cursor = next.to_owned();
            let strings = (rest.matches('"').count() / 2) as u64;
            let members =
                if request[0] == b"hscan" || request[0] == b"zscan" { strings / 2 } else { strings };
            assert!(members <= most, "{members} of {request:?}");
            found += members;
            if cursor == "0" {
                break;
            }
        }
        assert_eq!(found, items, "{request:?}");
    }
}

#[test]
fn unions_have_the_limit_of_replies() {
    let running = with(Limits { reply_bytes: 60_000, ..Limits::default() });
    let mut client = running.client();
    for number in 0..90 {
        let member = format!("{number:02}{}", "x".repeat(500));
        for (set, sorted) in [("a", "za"), ("b", "zb")] {
            client.call(&format!("sadd {set} {set}{member}"));
            client.call(&format!("zadd {sorted} 1 {set}{member}"));
        }
    }
    for request in [
        "sunion a b",
        "sunionstore c a b",
        "zunion 2 za zb",
        "zunionstore c 2 za zb",
        "zunion 2 a zb weights 2 3",
    ] {
        let reply = client.call(request);
        assert!(reply.contains("the union has more than 60000 bytes (--reply-bytes)"), "{request}: {reply}");
    }
    assert_eq!(client.call("zunionstore c 2 za za"), ":90");
    assert_eq!(client.call("zunionstore c 1 zb"), ":90");
}

#[test]
fn watched_keys_count_as_buffers() {
    let running = with(Limits { buffers_bytes: 1 << 20, ..Limits::default() });
    let mut client = running.client();
    let key = vec![b'x'; 60_000];
    let watched = (0..40_u8)
        .take_while(|number| {
            client.send(&encode(&[b"watch", &[&[*number], &key[..]].concat()]));
            client.rest_of_line() == "+OK\r\n"
        })
        .count();
    assert!((4..=17).contains(&watched), "{watched}");
    assert_eq!(number(&mut running.client(), "evicted_clients"), 1);
    // Keys that are no longer watched count no more.
    let mut client = running.client();
    for number in 0..60_u8 {
        assert_eq!(client.call_args(&[b"watch", &[&[number], &key[..]].concat()]), "OK");
        if number % 3 == 0 {
            assert_eq!(client.call("unwatch"), "OK");
        }
    }
}

#[test]
fn one_connection_too_many_is_refused() {
    let running = with(Limits { connections: 3, ..Limits::default() });
    let mut clients: Vec<_> = (0..3).map(|_| running.client()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.call("ping"), "PONG"));
    assert_eq!(running.client().rest(), "-ERR max number of clients reached\r\n");
    clients[0].call("quit");
    assert_eq!(clients[0].rest(), "");
    // The place is free once the server has noticed.
    loop {
        let mut client = running.client();
        client.send(b"PING\r\n");
        if client.rest_of_line() == "+PONG\r\n" {
            break;
        }
    }
}

#[test]
fn a_slow_reader_stops_being_read_and_ends() {
    let limits = Limits { slow_reader: Duration::from_millis(200), ..Limits::default() };
    let running = with(limits);
    let mut client = running.client();
    let value = vec![b'x'; 1 << 20];
    assert_eq!(client.call_args(&[b"set", b"a", &value]), "OK");
    // 2 GiB of replies, of which the server must not hold more than one or two.
    let requests = encode(&[b"get", b"a"]).repeat(2048);
    client.send(&requests);
    let mut other = running.client();
    while number(&mut other, "mem_clients_normal") < 1 << 20 {
        std::thread::yield_now();
    }
    while number(&mut other, "clients_ended_for_time") == 0 {
        assert!(number(&mut other, "mem_clients_normal") < 8 << 20);
        assert_eq!(other.call("ping"), "PONG");
    }
    while number(&mut other, "connected_clients") > 1 {
        std::thread::yield_now();
    }
    assert!(number(&mut other, "mem_clients_normal") < 1024);
}

#[test]
fn the_largest_buffers_go_when_all_are_too_large() {
    let running = with(Limits { buffers_bytes: 1 << 20, ..Limits::default() });
    let (mut small, mut large) = (running.client(), running.client());
    // Half a request of each. That of the small one fits.
    let fits = encode(&[b"set", b"a", &vec![b'x'; 200_000]]);
    let request = encode(&[b"set", b"a", &vec![b'x'; 2 << 20]]);
    small.send(&fits[..100_000]);
    let mut other = running.client();
    while number(&mut other, "mem_clients_normal") < 100_000 {
        std::thread::yield_now();
    }
    // The server may close it before all is sent.
    let _ = large.stream.get_mut().write_all(&request[..request.len() - 1]);
    assert_eq!(large.rest(), "");
    small.send(&fits[100_000..]);
    assert_eq!(small.reply(), "OK");
    assert_eq!(number(&mut other, "evicted_clients"), 1);
}

#[test]
fn refused_clients_see_why() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    // More than the server reads at a time.
    let _ = client.stream.get_mut().write_all(&vec![b'x'; 200_000]);
    assert_eq!(client.rest(), "-ERR Protocol error: too big inline request\r\n");
}

#[test]
fn many_connections_are_served() {
    let running = Running::in_memory(options());
    let mut clients: Vec<_> = (0..400).map(|_| running.client()).collect();
    for client in &mut clients {
        client.send(b"*2\r\n$3\r\nGET\r\n$1\r\n");
    }
    goes_on(&running);
    for client in &mut clients {
        client.send(b"a\r\n");
    }
    clients.iter_mut().for_each(|client| assert_eq!(client.reply(), "(nil)"));
}
