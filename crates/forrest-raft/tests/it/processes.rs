//! The example `node` as three and five real processes: `kill -9`, networks that are cut, nodes that join. Clients
//! speak HTTP with them, and what they saw must be linearizable. `cargo xtask raft` runs this, and has another program
//! check the histories. The moments are moments in time, so a seed repeats a run only nearly. `FORREST_RAFT_SECONDS`
//! sets the time of each test.

use crate::history::{self, Call, Record};
use forrest_base::random::Random;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{io, thread};

/// Calls of each group that a history should have. A busy machine may make fewer.
const CALLS_MIN: usize = 50;
/// A client gives a node this long.
const TIMEOUT: Duration = Duration::from_secs(2);
/// And the cluster this long. No harm lasts more than a few seconds.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

pub(crate) struct Response {
    pub(crate) status: u16,
    location: Option<String>,
    /// The key to go on with.
    pub(crate) next: Option<String>,
    pub(crate) body: String,
}

/// A request to an address, on a connection of its own.
pub(crate) fn request(
    address: &str,
    head: &str,
    session: Option<(u64, u64)>,
    body: &str,
) -> io::Result<Response> {
    let session = session.map(|(client, serial)| format!("x-client: {client}\r\nx-serial: {serial}\r\n"));
    request_with(address, head, &session.unwrap_or_default(), body)
}

/// The same with any headers.
pub(crate) fn request_with(address: &str, head: &str, headers: &str, body: &str) -> io::Result<Response> {
    let mut stream = TcpStream::connect_timeout(&address.parse().map_err(io::Error::other)?, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let length = body.len();
    write!(
        stream,
        "{head} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let status = head.get(9..12).and_then(|status| status.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    let length: usize = field("content-length:").and_then(|length| length.parse().ok()).unwrap_or(0);
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let (location, next) = (field("location: http://"), field("x-next:"));
    Ok(Response {
        status,
        location: location.map(str::to_owned),
        next: next.map(str::to_owned),
        body: body.to_owned(),
    })
}

/// The processes.
pub(crate) struct Cluster {
    directory: tempfile::TempDir,
    addresses: Vec<String>,
    /// The first key of the second range.
    split: &'static str,
    processes: Mutex<BTreeMap<u64, Child>>,
}

impl Cluster {
    pub(crate) fn new(nodes: usize, split: &'static str) -> Cluster {
        // Each has its port as long as all are held, so that they differ.
        let held: Vec<_> = (0..nodes).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let addresses = held.iter().map(|listener| listener.local_addr().expect("an address").to_string());
        let addresses = addresses.collect();
        let directory = tempfile::tempdir().expect("a directory");
        Cluster { directory, addresses, split, processes: Mutex::default() }
    }

    pub(crate) fn address(&self, id: u64) -> &str {
        &self.addresses[id as usize - 1]
    }

    /// Starts a process, and waits until it listens.
    pub(crate) fn start(&self, id: u64) {
        let mut process = Command::new(program())
            .args([&id.to_string(), self.address(id)])
            .arg(self.directory.path().join(id.to_string()))
            .arg(self.split)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("it prints a line");
        assert!(line.contains("listens"), "node {id}: {line:?}");
        self.processes.lock().expect("no panic").insert(id, process);
    }

    /// `kill -9`.
    fn kill(&self, id: u64) {
        let process = self.processes.lock().expect("no panic").remove(&id);
        if let Some(mut process) = process {
            process.kill().expect("it runs");
            process.wait().expect("it has ended");
        }
    }

    pub(crate) fn members(&self, ids: &[u64]) -> String {
        ids.iter().map(|id| format!("{id} {}\n", self.address(*id))).collect()
    }

    fn cut(&self, id: u64, others: &[u64]) {
        let ids: Vec<String> = others.iter().map(u64::to_string).collect();
        drop(request(self.address(id), "POST /cut", None, &ids.join(" ")));
    }

    /// Waits until a request to any node succeeds.
    pub(crate) fn until(&self, head: &str, body: &str, holds: impl Fn(&Response) -> bool) -> Response {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(60) {
            for address in &self.addresses {
                match request(address, head, None, body) {
                    Ok(response) if holds(&response) => return response,
                    _ => thread::yield_now(),
                }
            }
        }
        panic!("{head}: not within a minute");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let ids: Vec<u64> =
            self.processes.lock().map(|all| all.keys().copied().collect()).unwrap_or_default();
        ids.into_iter().for_each(|id| self.kill(id));
    }
}

/// The example, which cargo builds beside the tests.
fn program() -> PathBuf {
    let own = std::env::current_exe().expect("the path of this program");
    let directory = own.ancestors().nth(2).expect("it is in target/PROFILE/deps");
    let program = directory.join("examples/node");
    assert!(program.exists(), "{}: cargo build -p forrest-raft --example node", program.display());
    program
}

/// What all clients share.
struct Shared<'c> {
    cluster: &'c Cluster,
    begin: Instant,
    is_over: AtomicBool,
    open: AtomicU64,
    histories: Mutex<BTreeMap<char, Vec<Record>>>,
}

struct Client<'c> {
    id: u64,
    group: char,
    serial: u64,
    /// The address that is asked first.
    guess: String,
    random: Random,
    shared: &'c Shared<'c>,
    known: Option<(String, Option<String>)>,
}

