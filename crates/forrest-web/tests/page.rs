//! The server, by requests over a real connection: what it returns, and what it refuses.

use forrest::{DEFAULT_KEYSPACE, Db};
use forrest_web::{Options, Web};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A server in a thread, which ends with this.
struct Server {
    address: SocketAddr,
    token: String,
    end: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Server {
    fn start(db: &Db, options: Options) -> Server {
        let web = Web::bind(db.clone(), &options).expect("a port is free");
        let url = web.url();
        let (address, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        let (address, token) = (address.parse().unwrap(), token.to_owned());
        let (end, ended) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(web.run(async { drop(ended.await) })).unwrap();
        });
        Server { address, token, end: Some(end), thread: Some(thread) }
    }

    /// Sends bytes, and returns the code, the head and the body.
    fn send(&self, request: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("it has a head");
        (head[9..12].parse().unwrap(), head.to_lowercase(), body.to_owned())
    }

    fn get(&self, path: &str, headers: &str) -> (u16, String, String) {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n",
            self.address
        ))
    }

    fn ask(&self, path: &str) -> (u16, Json) {
        let (code, _, body) = self.get(path, &format!("Authorization: Bearer {}\r\n", self.token));
        (code, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &Json) -> Vec<u8> {
    let hex = hex.as_str().expect("it is text");
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn only_the_page_gets_an_answer() {
    let db = Db::open("memory:").unwrap();
    db.set("secret key", "secret value").unwrap();
    let server = Server::start(&db, Options::new().name("trees"));
    let (own, token) = (server.address.to_string(), server.token.clone());
    let right = format!("Authorization: Bearer {token}\r\n");

    let (code, head, body) = server.get(&format!("/?token={token}"), "");
    assert_eq!(code, 200, "{head}");
    assert!(body.contains("<title>Forrest</title>") && !body.contains("secret"));
    for needed in
        ["content-security-policy: default-src 'none'", "nosniff", "no-referrer", "no-store", "same-origin"]
    {
        assert!(head.contains(needed), "{needed}: {head}");
    }
    for path in ["/app.js", "/style.css"] {
        assert_eq!(server.get(path, "").0, 200, "{path}");
    }

    // Without the token, with a wrong one, with a part of it.
    let part = &token[..31];
    for (path, headers) in [
        ("/".to_owned(), String::new()),
        ("/?token=".to_owned(), String::new()),
        (format!("/?token={part}"), String::new()),
        (format!("/?token={part}x"), String::new()),
        ("/api/keyspaces".to_owned(), String::new()),
        (format!("/api/keyspaces?token={token}"), String::new()),
        ("/api/keyspaces".to_owned(), format!("Authorization: Bearer {part}\r\n")),
        ("/api/keyspaces".to_owned(), format!("Cookie: token={token}\r\n")),
    ] {
        let (code, head, body) = server.get(&path, &headers);
        assert_eq!(code, 401, "{path} {headers}");
        assert!(!body.contains("default") && !head.contains("access-control"), "{head} {body}");
    }

    // A page of another site whose name leads here, and a browser that asks whether such a page may read responses.
    for host in ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "localhost"] {
        let request =
            format!("GET /api/keyspaces HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{right}\r\n");
        assert_eq!(server.send(&request).0, 403, "{host}");
    }
    let local = format!("localhost:{}", server.address.port());
    for (hosts, code) in
        [(format!("Host: {local}\r\n"), 200), (format!("Host: {own}\r\nHost: {own}\r\n"), 403)]
    {
        let request = format!("GET /api/keyspaces HTTP/1.1\r\n{hosts}Connection: close\r\n{right}\r\n");
        assert_eq!(server.send(&request).0, code, "{hosts}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let request = format!(
            "{method} /api/keyspaces HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\nOrigin: http://evil.example\r\n\
             Content-Length: 0\r\n{right}\r\n"
        );
        let (code, head, _) = server.send(&request);
        assert_eq!(code, 405, "{method}");
        assert!(!head.contains("access-control"), "{head}");
    }
    assert_eq!(server.ask("/other").0, 404);
    assert_eq!(db.count(..).unwrap(), 1);
}

#[test]
fn other_addresses_are_refused() {
    let db = Db::open("memory:").unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let error = Web::bind(db.clone(), &Options::new().address(address.parse().unwrap())).unwrap_err();
        assert!(
            error.to_string().contains("no loopback address") || error.to_string().contains("not a loopback")
        );
    }
}

