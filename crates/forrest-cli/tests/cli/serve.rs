//! `serve`: a store for Redis's clients, which outlives the server.

use crate::harness::Place;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// A server on a store, and a connection to it.
fn serve(place: &Place, fsync: &str) -> (Child, BufReader<TcpStream>) {
    let arguments = ["--db", "forest", "serve", "--listen", "127.0.0.1:0", "--fsync", fsync];
    let mut server = place.command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening at ").unwrap_or_else(|| panic!("{line:?}"));
    let stream = TcpStream::connect(address).unwrap();
    (server, BufReader::new(stream))
}

fn call(client: &mut BufReader<TcpStream>, request: &str) -> String {
    client.get_mut().write_all(format!("{request}\r\n").as_bytes()).unwrap();
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    match line.trim().strip_prefix('$').and_then(|len| len.parse::<usize>().ok()) {
        None => line.trim().to_owned(),
        Some(len) => {
            let mut bytes = vec![0; len + 2];
            client.read_exact(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes[..len]).into_owned()
        }
    }
}

#[test]
fn what_was_replied_to_survives_kills_and_signals() {
    let place = Place::new();
    for (round, fsync) in ["everysec", "always", "no"].into_iter().enumerate() {
        let (mut server, mut client) = serve(&place, fsync);
        assert_eq!(call(&mut client, "GET count"), if round == 0 { "$-1".into() } else { round.to_string() });
        assert_eq!(call(&mut client, "INCR count"), format!(":{}", round + 1));
        assert_eq!(call(&mut client, "SADD set a b"), if round == 0 { ":2" } else { ":0" });
        server.kill().unwrap();
        server.wait().unwrap();
    }
    let (mut server, mut client) = serve(&place, "everysec");
    assert_eq!(call(&mut client, "GET count"), "3");
    let busy = place.run(&["--db", "forest", "serve", "--listen", "127.0.0.1:0"]);
    assert!(busy.code == Some(4) && busy.stderr.contains("open"), "{}", busy.stderr);
    assert!(place.shell(&format!("kill -TERM {}", server.id())).code == Some(0));
    assert!(server.wait().unwrap().success());
    // The connection ended with it.
    assert_eq!(client.read(&mut [0; 1]).unwrap_or(0), 0);
    place.run(&["--db", "forest", "verify"]).ok();
}

#[test]
fn bad_arguments_are_refused() {
    let place = Place::new();
    place.write("long.txt", vec![b'x'; 5000]);
    for (arguments, why) in [
        (&["serve", "--listen", "0.0.0.0:0"][..], "needs a password"),
        (&["serve", "--listen", "here"], "invalid"),
        (&["serve", "--fsync", "often"], "always, everysec or no"),
        (&["serve", "--tls-cert", "c.pem"], "--tls-key"),
        (&["serve", "--password-file", "none.txt"], "none.txt"),
        (&["serve", "--password-file", "long.txt"], "5000 bytes"),
        (&["-k", "mine", "serve"], "keyspace of its own"),
    ] {
        let ran = place.run(arguments);
        assert!(ran.code != Some(0) && ran.stderr.contains(why), "{arguments:?}: {}", ran.stderr);
    }
}