impl Client<'_> {
    fn now(&self) -> u64 {
        self.shared.begin.elapsed().as_nanos() as u64
    }

    fn key(&mut self, below: u64) -> String {
        format!("{}{}", self.group, self.random.below(below))
    }

    fn note(&self, begin: u64, end: Option<u64>, calls: Vec<Call>) {
        let record = Record { client: self.id, begin, end, calls };
        self.shared.histories.lock().expect("no panic").entry(self.group).or_default().push(record);
    }

    fn elsewhere(&mut self) {
        let at = self.random.index(self.shared.cluster.addresses.len());
        self.guess = self.shared.cluster.addresses[at].clone();
        thread::park_timeout(Duration::from_millis(20));
    }

    /// A request to the leader, as far as it is known. `None` if nobody knows what came of it.
    fn once(&mut self, head: &str, session: Option<(u64, u64)>, body: &str) -> Option<Response> {
        match request(&self.guess, head, session, body) {
            Ok(response) if response.status == 307 => {
                let location = response.location.unwrap_or_default();
                self.guess = location.split('/').next().unwrap_or_default().to_owned();
                None
            }
            Ok(response) if response.status < 500 => Some(response),
            _ => {
                self.elsewhere();
                None
            }
        }
    }

    /// Sends a change with a session until there is a response.
    fn repeat(&mut self, head: &str, body: &str) -> Response {
        let (session, first) = (Some((self.id, self.serial)), Instant::now());
        loop {
            if let Some(response) = self.once(head, session, body) {
                return response;
            }
            self.check_time(first, head);
        }
    }

    /// Fails if the cluster has had its time, with what all clients saw.
    fn check_time(&self, first: Instant, head: &str) {
        if first.elapsed() >= ANSWERED_WITHIN {
            let histories = self.shared.histories.lock().expect("no panic");
            panic!("client {}: {head}: no response in {ANSWERED_WITHIN:?}: {histories:#?}", self.id);
        }
    }

    fn run(&mut self) {
        while !self.shared.is_over.load(Relaxed) {
            self.serial += 1;
            match self.random.below(10) {
                0..3 => self.set(),
                3 => self.delete(),
                4 => self.delete_range(),
                5 | 6 => self.swap(),
                7 | 8 => self.get(),
                _ => self.range(),
            }
            thread::park_timeout(Duration::from_millis(self.random.below(40)));
        }
    }

    fn set(&mut self) {
        let (key, value) = (self.key(4), format!("{}.{}", self.id, self.serial));
        let (head, begin) = (format!("PUT /keys/{key}"), self.now());
        let is_open = if self.random.below(5) == 0 && self.shared.open.load(Relaxed) < 4 {
            self.once(&head, None, &value).is_none()
        } else {
            assert_eq!(self.repeat(&head, &value).status, 204);
            false
        };
        self.shared.open.fetch_add(u64::from(is_open), Relaxed);
        self.note(begin, (!is_open).then(|| self.now()), vec![Call::Set(key, value)]);
    }

    fn delete(&mut self) {
        let (key, begin) = (self.key(4), self.now());
        assert_eq!(self.repeat(&format!("DELETE /keys/{key}"), "").status, 204);
        self.note(begin, Some(self.now()), vec![Call::Delete(key)]);
    }

    fn delete_range(&mut self) {
        let (start, end, begin) = (self.key(2), self.key(4), self.now());
        if start < end {
            assert_eq!(self.repeat(&format!("DELETE /range?start={start}&end={end}"), "").status, 204);
            self.note(begin, Some(self.now()), vec![Call::DeleteRange(start, end)]);
        }
    }

    fn swap(&mut self) {
        let Some((key, expected)) = self.known.take() else { return };
        let (value, begin) = (format!("{}.{}", self.id, self.serial), self.now());
        let condition = expected.as_ref().map_or("absent".to_owned(), |expected| format!("if={expected}"));
        let response = self.repeat(&format!("PUT /keys/{key}?{condition}"), &value);
        let calls = match response.status {
            204 => vec![Call::Get(key.clone(), expected), Call::Set(key, value)],
            409 => {
                let found = (!response.body.is_empty()).then_some(response.body);
                vec![Call::Get(key, found)]
            }
            other => panic!("{other}: {}", response.body),
        };
        self.note(begin, Some(self.now()), calls);
    }

    /// A read, which may be repeated: each time is another one.
    fn read(&mut self, head: &str) -> (u64, Response) {
        let first = Instant::now();
        loop {
            let begin = self.now();
            if let Some(response) = self.once(head, None, "") {
                return (begin, response);
            }
            self.check_time(first, head);
        }
    }

    fn get(&mut self) {
        let key = self.key(4);
        let (begin, response) = self.read(&format!("GET /keys/{key}"));
        let value = (response.status == 200).then_some(response.body);
        self.known = Some((key.clone(), value.clone()));
        self.note(begin, Some(self.now()), vec![Call::Get(key, value)]);
    }

    fn range(&mut self) {
        let (start, end) = (self.key(2), self.key(5));
        if start >= end {
            return;
        }
        let (begin, response) = self.read(&format!("GET /range?start={start}&end={end}"));
        let pairs = response.body.lines().map(|line| line.split_once('\t').expect("a key and a value"));
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        self.note(begin, Some(self.now()), vec![Call::Range(start, end, pairs)]);
    }
}

