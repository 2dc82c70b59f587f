//! Addresses, passwords and Unix sockets.

use crate::harness::{Client, Running, options};
use forrest::Db;
use forrest_redis::{Options, Server, Tls};
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

fn refused(options: Options) -> String {
    Server::bind(&Db::open("memory:").unwrap(), options).err().expect("it is refused").to_string()
}

#[test]
fn other_machines_need_more() {
    let open = Options { listen: vec!["0.0.0.0:0".parse().unwrap()], ..Options::default() };
    assert!(refused(open.clone()).contains("needs a password"));
    let known = Options { password: Some(b"secret".to_vec()), ..open };
    assert!(refused(known.clone()).contains("needs TLS"));
    assert!(Server::bind(&Db::open("memory:").unwrap(), Options { plain: true, ..known }).is_ok());
    let tls = Tls { certificate: "/no/such/file".into(), key: "/no/such/file".into() };
    let why = refused(Options { tls: Some(tls), ..options() });
    assert!(why.contains(if cfg!(feature = "tls") { "/no/such/file" } else { "feature `tls`" }), "{why}");
}

#[test]
fn an_address_in_use_is_named() {
    let running = Running::in_memory(options());
    let why = refused(Options { listen: vec![running.address], ..Options::default() });
    assert!(why.contains(&running.address.to_string()), "{why}");
}

#[test]
fn a_password_is_needed_for_everything() {
    let running = Running::in_memory(Options { password: Some(b"open sesame".to_vec()), ..options() });
    let mut client = running.client();
    let unknown = "(error) NOAUTH Authentication required.";
    for request in ["get a", "ping", "select 1", "config get *", "multi", "client list", "info"] {
        assert_eq!(client.call(request), unknown, "{request}");
    }
    assert!(client.call("hello 3").contains("NOAUTH"));
    let wrong = "(error) WRONGPASS invalid username-password pair or user is disabled.";
    for password in [&b"open"[..], b"", b"open sesame!", b"Open sesame"] {
        assert_eq!(client.call_args(&[b"auth", password]), wrong);
    }
    assert_eq!(client.call_args(&[b"auth", b"other", b"open sesame"]), wrong);
    assert_eq!(client.call("get a"), unknown);
    assert_eq!(client.call_args(&[b"auth", b"open sesame"]), "OK");
    assert_eq!(client.call("get a"), "(nil)");
    // Nobody reads it.
    assert!(!client.call("config get *").contains("sesame"));
    assert!(client.call("config set requirepass new").contains("--password-file"));
    assert!(client.call("debug protocol string").contains("only for tests"));

    let mut client = running.client();
    assert!(client.call_args(&[b"hello", b"3", b"auth", b"default", b"open sesame"]).contains("proto"));
    assert_eq!(client.call("reset"), "RESET");
    assert_eq!(client.call("get a"), unknown);

    // Before it is given, requests are small.
    for (request, why) in
        [("*11\r\n", "unauthenticated multibulk length"), ("*1\r\n$16385\r\n", "unauthenticated bulk length")]
    {
        let mut client = running.client();
        client.send(request.as_bytes());
        assert_eq!(client.rest(), format!("-ERR Protocol error: {why}\r\n"));
    }
}

#[test]
fn a_unix_socket_is_for_this_user() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("redis.sock");
    let at = Options { unix: Some(path.clone()), ..Options::default() };
    for _ in 0..2 {
        // One that a dead server has left is replaced.
        drop(std::os::unix::net::UnixListener::bind(&path));
        let running = Running::in_memory(at.clone());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
        let mut client = Client { stream: BufReader::new(UnixStream::connect(&path).unwrap()) };
        assert_eq!(client.call("ping"), "PONG");
        assert!(refused(at.clone()).contains("another server listens there"));
        drop(running);
        assert!(!path.exists());
    }
    std::fs::write(&path, "a file").unwrap();
    assert!(refused(at).contains("redis.sock"));
    assert_eq!(std::fs::read(&path).unwrap(), b"a file");
}

#[test]
fn clients_are_listed_and_ended() {
    let running = Running::in_memory(options());
    let (mut client, mut other) = (running.client(), running.client());
    assert_eq!(other.call("client setname other"), "OK");
    let id = other.call("client id");
    assert!(client.call("client list").contains("name=other"));
    assert_eq!(client.call(&format!("client kill id {}", &id[1..])), ":1");
    assert_eq!(other.rest(), "");
    assert!(!client.call("client list").contains("name=other"));
}

#[test]
fn shutdown_ends_the_server() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    client.send(b"SHUTDOWN\r\n");
    assert_eq!(client.rest(), "");
    drop(running);
}
