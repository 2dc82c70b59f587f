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

/// A client that waits for a key sends nothing, so that nothing else shows that it is gone.
#[cfg(target_os = "linux")]
#[test]
fn the_system_asks_whether_silent_peers_are_there() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    assert_eq!(client.call("ping"), "PONG");
    let (server, peer) = (running.address.port(), client.stream.get_ref().local_addr().unwrap().port());
    let lines = std::fs::read_to_string("/proc/net/tcp").unwrap();
    // Number, own address, peer, state, queues, and the kind of the timer, of which 2 is keepalive.
    let timers: Vec<_> = lines
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|line| {
            line[1].ends_with(&format!(":{server:04X}")) && line[2].ends_with(&format!(":{peer:04X}"))
        })
        .map(|line| line[5].split(':').next().unwrap().to_owned())
        .collect();
    assert_eq!(timers, ["02"], "{lines}");
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
fn a_client_does_not_end_itself_unless_it_says_so() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    let id = client.call("client id").split_off(1);
    let address = client.stream.get_ref().local_addr().unwrap();
    for request in [
        format!("client kill id {id}"),
        format!("client kill addr {address}"),
        format!("client kill id {id} skipme yes"),
        "client kill type normal".to_owned(),
        "client kill user default type normal".to_owned(),
        "client kill maxage 1000 skipme no".to_owned(),
        "client kill type pubsub skipme no".to_owned(),
    ] {
        assert_eq!(client.call(&request), ":0", "{request}");
    }
    for (request, error) in [
        ("client kill id", "No such client"),
        ("client kill id 0", "client-id should be greater than 0"),
        ("client kill id x", "client-id should be greater than 0"),
        ("client kill user nobody", "No such user 'nobody'"),
        ("client kill type other", "Unknown client type 'other'"),
        ("client kill skipme maybe", "syntax error"),
        ("client kill id 1 skipme", "syntax error"),
        ("client kill maxage 0", "maxage should be greater than 0"),
        ("client kill maxage x", "maxage is not an integer or out of range"),
        ("client kill laddr 127.0.0.1:1", "LADDR is not supported"),
        ("client kill what 1", "syntax error"),
    ] {
        assert!(client.call(request).contains(error), "{request}");
    }
    for rest in ["skipme no", "type normal skipme no addr ADDRESS"] {
        let mut client = running.client();
        let id = client.call("client id").split_off(1);
        let address = client.stream.get_ref().local_addr().unwrap();
        let rest = rest.replace("ADDRESS", &address.to_string());
        assert_eq!(client.call(&format!("client kill id {id} {rest}")), ":1");
        assert_eq!(client.rest(), "");
    }
    // The old form does not leave it out.
    let mut other = running.client();
    other.call("ping");
    assert_eq!(client.call("client kill type normal"), ":1");
    assert_eq!(other.rest(), "");
    assert_eq!(client.call(&format!("client kill {address}")), "OK");
    assert_eq!(client.rest(), "");
}

#[test]
fn shutdown_ends_the_server() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    client.send(b"SHUTDOWN\r\n");
    assert_eq!(client.rest(), "");
    drop(running);
}

/// A certificate and its key, by openssl. `None` if there is none.
#[cfg(feature = "tls")]
fn certificate(directory: &std::path::Path) -> Option<Tls> {
    let (certificate, key) = (directory.join("cert.pem"), directory.join("key.pem"));
    let mut openssl = std::process::Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
    openssl.args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    let made = openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate).output().ok()?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(Tls { certificate, key })
}

#[cfg(feature = "tls")]
#[test]
fn tls_is_spoken_and_nothing_else() {
    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

    let directory = tempfile::tempdir().unwrap();
    let Some(tls) = certificate(directory.path()) else {
        println!("skipped: there is no openssl");
        return;
    };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&tls.certificate).unwrap()).unwrap();
    let running = Running::in_memory(Options { tls: Some(tls), ..options() });

    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let connection = ClientConnection::new(std::sync::Arc::new(config), name).unwrap();
    let stream = std::net::TcpStream::connect(running.address).unwrap();
    let mut client = Client { stream: BufReader::new(StreamOwned::new(connection, stream)) };
    let value = vec![b'x'; 3 << 20];
    assert_eq!(client.call_args(&[b"set", b"a", &value]), "OK");
    assert_eq!(client.call("get a").len(), value.len() + 2);
    assert_eq!(client.call("incr n"), ":1");

    let mut plain = running.client();
    plain.send(b"PING\r\n");
    assert!(!plain.rest().contains("PONG"));
}
