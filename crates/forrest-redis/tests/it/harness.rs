//! A server that runs on a thread until it is dropped, and a client whose replies are text.

use forrest::{Db, Durability};
use forrest_redis::{Options, Server};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot::{Sender, channel};

/// No reply takes longer, or the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Options with an address of this machine.
pub(crate) fn options() -> Options {
    Options { listen: vec!["127.0.0.1:0".parse().unwrap()], ..Options::default() }
}

impl Running {
    pub(crate) fn new(db: &Db, options: Options) -> Running {
        let (stop, stopped) = channel();
        let (sender, receiver) = std::sync::mpsc::channel();
        // A server stays on the thread that made it.
        let db = db.clone();
        let thread = std::thread::spawn(move || {
            let server = Server::bind(&db, options).unwrap();
            // The store closes when the server does.
            drop(db);
            sender.send(server.addresses().first().copied()).unwrap();
            let stopped = async {
                let _ = stopped.await;
            };
            server.run(stopped).unwrap();
        });
        let address = receiver.recv().unwrap().unwrap_or_else(|| "127.0.0.1:0".parse().unwrap());
        Running { address, stop: Some(stop), thread: Some(thread) }
    }

    /// On a store in memory.
    pub(crate) fn in_memory(options: Options) -> Running {
        Running::new(&Db::open("memory:").unwrap(), options)
    }

    /// On a store on disk, opened as servers open it.
    pub(crate) fn on_disk(path: &std::path::Path, options: Options) -> Running {
        let builder = Db::builder().durability(Durability::Memory);
        Running::new(&builder.open(path.to_str().unwrap()).unwrap(), options)
    }

    pub(crate) fn client(&self) -> Client<TcpStream> {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Client { stream: BufReader::new(stream) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(std::thread::panicking() || ended.is_ok(), "the server panicked");
        }
    }
}

pub(crate) struct Client<S> {
    pub(crate) stream: BufReader<S>,
}

/// A request as clients send it.
pub(crate) fn encode(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// Sends the words of a line, and returns the reply.
    pub(crate) fn call(&mut self, line: &str) -> String {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.call_args(&args)
    }

    pub(crate) fn call_args(&mut self, args: &[&[u8]]) -> String {
        self.send(&encode(args));
        self.reply()
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).unwrap();
        assert!(line.ends_with(b"\r\n"), "the connection ended: {}", line.escape_ascii());
        line.truncate(line.len() - 2);
        String::from_utf8(line).unwrap()
    }

    /// A reply: `OK`, `(error) ...`, `(nil)`, `:7`, `"bytes"`, `[a, b]`, `{a: b}`, `~[a]`.
    pub(crate) fn reply(&mut self) -> String {
        let line = self.line();
        let (mark, rest) = line.split_at(1);
        let len: i64 = rest.parse().unwrap_or(-1);
        match mark {
            "+" => rest.to_owned(),
            "-" => format!("(error) {rest}"),
            ":" | "," | "#" | "(" => line,
            "_" => "(nil)".to_owned(),
            "$" | "*" if len < 0 => "(nil)".to_owned(),
            "$" | "=" => {
                let mut bytes = vec![0; len as usize + 2];
                self.stream.read_exact(&mut bytes).unwrap();
                format!("\"{}\"", bytes[..len as usize].escape_ascii())
            }
            "*" | "~" => {
                let items: Vec<String> = (0..len).map(|_| self.reply()).collect();
                let prefix = if mark == "~" { "~" } else { "" };
                format!("{prefix}[{}]", items.join(", "))
            }
            "%" => {
                let mut text = String::from("{");
                for at in 0..len {
                    let (key, value) = (self.reply(), self.reply());
                    let comma = if at > 0 { ", " } else { "" };
                    write!(text, "{comma}{key}: {value}").unwrap();
                }
                text + "}"
            }
            other => panic!("a reply that begins with {other:?}"),
        }
    }

    /// A line, or what comes before the server closes the connection.
    pub(crate) fn rest_of_line(&mut self) -> String {
        let mut line = Vec::new();
        let _ = self.stream.read_until(b'\n', &mut line);
        String::from_utf8_lossy(&line).into_owned()
    }

    /// All that comes until the server closes the connection. A reset counts as the end.
    pub(crate) fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = self.stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A number of `INFO`.
pub(crate) fn number(client: &mut Client<TcpStream>, name: &str) -> u64 {
    let text = client.call("info");
    let (_, rest) = text.split_once(&format!("{name}:")).unwrap_or_else(|| panic!("no {name} in {text}"));
    rest.split(|letter: char| !letter.is_ascii_digit()).next().unwrap().parse().unwrap()
}

/// Runs lines of `request => reply`.
pub(crate) fn script(running: &Running, lines: &str) {
    let mut client = running.client();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (request, expected) = line.split_once(" => ").unwrap_or_else(|| panic!("{line}"));
        assert_eq!(client.call(request), expected, "{request}");
    }
}

/// The same in memory and on disk.
pub(crate) fn everywhere(lines: &str) {
    script(&Running::in_memory(options()), lines);
    let directory = tempfile::tempdir().unwrap();
    script(&Running::on_disk(&directory.path().join("store"), options()), lines);
}