/// Kills, cuts and heals for a time, and longer if clients have seen little by then.
fn harm(shared: &Shared, nodes: u64, seed: u64, least: Duration) -> BTreeMap<&'static str, u64> {
    let (mut random, begin, mut counts) = (Random(seed), Instant::now(), BTreeMap::new());
    let (all, cluster) = ((1..=nodes).collect::<Vec<u64>>(), shared.cluster);
    let has_calls = || {
        let histories = shared.histories.lock().expect("no panic");
        histories.len() == 2 && histories.values().all(|records| records.len() >= CALLS_MIN)
    };
    while begin.elapsed() < least || !has_calls() && begin.elapsed() < 4 * least {
        let id = 1 + random.below(nodes);
        let what = match random.below(6) {
            0 | 1 => {
                cluster.kill(id);
                thread::park_timeout(Duration::from_millis(random.below(800)));
                cluster.start(id);
                "kills"
            }
            2 => {
                cluster.cut(id, &all);
                thread::park_timeout(Duration::from_millis(300 + random.below(1200)));
                cluster.cut(id, &[]);
                "cut-off nodes"
            }
            3 => {
                // Two sides; sometimes a node dies meanwhile, and comes back on its side or between both.
                let (side, rest): (Vec<u64>, Vec<u64>) = all.iter().partition(|_| random.below(2) == 0);
                side.iter().for_each(|id| cluster.cut(*id, &rest));
                thread::park_timeout(Duration::from_millis(300 + random.below(1000)));
                if random.below(2) == 0 {
                    cluster.kill(id);
                    cluster.start(id);
                    thread::park_timeout(Duration::from_millis(random.below(800)));
                }
                side.iter().for_each(|id| cluster.cut(*id, &[]));
                "partitions"
            }
            4 => {
                // These two do not reach each other, and the others reach both.
                let other = 1 + (id + random.below(nodes - 1)) % nodes;
                cluster.cut(id, &[other]);
                thread::park_timeout(Duration::from_millis(300 + random.below(1200)));
                cluster.cut(id, &[]);
                "cut links"
            }
            _ => {
                all.iter().for_each(|id| cluster.kill(*id));
                all.iter().for_each(|id| cluster.start(*id));
                "kills of all"
            }
        };
        *counts.entry(what).or_default() += 1;
        thread::park_timeout(Duration::from_millis(random.below(700)));
    }
    counts
}