/// Pages in both directions have all pairs, of any bytes, with every prefix.
#[test]
fn pages_are_the_range() {
    let db = Db::open("memory:").unwrap();
    let space = db.keyspace("näme & more").unwrap();
    let mut model = BTreeMap::new();
    for number in 0..700_u32 {
        let key = [&[number as u8 % 3 * 127][..], &number.to_be_bytes(), b"<b>\"\\\xFF"].concat();
        let value = vec![number as u8; number as usize % 300];
        space.set(&key, &value).unwrap();
        model.insert(key, value);
    }
    let server = Server::start(&db, Options::new());
    let name = "n%C3%A4me+%26+more";
    for (prefix, reverse) in
        [(vec![], false), (vec![], true), (vec![127], true), (vec![254], false), (vec![255], false)]
    {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let path = format!(
                "/api/range?keyspace={name}&prefix={}&limit=97&reverse={reverse}{after}",
                hex(&prefix)
            );
            let (code, range) = server.ask(&path);
            assert_eq!(code, 200, "{range}");
            for pair in range["pairs"].as_array().unwrap() {
                let (key, value) = (bytes(&pair["key"]), bytes(&pair["value"]));
                let whole = &model[&key];
                assert_eq!(
                    (value, &pair["bytes"]),
                    (whole[..whole.len().min(256)].to_vec(), &Json::from(whole.len()))
                );
                found.push(key);
            }
            if !range["more"].as_bool().unwrap() {
                break;
            }
            after = format!("&after={}", hex(found.last().unwrap()));
        }
        let mut expected: Vec<_> = model.keys().filter(|key| key.starts_with(&prefix)).cloned().collect();
        if reverse {
            expected.reverse();
        }
        assert_eq!(found, expected, "{prefix:?} {reverse}");
    }
    let (first, second) = (model.keys().next().unwrap(), model.keys().nth(1).unwrap());
    let (_, range) = server.ask(&format!("/api/range?keyspace={name}&limit=1&from={}", hex(second)));
    assert_eq!(bytes(&range["pairs"][0]["key"]), *second);
    let (code, value) = server.ask(&format!("/api/value?keyspace={name}&key={}", hex(first)));
    assert_eq!((code, bytes(&value["value"])), (200, model[first].clone()));

    let (_, all) = server.ask("/api/keyspaces");
    let names: Vec<_> =
        all["keyspaces"].as_array().unwrap().iter().map(|own| own["name"].as_str().unwrap()).collect();
    assert_eq!(names, [DEFAULT_KEYSPACE, "näme & more"]);
}

