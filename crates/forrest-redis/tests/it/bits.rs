//! Bits of strings. The replies are those of Redis 7.0 and Valkey 8.1.

use crate::harness::{Running, everywhere, options, script};
use forrest_redis::{Limits, Options};

#[test]
fn strings_are_combined() {
    everywhere(
        "set a abc => OK
        set b \x0f => OK
        bitop and d a b => :3
        get d => \"\\x01\\x00\\x00\"
        bitop or d a none b => :3
        get d => \"obc\"
        bitop xor d b a => :3
        get d => \"nbc\"
        set d x ex 100 => OK
        bitop not d a => :3
        get d => \"\\x9e\\x9d\\x9c\"
        ttl d => :-1
        bitop not a a => :3
        bitop xor none a d => :3
        get none => \"\\x00\\x00\\x00\"
        del none => :1
        bitop or d none none => :0
        exists d => :0
        rpush list a => :1
        bitop and list a a => :3
        type list => string
        rpush list2 a => :1
        bitop and d a list2 => (error) WRONGTYPE Operation against a key holding the wrong kind of value
        exists d => :0
        bitop not d a b => (error) ERR BITOP NOT must be called with a single source key.
        bitop nand d a b => (error) ERR syntax error
        bitop and d => (error) ERR wrong number of arguments for 'bitop' command",
    );
}

#[test]
fn bits_are_counted_and_found() {
    everywhere(
        "set s foobar => OK
        bitcount s => :26
        bitcount s 0 => :26
        bitcount s -1 => :4
        bitcount s 1 -2 byte => :18
        bitcount s 5 30 bit => :17
        bitcount s -1000 -100 => :4
        bitcount s -6 -7 => :0
        bitcount s 9 12 => :0
        bitcount s 0 1 bits => (error) ERR syntax error
        bitcount s 0 x => (error) ERR value is not an integer or out of range
        bitcount s 0 1 bit x => (error) ERR syntax error
        bitpos s 1 => :1
        bitpos s 0 => :0
        bitpos s 1 2 => :17
        bitpos s 1 -1000 -100 => :1
        bitpos s 1 -6 -7 => :1
        bitpos s 1 3 7 bit => :5
        bitpos s 1 3 4 bit => :-1
        bitpos s 0 9 => :-1
        bitpos s 1 7 2 => :-1
        bitpos none 1 => :-1
        bitpos none 0 5 6 => :0
        bitpos none 2 => (error) ERR The bit argument must be 1 or 0.
        bitpos none x => (error) ERR value is not an integer or out of range
        bitpos s 0 1 hello hello2 => (error) ERR syntax error
        bitpos s 0 a 1 bit => (error) ERR value is not an integer or out of range
        bitpos s 0 0 1 bit x => (error) ERR syntax error
        bitop not s s => :6
        bitfield full set u8 0 255 set u8 8 255 => [:0, :0]
        bitpos full 0 => :16
        bitpos full 0 1 => :16
        bitpos full 0 0 -1 => :-1
        bitpos full 0 0 -1 bit => :-1
        bitpos full 0 2 => :-1
        append empty  => :0
        bitpos empty 0 => :-1
        getrange full 0 -1 => \"\\xff\\xff\"
        rpush list a => :1
        bitpos list 0 => (error) WRONGTYPE Operation against a key holding the wrong kind of value
        bitcount list 7 6 => (error) WRONGTYPE Operation against a key holding the wrong kind of value
        bitpos list 0 x => (error) ERR value is not an integer or out of range",
    );
}