fn run(nodes: u64, begin_with: u64, least: Duration, seed: u64) {
    let cluster = Cluster::new(nodes as usize, "n");
    let ids: Vec<u64> = (1..=nodes).collect();
    ids.iter().for_each(|id| cluster.start(*id));
    let first = cluster.members(&ids[..begin_with as usize]);
    let begun = request(cluster.address(1), "POST /begin", None, &first).expect("a response");
    assert_eq!(begun.status, 204, "{}", begun.body);
    let shared = Shared {
        cluster: &cluster,
        begin: Instant::now(),
        is_over: AtomicBool::new(false),
        open: AtomicU64::new(0),
        histories: Mutex::default(),
    };
    thread::scope(|scope| {
        for id in 1..=4 {
            let (guess, random) = (cluster.address(1).to_owned(), Random(seed * 10 + id));
            let group = if id % 2 == 0 { 'a' } else { 'n' };
            let shared = &shared;
            scope.spawn(move || Client { id, group, serial: 0, guess, random, shared, known: None }.run());
        }
        if begin_with < nodes {
            // Some join while clients write. Each group is asked at its leader.
            for group in [1, 2] {
                let head = format!("POST /groups/{group}/members");
                cluster.until(&head, &cluster.members(&ids), |response| response.status == 204);
            }
        }
        let counts = harm(&shared, nodes, seed, least);
        ids.iter().for_each(|id| cluster.cut(*id, &[]));
        shared.is_over.store(true, Relaxed);
        println!("{nodes} processes, seed {seed}: {counts:?}");
    });
    for (group, records) in &*shared.histories.lock().expect("no panic") {
        history::export(&format!("raft-processes-{nodes}-{seed}-{group}"), records);
        assert!(history::is_linearizable(records), "{nodes} processes, seed {seed}: {records:#?}");
        println!("{nodes} processes, seed {seed}, group {group}: {} calls", records.len());
    }
    // All nodes come to have applied the same.
    let applied = || -> Option<Vec<Vec<String>>> {
        let status = |id: &u64| request(cluster.address(*id), "GET /status", None, "").ok();
        let last = |line: &str| line.rsplit(' ').next().unwrap_or_default().to_owned();
        ids.iter().map(|id| Some(status(id)?.body.lines().map(last).collect())).collect()
    };
    let begin = Instant::now();
    while !applied().is_some_and(|all| all.windows(2).all(|two| two[0] == two[1])) {
        assert!(begin.elapsed() < Duration::from_secs(60), "the nodes do not agree: {:?}", applied());
        thread::park_timeout(Duration::from_millis(50));
    }
}

fn seed() -> u64 {
    let seed = forrest_testing::number("FORREST_RAFT_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("FORREST_RAFT_SEED={seed}");
    seed
}

/// How long a cluster is harmed.
fn time() -> Duration {
    Duration::from_secs(forrest_testing::number("FORREST_RAFT_SECONDS").unwrap_or(12))
}

#[test]
#[ignore = "starts processes; `cargo xtask raft` runs it"]
fn three_processes() {
    run(3, 3, time(), seed());
}

#[test]
#[ignore = "starts processes; `cargo xtask raft` runs it"]
fn five_processes() {
    run(5, 3, time(), seed());
}