#[test]
fn wrong_requests_get_clear_errors_and_change_nothing() {
    let db = Db::open("memory:").unwrap();
    db.set("oak", vec![7; 100_000]).unwrap();
    let server = Server::start(&db, Options::new());
    for (path, code, text) in [
        ("/api/range", 400, "keyspace"),
        ("/api/range?keyspace=default&limit=0", 400, "limit is 0; choose 1 to 500"),
        ("/api/range?keyspace=default&limit=501", 400, "choose 1 to 500"),
        ("/api/range?keyspace=default&limit=x", 400, "limit"),
        ("/api/range?keyspace=default&prefix=0", 400, "prefix is not hexadecimal"),
        ("/api/range?keyspace=default&after=61&from=61", 400, "not both"),
        ("/api/range?keyspace=other", 404, "there is no keyspace \"other\""),
        ("/api/value?keyspace=default&key=00", 404, "no such key"),
        ("/api/value?keyspace=default", 400, "key"),
    ] {
        let (found, answer) = server.ask(path);
        assert_eq!(found, code, "{path}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(text), "{path}: {answer}");
    }
    assert_eq!(db.keyspaces().unwrap(), [DEFAULT_KEYSPACE]);
    // A long value is cut.
    let (_, value) = server.ask("/api/value?keyspace=default&key=6f616b");
    assert_eq!((bytes(&value["value"]).len(), &value["bytes"]), (64 << 10, &Json::from(100_000)));
    // A head that is too long.
    let long = format!("X-Long: {}\r\n", "x".repeat(1_000_000));
    let mut stream = TcpStream::connect(server.address).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n{long}\r\n", server.address);
    let mut answer = String::new();
    // The server may close before all is sent.
    let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert_eq!(server.ask("/api/keyspaces").0, 200);
}

/// The next page begins after a key of any length, and its value is shown.
#[test]
fn the_largest_keys_are_found() {
    let db = Db::open("memory:").unwrap();
    let keys: Vec<Vec<u8>> = (0..5).map(|last| [vec![0xFF; 65_534], vec![last]].concat()).collect();
    for key in &keys {
        db.set(key, "value").unwrap();
    }
    let server = Server::start(&db, Options::new());
    let ask = |path: &str, headers: &str| {
        let (code, _, body) =
            server.get(path, &format!("Authorization: Bearer {}\r\n{headers}", server.token));
        assert_eq!(code, 200, "{path}: {body:.100}");
        serde_json::from_str::<Json>(&body).unwrap()
    };
    for (name, reverse) in [("after", false), ("after", true), ("from", false)] {
        let (mut found, mut next) = (Vec::new(), String::new());
        loop {
            let prefix = format!("Forrest-Prefix: {}\r\n", hex(&keys[0][..65_534]));
            let path = format!("/api/range?keyspace=default&limit=2&reverse={reverse}");
            let range = ask(&path, &format!("{prefix}{next}"));
            let pairs = range["pairs"].as_array().unwrap();
            // The first of a page from a key is the key.
            let begin = usize::from(name == "from" && !found.is_empty());
            found.extend(pairs[begin..].iter().map(|pair| bytes(&pair["key"])));
            if !range["more"].as_bool().unwrap() {
                break;
            }
            next = format!("Forrest-{name}: {}\r\n", hex(found.last().unwrap()));
        }
        if reverse {
            found.reverse();
        }
        assert!(found == keys, "{name} {reverse}: {} keys", found.len());
    }
    let value = ask("/api/value?keyspace=default", &format!("Forrest-Key: {}\r\n", hex(&keys[4])));
    assert_eq!(bytes(&value["value"]), b"value");
    for name in ["Forrest-Prefix", "Forrest-After", "Forrest-From"] {
        let headers = format!("Authorization: Bearer {}\r\n{name}: 0g\r\n", server.token);
        let (code, _, body) = server.get("/api/range?keyspace=default", &headers);
        assert!(code == 400 && body.contains("not hexadecimal"), "{name}: {body}");
    }
}

/// Of large values only what is shown is read.
#[test]
fn a_range_reads_the_beginnings_of_values() {
    const VALUES: u64 = 40;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("forest");
    let db = Db::open(path.to_str().unwrap()).unwrap();
    for number in 0..VALUES {
        db.set(number.to_be_bytes(), vec![number as u8; 1 << 20]).unwrap();
    }
    db.compact().unwrap();
    let server = Server::start(&db, Options::new());
    let read = || db.metrics().unwrap().value_reads.bytes;
    for path in ["/api/range?keyspace=default", "/api/range?keyspace=default&reverse=true"] {
        let before = read();
        let (_, range) = server.ask(path);
        let pairs = range["pairs"].as_array().unwrap();
        assert_eq!((pairs.len() as u64, &range["more"]), (VALUES, &Json::from(false)));
        for pair in pairs {
            let number = *bytes(&pair["key"]).last().unwrap();
            assert_eq!((bytes(&pair["value"]), &pair["bytes"]), (vec![number; 256], &Json::from(1 << 20)));
        }
        assert!(read() - before < VALUES * (128 << 10), "{} bytes", read() - before);
    }
}

/// Clients that send half a request fill all places, and lose them after their time.
#[test]
fn clients_that_wait_are_cut_off() {
    let db = Db::open("memory:").unwrap();
    let server = Server::start(&db, Options::new().request_time(Duration::from_millis(300)));
    let mut idle: Vec<_> = (0..80)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost:").unwrap();
            stream
        })
        .collect();
    assert_eq!(server.ask("/api/keyspaces").0, 200);
    for stream in &mut idle {
        let mut rest = Vec::new();
        // It is closed, with or without an answer.
        let _ = stream.read_to_end(&mut rest);
    }
}

/// A process that reads sees what the writer changes, and the figures that it writes.
#[test]
fn a_store_that_another_opening_writes_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("forest");
    let file = path.join("metrics.prom");
    let writer = Db::open(path.to_str().unwrap()).unwrap();
    writer.set("oak", "Quercus").unwrap();
    let reader = Db::open_read_only(path.to_str().unwrap()).unwrap();
    let server = Server::start(&reader, Options::new().metrics_file(&file));
    let (_, figures) = server.ask("/api/figures");
    assert_eq!(
        (&figures["of"], &figures["figures"]["forrest_keys"]),
        (&Json::from("reader"), &Json::from(1.0))
    );
    std::fs::write(&file, "# TYPE x\nforrest_changes_total 17\nforrest_call_seconds_count{call=\"get\"} 3\n")
        .unwrap();
    let (_, figures) = server.ask("/api/figures");
    assert_eq!(figures["of"], "writer");
    assert_eq!(figures["figures"]["forrest_call_seconds_count{call=\"get\"}"], 3.0);
    writer.set("elm", "Ulmus").unwrap();
    let begin = Instant::now();
    while server.ask("/api/range?keyspace=default").1["pairs"].as_array().unwrap().len() < 2 {
        assert!(begin.elapsed() < Duration::from_secs(60), "the change is not seen");
    }
}