#[test]
fn fields_are_read_and_changed() {
    everywhere(
        "bitfield b set i8 0 255 set i8 0 100 get i8 0 => [:0, :-1, :100]
        bitfield b => []
        bitfield b overflow sat => []
        bitfield b set u8 #0 65 set u8 #1 66 set u8 #2 67 => [:100, :0, :0]
        get b => \"ABC\"
        bitfield b overflow wrap incrby u8 0 255 overflow sat incrby u8 0 300 get u8 0 => [:64, :255, :255]
        bitfield b overflow sat incrby i8 0 -300 overflow fail incrby i8 0 -1 => [:-128, (nil)]
        bitfield b overflow fail set u1 0 2 set u1 0 1 get u1 0 => [(nil), :1, :1]
        bitfield b overflow sat set u8 0 -1 get u8 0 set i8 0 -200 get i8 0 => [:128, :255, :-1, :-128]
        bitfield b set u63 0 -1 get u63 0 => [:4621011526298370048, :9223372036854775807]
        bitfield b set i64 0 -9223372036854775808 incrby i64 0 -1 => [:-2, :9223372036854775807]
        bitfield b overflow sat set i64 0 -9223372036854775808 incrby i64 0 -1 => \
         [:9223372036854775807, :-9223372036854775808]
        bitfield b get u5 61 get u8 1000 => [:0, :0]
        strlen b => :8
        bitfield b incrby u2 100 1 => [:1]
        strlen b => :13
        bitfield_ro b get u2 100 get i2 100 => [:1, :1]
        bitfield_ro none get u8 0 => [:0]
        bitfield none get u8 0 => [:0]
        exists none => :0
        bitfield made overflow fail set u1 9 5 => [(nil)]
        strlen made => :2
        expire made 100 => :1
        bitfield made set u1 0 1 => [:0]
        ttl made => :100
        bitfield_ro b incrby u8 0 1 => (error) ERR BITFIELD_RO only supports the GET subcommand
        bitfield b get u64 0 => (error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
         supported but i64 is.
        bitfield b overflow up incrby u8 0 1 => (error) ERR Invalid OVERFLOW type specified
        bitfield b get u8 #-1 => (error) ERR bit offset is not an integer or out of range
        bitfield b get u8 #1152921504606846976 => (error) ERR bit offset is not an integer or out of range
        bitfield b set u8 0 x => (error) ERR value is not an integer or out of range
        bitfield b set u8 0 => (error) ERR syntax error
        bitfield b overflow => (error) ERR syntax error
        bitfield b put u8 0 => (error) ERR syntax error
        rpush list a => :1
        bitfield list get u8 0 => (error) WRONGTYPE Operation against a key holding the wrong kind of value
        bitfield list set u8 0 1 => (error) WRONGTYPE Operation against a key holding the wrong kind of value
        bitfield list get u0 0 => (error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
         supported but i64 is.",
    );
}

/// A field that does not change leaves watched keys as they were.
#[test]
fn only_changes_are_changes() {
    let running = Running::in_memory(options());
    let mut other = running.client();
    other.call("set b x");
    for (request, expected) in [
        ("bitfield b set u8 0 120", "[\"x\"]"),
        ("bitfield b overflow fail incrby u8 0 200", "[\"x\"]"),
        ("bitfield b get u8 0", "[\"x\"]"),
        ("bitfield b set u8 0 121", "(nil)"),
        ("bitfield b incrby u8 0 0", "(nil)"),
        ("bitop or b b b", "(nil)"),
    ] {
        let mut client = running.client();
        ["watch b", "multi", "get b"].iter().for_each(|line| drop(client.call(line)));
        other.call(request);
        assert_eq!(client.call("exec"), expected, "{request}");
    }
}

/// No string is made that is longer than the limit, and nothing is allocated for an offset above it.
#[test]
fn fields_have_the_limit_of_strings() {
    let limits = Limits { request_bytes: 1000, ..Limits::default() };
    let running = Running::in_memory(Options { limits, ..options() });
    script(
        &running,
        "bitfield a set u8 7992 1 => [:0]
        strlen a => :1000
        bitfield a set u8 7993 1 => (error) ERR bit offset is not an integer or out of range
        bitfield a incrby u2 7999 1 => (error) ERR bit offset is not an integer or out of range
        bitfield a set u8 0 1 set u8 #999 1 set u8 #1000 1 => (error) ERR bit offset is not an integer or out of range
        bitfield a get u8 7993 => [:2]
        bitfield a get u8 8000 => (error) ERR bit offset is not an integer or out of range
        bitfield a get u8 9223372036854775807 => (error) ERR bit offset is not an integer or out of range
        bitfield a get i64 #144115188075855871 => (error) ERR bit offset is not an integer or out of range
        bitfield a get u8 0 => [:0]
        bitop not b a => :1000",
    );
}
