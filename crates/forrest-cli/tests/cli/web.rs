//! `web` on a store that another process has open.

use crate::harness::Place;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// What the server answers at a path of its API.
fn ask(url: &str, path: &str) -> String {
    let (address, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_store_of_another_process_is_served() {
    let place = Place::new();
    let missing = place.run(&["web", "nowhere"]);
    assert!(missing.code == Some(4) && missing.stderr.contains("nowhere"), "{missing:?}");
    place.run(&["--db", "forest", "set", "oak", "Quercus"]).ok();
    let mut writer = place
        .command(&["--db", "forest", "shell"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"get oak\n").unwrap();
    let mut line = String::new();
    BufReader::new(writer.stdout.take().unwrap()).read_line(&mut line).unwrap();

    let mut server =
        place.command(&["web", "forest"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let answer = ask(url.trim(), "/api/range?keyspace=default");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"key\":\"6f616b\""), "{answer}");
    let keyspaces = ask(url.trim(), "/api/keyspaces");
    assert!(keyspaces.contains("\"store\":\"forest\""), "{keyspaces}");

    let port = url.split_once("//127.0.0.1:").unwrap().1.split_once('/').unwrap().0;
    let second = place.run(&["web", "forest", "--port", port]);
    assert!(second.code == Some(4) && second.stderr.contains(&format!("127.0.0.1:{port}")), "{second:?}");

    assert!(Command::new("kill").args(["-INT", &server.id().to_string()]).status().unwrap().success());
    assert_eq!(server.wait().unwrap().code(), Some(0));
    drop(input);
    assert!(writer.wait().unwrap().success());
}
