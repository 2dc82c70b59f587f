//! Commands of every type, in both versions of the protocol, in memory and on disk.

use crate::harness::{Running, encode, everywhere, options};
use std::thread;

#[test]
fn strings_and_counters() {
    everywhere(
        "set a 1 => OK
        get a => \"1\"
        incr a => :2
        decrby a 5 => :-3
        incrbyfloat a 0.5 => \"-2.5\"
        append a x => :5
        strlen a => :5
        getrange a -2 -1 => \"5x\"
        getrange a 0 -100 => \"-\"
        getrange a -100 -100 => \"-\"
        getrange a -100 -101 => \"\"
        getrange a 1 -100 => \"\"
        getrange a 5 9 => \"\"
        getrange none 0 -1 => \"\"
        substr a 2 100 => \".5x\"
        set t 1 pxat 33177117420500 => OK
        expiretime t => :33177117421
        pexpiretime t => :33177117420500
        setrange b 2 z => :3
        get b => \"\\x00\\x00z\"
        mset x 1 y 2 x 3 => OK
        mget x y none => [\"3\", \"2\", (nil)]
        set x 9 nx => (nil)
        set x 9 xx get => \"3\"
        msetnx z 1 x 1 => :0
        exists z => :0
        getdel x => \"9\"
        get x => (nil)
        setbit c 7 1 => :0
        get c => \"\\x01\"
        bitcount c => :1
        incr y x => (error) ERR wrong number of arguments for 'incr' command
        incr b => (error) ERR value is not an integer or out of range
        lpush list 1 => :1
        get list => (error) WRONGTYPE Operation against a key holding the wrong kind of value
        nonesuch 1 => (error) ERR unknown command 'nonesuch', with args beginning with: '1'
        xadd s * a 1 => (error) ERR 'xadd' is not supported: there are no streams",
    );
}

#[test]
fn hashes_sets_and_lists() {
    everywhere(
        "hset h a 1 b 2 a 3 => :2
        hgetall h => [\"a\", \"3\", \"b\", \"2\"]
        hlen h => :2
        hincrby h a 4 => :7
        hincrbyfloat h a 0.5 => \"7.5\"
        hmget h a none b => [\"7.5\", (nil), \"2\"]
        hdel h a a none => :1
        hdel h b => :1
        exists h => :0
        sadd s c a b a => :3
        smembers s => [\"a\", \"b\", \"c\"]
        sismember s b => :1
        sadd t b d => :2
        sinter s t => [\"b\"]
        sunion s t => [\"a\", \"b\", \"c\", \"d\"]
        sdiffstore u s t => :2
        smembers u => [\"a\", \"c\"]
        smove s t a => :1
        scard t => :3
        srem s b c => :2
        type s => none
        rpush l a b c => :3
        lpush l z y => :5
        lrange l 0 -1 => [\"y\", \"z\", \"a\", \"b\", \"c\"]
        lindex l -1 => \"c\"
        lset l 1 Z => OK
        linsert l before a new => :6
        lrem l 0 new => :1
        ltrim l 1 3 => OK
        lrange l 0 -1 => [\"Z\", \"a\", \"b\"]
        lmove l m left right => \"Z\"
        rpoplpush l l => \"b\"
        lpop l 5 => [\"b\", \"a\"]
        exists l => :0
        rpop m => \"Z\"
        rpop m => (nil)",
    );
}

#[test]
fn sorted_sets() {
    everywhere(
        "zadd z 1 a 2 b 3 c 2 b => :3
        zadd z ch xx gt 5 b 1 d => :1
        zrange z 0 -1 withscores => [\"a\", \"1\", \"c\", \"3\", \"b\", \"5\"]
        zadd z incr 1.5 a => \"2.5\"
        zscore z a => \"2.5\"
        zrank z b => :2
        zrevrank z b withscore => [:0, \"5\"]
        zrangebyscore z (2.5 +inf => [\"c\", \"b\"]
        zrange z 5 2 byscore rev limit 1 1 => [\"c\"]
        zcount z -inf 3 => :2
        zadd w -1.5 m -inf l inf n 0 o => :4
        zrange w 0 -1 withscores => [\"l\", \"-inf\", \"m\", \"-1.5\", \"o\", \"0\", \"n\", \"inf\"]
        zunionstore u 2 z w weights 1 2 aggregate max => :7
        zrange u 0 2 => [\"l\", \"m\", \"o\"]
        zpopmin u => [\"l\", \"-inf\"]
        zremrangebyscore u -inf 2 => :2
        zremrangebyrank u 0 1 => :2
        zcard u => :2
        zadd x 0 a 0 b 0 c => :3
        zrangebylex x [b + => [\"b\", \"c\"]
        zlexcount x - (c => :2
        zinter 2 x z withscores => [\"a\", \"2.5\", \"c\", \"3\", \"b\", \"5\"]
        zdiff 2 w x => [\"l\", \"m\", \"o\", \"n\"]
        zrem x a b c => :3
        exists x => :0
        zadd z nan a => (error) ERR value is not a valid float",
    );
}

#[test]
fn keys_of_any_type() {
    everywhere(
        "set a 1 ex 100 => OK
        ttl a => :100
        persist a => :1
        ttl a => :-1
        expire a 50 gt => :0
        expire a 50 => :1
        rename a b => OK
        ttl b => :50
        hset h f v => :1
        copy h i => :1
        del h => :1
        hget i f => \"v\"
        copy i b => :0
        copy i b replace => :1
        type b => hash
        ttl b => :-1
        move b 3 => :1
        exists b => :0
        select 3 => OK
        hget b f => \"v\"
        swapdb 3 0 => OK
        keys * => [\"i\"]
        dbsize => :1
        flushdb => OK
        select 0 => OK
        dbsize => :1
        pexpire b -1 => :1
        dbsize => :0
        mset user:1 a user:2 b other c => OK
        keys user:* => [\"user:1\", \"user:2\"]
        keys ?ther => [\"other\"]
        scan 0 match user:* => [\"0\", [\"user:1\", \"user:2\"]]
        object encoding other => \"embstr\"
        unlink user:1 user:1 other => :2
        randomkey => \"user:2\"
        flushall => OK
        randomkey => (nil)
        select 16 => (error) ERR DB index is out of range",
    );
}

#[test]
fn ranges_and_snapshots() {
    everywhere(
        "mset a 1 b 2 c 3 d 4 => OK
        sadd e x => :1
        forrest.range [b (d => [\"b\", \"2\", \"c\", \"3\"]
        forrest.range - + rev limit 2 => [\"e\", (nil), \"d\", \"4\"]
        forrest.range (a + keys => [\"b\", \"c\", \"d\", \"e\"]
        forrest.snapshot create => :1
        forrest.delrange [b + => :4
        keys * => [\"a\"]
        forrest.range - + keys snapshot 1 => [\"a\", \"b\", \"c\", \"d\", \"e\"]
        forrest.range [c + limit 1 snapshot 1 => [\"c\", \"3\"]
        forrest.snapshot list => [:1]
        forrest.snapshot drop 1 => :1
        forrest.range - + snapshot 1 => (error) ERR no such snapshot, or it was too old
        scard e => :0
        forrest.range b + => (error) ERR min or max not valid string range item",
    );
}

#[test]
fn version_3_has_types() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    assert!(client.call("hello 3").contains("\"proto\": :3"));
    assert_eq!(client.call("get none"), "(nil)");
    client.call("hset h f v");
    assert_eq!(client.call("hgetall h"), "{\"f\": \"v\"}");
    client.call("zadd z 1.5 a");
    assert_eq!(client.call("zscore z a"), ",1.5");
    assert_eq!(client.call("zrange z 0 -1 withscores"), "[[\"a\", ,1.5]]");
    client.call("sadd s a");
    assert_eq!(client.call("smembers s"), "~[\"a\"]");
    assert_eq!(client.call("hello 4"), "(error) NOPROTO unsupported protocol version");
    assert_eq!(client.call("reset"), "RESET");
    assert_eq!(client.call("zscore z a"), "\"1.5\"");
}

#[test]
fn transactions_see_themselves_and_happen_at_once() {
    let directory = tempfile::tempdir().unwrap();
    for running in
        [Running::in_memory(options()), Running::on_disk(&directory.path().join("store"), options())]
    {
        let (mut client, mut other) = (running.client(), running.client());
        client.call("set n 1");
        assert_eq!(client.call("watch n"), "OK");
        assert_eq!(client.call("multi"), "OK");
        for request in
            ["incr n", "lpush n x", "get n", "sadd s a b", "scard s", "del s", "exists s", "keys *"]
        {
            assert_eq!(client.call(request), "QUEUED");
        }
        assert_eq!(other.call("get n"), "\"1\"");
        let wrong = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
        let expected = format!("[:2, {wrong}, \"2\", :2, :2, :1, :0, [\"n\"]]");
        assert_eq!(client.call("exec"), expected);

        client.call("watch n");
        other.call("incr n");
        client.call("multi");
        client.call("set n lost");
        assert_eq!(client.call("exec"), "(nil)");
        assert_eq!(client.call("get n"), "\"3\"");

        client.call("multi");
        assert!(client.call("nonesuch").starts_with("(error) ERR unknown"));
        assert!(client.call("exec").starts_with("(error) EXECABORT"));
        client.call("multi");
        client.call("flushall");
        assert_eq!(client.call("discard"), "OK");
        assert_eq!(client.call("exec"), "(error) ERR EXEC without MULTI");
        assert_eq!(client.call("dbsize"), ":1");
    }
}

#[test]
fn keys_expire_by_themselves() {
    let running = Running::in_memory(options());
    let (mut client, mut watcher) = (running.client(), running.client());
    watcher.call("psetex w 1 v");
    for number in 0..1000 {
        assert_eq!(client.call(&format!("set {number} v px 1")), "OK");
    }
    client.call("sadd set a b");
    client.call("pexpire set 1");
    client.call("set stays v px 1000000");
    client.call("persist stays");
    // The server removes them, although nobody asks for one of them.
    while client.call("dbsize") != ":1" {
        thread::yield_now();
    }
    assert_eq!(client.call("keys *"), "[\"stays\"]");
    assert!(client.call("info stats").contains("expired_keys:1002"));
}

#[test]
fn an_iteration_returns_every_key_once() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    for number in 0..1000 {
        client.send(&encode(&[b"set", format!("key:{number}").as_bytes(), b"v"]));
        client.send(&encode(&[b"hset", b"hash", format!("{number}").as_bytes(), b"v"]));
    }
    (0..2000).for_each(|_| assert_ne!(client.reply(), ""));
    for (request, expected) in [("scan {} count 7", 1001), ("hscan hash {} count 7 novalues", 1000)] {
        let (mut cursor, mut seen) = ("0".to_owned(), Vec::new());
        loop {
            let reply = client.call(&request.replace("{}", &cursor));
            let (next, rest) = reply[2..].split_once("\", [").unwrap();
            let items = rest.trim_end_matches("]]");
            seen.extend(items.split(", ").filter(|item| !item.is_empty()).map(str::to_owned));
            // Keys that come and go before the cursor change nothing.
            client.call("set aaa v");
            client.call("del aaa");
            if next == "0" {
                break;
            }
            cursor = next.to_owned();
        }
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!((seen.len(), count), (expected, expected), "{request}");
    }
    assert!(client.call("scan 123456").contains("invalid cursor"));
    client.call("del hash");
    assert_eq!(client.call("hscan hash 0"), "[\"0\", []]");
}

#[test]
fn random_members_are_members() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    for size in [1, 100, 129, 5000] {
        client.call("del s");
        for number in 0..size {
            client.send(&encode(&[b"sadd", b"s", number.to_string().as_bytes()]));
        }
        (0..size).for_each(|_| assert_eq!(client.reply(), ":1"));
        for _ in 0..50 {
            let one = client.call("srandmember s");
            let one: u32 = one.trim_matches('"').parse().unwrap();
            assert!(one < size);
        }
        assert_eq!(client.call("srandmember s 7").matches('"').count(), 2 * size.min(7) as usize);
        assert_eq!(client.call("srandmember s -7").matches('"').count(), 14);
        let popped = client.call("spop s");
        assert_eq!(client.call(&format!("sismember s {}", popped.trim_matches('"'))), ":0");
        assert_eq!(client.call("scard s"), format!(":{}", size - 1));
    }
}

#[test]
fn replies_can_be_left_out() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    for request in ["client reply skip", "set a 1", "client reply off", "set a 2"] {
        let args: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        client.send(&encode(&args));
    }
    assert_eq!(client.call("client reply on"), "OK");
    assert_eq!(client.call("get a"), "\"2\"");
}

#[test]
fn memory_has_a_limit_if_one_is_set() {
    let running = Running::in_memory(options());
    let mut client = running.client();
    assert_eq!(client.call("config set maxmemory 1"), "OK");
    assert!(client.call("set a 1").starts_with("(error) OOM"));
    assert_eq!(client.call("del a"), ":0");
    assert_eq!(client.call("config set maxmemory 0"), "OK");
    assert_eq!(client.call("set a 1"), "OK");
}
