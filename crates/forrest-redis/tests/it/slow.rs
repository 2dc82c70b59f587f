//! The log of slow commands. A limit of no microseconds makes every command slow.

use crate::harness::{Client, Running, options, script};
use forrest_redis::Options;
use std::net::TcpStream;

/// The arguments of the newest entries, from the newest on. Neither looking at them nor what turns the log off for
/// that is logged.
fn logged(client: &mut Client<TcpStream>, count: usize) -> Vec<String> {
    client.call("config set slowlog-log-slower-than -1");
    let text = client.call(&format!("slowlog get {count}"));
    client.call("config set slowlog-log-slower-than 0");
    // [[:7, :1700000000, :3, ["ping"], "127.0.0.1:1234", ""], ...]
    let entries = text.split("[:").skip(1).map(|entry| {
        let (_, args) = entry.split_once(", [").unwrap();
        args.split_once(']').unwrap().0.replace("\", \"", " ").trim_matches('"').to_owned()
    });
    entries.collect()
}

#[test]
fn slow_commands_are_listed() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    assert_eq!(client.call("config get slowlog-max-len"), "[\"slowlog-max-len\", \"128\"]");
    assert_eq!(client.call("config get slowlog-log*"), "[\"slowlog-log-slower-than\", \"10000\"]");
    client.call("client setname ash");
    client.call("slowlog reset");
    client.call("config set slowlog-log-slower-than 0");
    client.call("set a b");
    client.call("get list x");
    client.call("rpush a b");
    let newest = client.call("slowlog get 1");
    assert!(newest.contains(", [\"rpush\", \"a\", \"b\"], \"127.0.0.1:"), "{newest}");
    assert!(newest.ends_with(", \"ash\"]]"), "{newest}");
    // A request that is not executed is not logged, and one that fails is.
    let all = logged(&mut client, 9);
    assert_eq!(all[..4], ["slowlog get 1", "rpush a b", "set a b", "config set slowlog-log-slower-than 0"]);
    // Its number is not used again.
    let id = |text: &str| text[3..text.find(',').unwrap()].parse::<u64>().unwrap();
    let before = id(&client.call("slowlog get 1"));
    client.call("slowlog reset");
    assert_eq!(client.call("slowlog len"), ":1");
    assert!(id(&client.call("slowlog get 1")) > before);

    client.call("config set slowlog-max-len 3");
    assert_eq!(client.call("slowlog len"), ":3");
    (0..9).for_each(|_| drop(client.call("ping")));
    assert_eq!(client.call("slowlog len"), ":3");
    client.call("config set slowlog-max-len 0");
    assert_eq!(client.call("slowlog len"), ":0");
    assert_eq!(client.call("slowlog get -1"), "[]");
}

#[test]
fn arguments_are_cut_and_passwords_left_out() {
    let running = Running::in_memory(Options { password: Some(b"secret".to_vec()), ..options() });
    let mut client = running.client();
    client.call("auth secret");
    client.call("config set slowlog-log-slower-than 0");
    client.call("auth default secret");
    client.call("auth wrong");
    client.call("hello 3 auth default secret");
    client.call("hello 2");
    client.call("config set requirepass secret");
    client.call(&format!("sadd s{}", " a".repeat(31)));
    client.call(&format!("get {}", "k".repeat(130)));
    let sadd = format!("sadd s{} ... (2 more arguments)", " a".repeat(29));
    let get = format!("get {}... (2 more bytes)", "k".repeat(128));
    assert_eq!(
        logged(&mut client, 7),
        [
            &get,
            &sadd,
            "config set requirepass (redacted)",
            "hello 2",
            "hello 3 auth (redacted) (redacted)",
            "auth (redacted)",
            "auth (redacted) (redacted)",
        ]
    );
    assert!(!client.call("slowlog get -1").contains("secret"));
}

/// Commands of a transaction are logged each by itself, and one that waits when it is over.
#[test]
fn commands_are_logged_when_they_are_executed() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    let mut waiting = running.client();
    client.call("config set slowlog-log-slower-than 0");
    waiting.send(b"BLPOP q 0\r\n");
    while !client.call("info clients").contains("blocked_clients:1") {}
    client.call("multi");
    client.call("set a b");
    client.call("rpush q x");
    assert_eq!(client.call("exec"), "[OK, :1]");
    assert_eq!(waiting.reply(), "[\"q\", \"x\"]");
    assert_eq!(logged(&mut client, 4), ["BLPOP q 0", "rpush q x", "set a b", "multi"]);
}

/// What comes together is measured one by one.
#[test]
fn a_slow_command_makes_no_other_slow() {
    let running = Running::in_memory(Options { debug: true, ..options() });
    let mut client = running.client();
    client.call("config set slowlog-log-slower-than 200000");
    client.send(b"PING\r\nDEBUG SLEEP 0.25\r\nPING\r\nCONFIG SET slowlog-log-slower-than -1\r\n");
    client.send(b"DEBUG SLEEP 0.25\r\nCONFIG SET slowlog-log-slower-than 200000\r\nPING\r\n");
    (0..7).for_each(|_| drop(client.reply()));
    let log = client.call("slowlog get -1");
    assert_eq!((log.matches("DEBUG").count(), client.call("slowlog len").as_str()), (1, ":1"), "{log}");
}

#[test]
fn subcommands_and_their_errors() {
    script(
        &Running::in_memory(options()),
        "slowlog foo => (error) ERR unknown subcommand 'foo'. Try SLOWLOG HELP.
        slowlog len 1 => (error) ERR wrong number of arguments for 'slowlog|len' command
        slowlog get a => (error) ERR count should be greater than or equal to -1
        slowlog get -2 => (error) ERR count should be greater than or equal to -1
        slowlog => (error) ERR wrong number of arguments for 'slowlog' command
        config set slowlog-max-len -1 => (error) ERR CONFIG SET failed (possibly related to argument \
         'slowlog-max-len') - argument must be between 0 and 9223372036854775807 inclusive
        config set slowlog-max-len 7 timeout x => (error) ERR CONFIG SET failed (possibly related to argument \
         'timeout') - argument couldn't be parsed into an integer
        config get slowlog-max-len => [\"slowlog-max-len\", \"128\"]
        slowlog reset => OK
        latency latest => []
        latency history command => []
        latency history => (error) ERR wrong number of arguments for 'latency|history' command
        latency reset => :0
        latency reset a b => :0
        latency histogram set => []
        latency graph a => (error) ERR No samples available for event 'a'
        latency foo => (error) ERR unknown subcommand 'foo'. Try LATENCY HELP.
        config get latency-monitor* => [\"latency-monitor-threshold\", \"0\"]
        config set latency-monitor-threshold 0 => OK
        config set latency-monitor-threshold 10 => (error) ERR CONFIG SET failed (possibly related to argument \
         'latency-monitor-threshold') - can't set immutable config",
    );
}
