//! The example `node` as one and two processes: what its pages return at their limits, and a snapshot that takes long.

use crate::processes::{Cluster, Response, request, request_with};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// A store of one node.
fn alone(split: &'static str) -> Cluster {
    let cluster = Cluster::new(1, split);
    cluster.start(1);
    let begun = ask(&cluster, "POST /begin", &cluster.members(&[1]));
    assert_eq!(begun.status, 204, "{}", begun.body);
    cluster
}

fn ask(cluster: &Cluster, head: &str, body: &str) -> Response {
    request(cluster.address(1), head, None, body).expect("a response")
}

/// Follows `x-next` from the first key on. Returns the keys, and how many parts they came in.
fn follow(cluster: &Cluster, limit: &str) -> (Vec<String>, usize) {
    let (mut keys, mut parts, mut start) = (Vec::new(), 0, String::new());
    loop {
        let part = ask(cluster, &format!("GET /range?start={start}{limit}"), "");
        assert_eq!(part.status, 200, "{}", part.body);
        keys.extend(part.body.lines().map(|line| line.split('\t').next().expect("a key").to_owned()));
        parts += 1;
        match part.next {
            Some(next) => start = next,
            None => return (keys, parts),
        }
    }
}

#[test]
#[ignore = "starts processes; `cargo xtask raft` runs it"]
fn a_range_loses_no_key() {
    let cluster = alone("n");
    let mut all = Vec::new();
    for group in ["a", "n"] {
        let keys: Vec<String> = (0..1001).map(|number| format!("{group}{number:04}")).collect();
        let lines: String = keys.iter().map(|key| format!("set {key} 1\n")).collect();
        assert_eq!(ask(&cluster, "POST /batch", &lines).status, 204);
        all.extend(keys);
    }
    assert_eq!(follow(&cluster, ""), (all.clone(), 4));
    assert_eq!(follow(&cluster, "&limit=143"), (all, 14));
    // An end that is reached, and one that is not.
    let part = ask(&cluster, "GET /range?start=a&end=a0003&limit=3", "");
    assert_eq!((part.body.lines().count(), part.next), (3, None));
    let part = ask(&cluster, "GET /range?start=a&end=a0004&limit=3", "");
    assert_eq!((part.body.lines().count(), part.next.as_deref()), (3, Some("a0003")));
    for limit in ["many", "0", "-1"] {
        assert_eq!(ask(&cluster, &format!("GET /range?limit={limit}"), "").status, 400);
    }
}

/// It is built in memory, and a client may ask for any number of pairs.
#[test]
#[ignore = "starts processes; `cargo xtask raft` runs it"]
fn a_range_ends_after_a_mebibyte() {
    let cluster = alone("n");
    let keys: Vec<String> = (0..30).map(|number| format!("a{number:02}")).collect();
    let value = "v".repeat(100_000);
    for key in &keys {
        assert_eq!(ask(&cluster, &format!("PUT /keys/{key}"), &value).status, 204);
    }
    // Eleven pairs are the first that have so much. The second group has none.
    assert_eq!(follow(&cluster, &format!("&limit={}", usize::MAX)), (keys, 4));
}

/// A header has no letters beyond ASCII, and a key may have any.
#[test]
#[ignore = "starts processes; `cargo xtask raft` runs it"]
fn a_range_goes_on_with_any_key() {
    let cluster = alone("ñandú");
    for key in ["a", "b&c=d", "b%20c", "b c", "ñandú", "ŵ", "ŵŵ"] {
        assert_eq!(ask(&cluster, "POST /batch", &format!("set \"{key}\" 1\n")).status, 204, "{key}");
    }
    for (limit, parts) in [("", 2), ("&limit=1", 7)] {
        let (keys, found) = follow(&cluster, limit);
        assert_eq!((keys.len(), found), (7, parts), "{keys:?}");
    }
    let removed = ask(&cluster, "DELETE /range?start=a", "");
    let next = removed.next.expect("the range goes on in the next group");
    assert_eq!(ask(&cluster, &format!("DELETE /range?start={next}"), "").next, None);
    assert_eq!(follow(&cluster, "").0.len(), 0);
}

#[test]
#[ignore = "starts processes; `cargo xtask raft` runs it"]
fn a_session_of_no_numbers_is_refused() {
    let cluster = alone("n");
    let status = |headers: &str| {
        let response = request_with(cluster.address(1), "PUT /keys/a", headers, "1").expect("a response");
        response.status
    };
    assert_eq!(status("x-client: 7\r\nx-serial: 1\r\n"), 204);
    for bad in [
        "x-client: 7\r\n",
        "x-serial: 2\r\n",
        "x-client: seven\r\nx-serial: 2\r\n",
        "x-client: 7\r\nx-serial: -2\r\n",
        "x-client: 7\r\nx-serial: 18446744073709551615\r\n",
    ] {
        assert_eq!(status(bad), 400, "{bad}");
    }
}

/// Passes bytes on to an address, those of requests slowly.
fn slow(to: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        for from in listener.incoming() {
            let (from, to) = (from.expect("a connection"), TcpStream::connect(&to).expect("it listens"));
            let clones = (to.try_clone().expect("a socket"), from.try_clone().expect("a socket"));
            thread::spawn(move || pass(from, to, Duration::from_millis(20)));
            thread::spawn(move || pass(clones.0, clones.1, Duration::ZERO));
        }
    });
    address
}

fn pass(mut from: TcpStream, mut to: TcpStream, wait: Duration) {
    let mut piece = vec![0; 32 << 10];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        if count > 1 << 10 {
            thread::park_timeout(wait);
        }
        if to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    // The other side may be gone already.
    let _gone = (to.shutdown(Shutdown::Write), from.shutdown(Shutdown::Read));
}

/// It takes longer than a message may, at 1.6 MB a second or less. Each piece is in time.
#[test]
#[ignore = "starts processes; `cargo xtask raft` runs it"]
fn a_snapshot_to_a_slow_node_arrives() {
    let cluster = Cluster::new(2, "n");
    cluster.start(1);
    cluster.start(2);
    assert_eq!(ask(&cluster, "POST /begin", &cluster.members(&[1])).status, 204);
    // More than the log keeps, so that the new node needs a snapshot.
    let value = "v".repeat(5000);
    for number in 0..1000 {
        assert_eq!(ask(&cluster, &format!("PUT /keys/a{number:04}"), &value).status, 204);
    }
    let members = format!("{}2 {}\n", cluster.members(&[1]), slow(cluster.address(2).to_owned()));
    let begin = Instant::now();
    cluster.until("POST /groups/1/members", &members, |response| response.status == 204);
    println!("5 MB in {:?}", begin.elapsed());
    let status = request(cluster.address(2), "GET /status", None, "").expect("a response");
    let applied = status.body.lines().next().and_then(|line| line.rsplit(' ').next());
    let applied: u64 = applied.and_then(|applied| applied.parse().ok()).expect("a number");
    assert!(applied > 1000, "{}", status.body);
}
