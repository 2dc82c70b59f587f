//! All commands by name, and those that are declined with the reason.
//!
//! The guide's table is compared with these in the tests.

use super::{ADMIN, AT_ONCE, Command, GROWS, NEVER_QUEUED, NO_AUTH, READ, WRITE, command};
use std::collections::HashMap;
use std::sync::LazyLock;

/// All commands, sorted by name.
#[rustfmt::skip]
pub(crate) static COMMANDS: &[Command] = &[
    command("append", 3, WRITE | GROWS, (1, 1, 1), "string", super::strings::append),
    command("auth", -2, NO_AUTH, (0, 0, 0), "connection", super::connection::auth),
    command("bitcount", -2, READ, (1, 1, 1), "bitmap", super::bits::bitcount),
    command("bitfield", -2, WRITE | GROWS, (1, 1, 1), "bitmap", super::bitfield::bitfield),
    command("bitfield_ro", -2, READ, (1, 1, 1), "bitmap", super::bitfield::bitfield_ro),
    command("bitop", -4, WRITE | GROWS, (2, -1, 1), "bitmap", super::bits::bitop),
    command("bitpos", -3, READ, (1, 1, 1), "bitmap", super::bits::bitpos),
    command("blmove", 6, WRITE | GROWS, (1, 2, 1), "list", super::blocking::blmove),
    command("blmpop", -5, WRITE, (0, 0, 0), "list", super::blocking::blmpop),
    command("blpop", -3, WRITE, (1, -2, 1), "list", super::blocking::blpop),
    command("brpop", -3, WRITE, (1, -2, 1), "list", super::blocking::brpop),
    command("brpoplpush", 4, WRITE | GROWS, (1, 2, 1), "list", super::blocking::brpoplpush),
    command("bzmpop", -5, WRITE, (0, 0, 0), "sorted-set", super::blocking::bzmpop),
    command("bzpopmax", -3, WRITE, (1, -2, 1), "sorted-set", super::blocking::bzpopmax),
    command("bzpopmin", -3, WRITE, (1, -2, 1), "sorted-set", super::blocking::bzpopmin),
    command("client", -2, ADMIN, (0, 0, 0), "connection", super::connection::client),
    command("command", -1, 0, (0, 0, 0), "server", super::server::command),
    command("config", -2, ADMIN, (0, 0, 0), "server", super::server::config),
    command("copy", -3, WRITE | GROWS, (1, 2, 1), "generic", super::keyspace::copy),
    command("dbsize", 1, READ, (0, 0, 0), "generic", super::keyspace::dbsize),
    command("debug", -2, ADMIN, (0, 0, 0), "server", super::debug::debug),
    command("decr", 2, WRITE | GROWS, (1, 1, 1), "string", super::strings::decr),
    command("decrby", 3, WRITE | GROWS, (1, 1, 1), "string", super::strings::decrby),
    command("del", -2, WRITE, (1, -1, 1), "generic", super::keyspace::del),
    command("discard", 1, AT_ONCE, (0, 0, 0), "transactions", super::multi::discard),
    command("echo", 2, 0, (0, 0, 0), "connection", super::connection::echo),
    command("exec", 1, AT_ONCE, (0, 0, 0), "transactions", super::multi::exec),
    command("exists", -2, READ, (1, -1, 1), "generic", super::keyspace::exists),
    command("expire", -3, WRITE, (1, 1, 1), "generic", super::keyspace::expire),
    command("expireat", -3, WRITE, (1, 1, 1), "generic", super::keyspace::expireat),
    command("expiretime", 2, READ, (1, 1, 1), "generic", super::keyspace::expiretime),
    command("flushall", -1, WRITE, (0, 0, 0), "generic", super::keyspace::flushall),
    command("flushdb", -1, WRITE, (0, 0, 0), "generic", super::keyspace::flushdb),
    command("forrest.delrange", 3, WRITE, (0, 0, 0), "forrest", super::ranges::delrange),
    command("forrest.range", -3, READ, (0, 0, 0), "forrest", super::ranges::range),
    command("forrest.snapshot", -2, ADMIN, (0, 0, 0), "forrest", super::ranges::snapshot),
    command("function", -2, 0, (0, 0, 0), "server", super::server::function),
    command("geoadd", -5, WRITE | GROWS, (1, 1, 1), "geo", super::geo::geoadd),
    command("geodist", -4, READ, (1, 1, 1), "geo", super::geo::geodist),
    command("geohash", -2, READ, (1, 1, 1), "geo", super::geo::geohash),
    command("geopos", -2, READ, (1, 1, 1), "geo", super::geo::geopos),
    command("georadius", -6, WRITE | GROWS, (1, 1, 1), "geo", super::geo::georadius),
    command("georadius_ro", -6, READ, (1, 1, 1), "geo", super::geo::georadius_ro),
    command("georadiusbymember", -5, WRITE | GROWS, (1, 1, 1), "geo", super::geo::georadiusbymember),
    command("georadiusbymember_ro", -5, READ, (1, 1, 1), "geo", super::geo::georadiusbymember_ro),
    command("geosearch", -7, READ, (1, 1, 1), "geo", super::geo::geosearch),
    command("geosearchstore", -8, WRITE | GROWS, (1, 2, 1), "geo", super::geo::geosearchstore),
    command("get", 2, READ, (1, 1, 1), "string", super::strings::get),
    command("getbit", 3, READ, (1, 1, 1), "bitmap", super::bits::getbit),
    command("getdel", 2, WRITE, (1, 1, 1), "string", super::strings::getdel),
    command("getex", -2, WRITE, (1, 1, 1), "string", super::strings::getex),
    command("getrange", 4, READ, (1, 1, 1), "string", super::strings::getrange),
    command("getset", 3, WRITE | GROWS, (1, 1, 1), "string", super::strings::getset),
    command("hdel", -3, WRITE, (1, 1, 1), "hash", super::hashes::hdel),
    command("hello", -1, NO_AUTH, (0, 0, 0), "connection", super::connection::hello),
    command("hexists", 3, READ, (1, 1, 1), "hash", super::hashes::hexists),
    command("hget", 3, READ, (1, 1, 1), "hash", super::hashes::hget),
    command("hgetall", 2, READ, (1, 1, 1), "hash", super::hashes::hgetall),
    command("hincrby", 4, WRITE | GROWS, (1, 1, 1), "hash", super::hashes::hincrby),
    command("hincrbyfloat", 4, WRITE | GROWS, (1, 1, 1), "hash", super::hashes::hincrbyfloat),
    command("hkeys", 2, READ, (1, 1, 1), "hash", super::hashes::hkeys),
    command("hlen", 2, READ, (1, 1, 1), "hash", super::hashes::hlen),
    command("hmget", -3, READ, (1, 1, 1), "hash", super::hashes::hmget),
    command("hmset", -4, WRITE | GROWS, (1, 1, 1), "hash", super::hashes::hmset),
    command("hrandfield", -2, READ, (1, 1, 1), "hash", super::hashes::hrandfield),
    command("hscan", -3, READ, (1, 1, 1), "hash", super::scan::hscan),
    command("hset", -4, WRITE | GROWS, (1, 1, 1), "hash", super::hashes::hset),
    command("hsetnx", 4, WRITE | GROWS, (1, 1, 1), "hash", super::hashes::hsetnx),
    command("hstrlen", 3, READ, (1, 1, 1), "hash", super::hashes::hstrlen),
    command("hvals", 2, READ, (1, 1, 1), "hash", super::hashes::hvals),
    command("incr", 2, WRITE | GROWS, (1, 1, 1), "string", super::strings::incr),
    command("incrby", 3, WRITE | GROWS, (1, 1, 1), "string", super::strings::incrby),
    command("incrbyfloat", 3, WRITE | GROWS, (1, 1, 1), "string", super::strings::incrbyfloat),
    command("info", -1, 0, (0, 0, 0), "server", super::info::info),
    command("keys", 2, READ, (0, 0, 0), "generic", super::keyspace::keys),
    command("lastsave", 1, ADMIN, (0, 0, 0), "server", super::server::lastsave),
    command("latency", -2, ADMIN, (0, 0, 0), "server", super::slow::latency),
    command("lcs", -3, READ, (1, 2, 1), "string", super::lcs::lcs),
    command("lindex", 3, READ, (1, 1, 1), "list", super::lists::lindex),
    command("linsert", 5, WRITE | GROWS, (1, 1, 1), "list", super::lists::linsert),
    command("llen", 2, READ, (1, 1, 1), "list", super::lists::llen),
    command("lmove", 5, WRITE | GROWS, (1, 2, 1), "list", super::lists::lmove),
    command("lmpop", -4, WRITE, (0, 0, 0), "list", super::lists::lmpop),
    command("lpop", -2, WRITE, (1, 1, 1), "list", super::lists::lpop),
    command("lpos", -3, READ, (1, 1, 1), "list", super::lists::lpos),
    command("lpush", -3, WRITE | GROWS, (1, 1, 1), "list", super::lists::lpush),
    command("lpushx", -3, WRITE | GROWS, (1, 1, 1), "list", super::lists::lpushx),
    command("lrange", 4, READ, (1, 1, 1), "list", super::lists::lrange),
    command("lrem", 4, WRITE, (1, 1, 1), "list", super::lists::lrem),
    command("lset", 4, WRITE | GROWS, (1, 1, 1), "list", super::lists::lset),
    command("ltrim", 4, WRITE, (1, 1, 1), "list", super::lists::ltrim),
    command("memory", -2, READ, (0, 0, 0), "server", super::server::memory),
    command("mget", -2, READ, (1, -1, 1), "string", super::strings::mget),
    command("move", 3, WRITE, (1, 1, 1), "generic", super::keyspace::move_to),
    command("mset", -3, WRITE | GROWS, (1, -1, 2), "string", super::strings::mset),
    command("msetnx", -3, WRITE | GROWS, (1, -1, 2), "string", super::strings::msetnx),
    command("multi", 1, AT_ONCE, (0, 0, 0), "transactions", super::multi::multi),
    command("object", -2, READ, (2, 2, 1), "generic", super::keyspace::object),
    command("persist", 2, WRITE, (1, 1, 1), "generic", super::keyspace::persist),
    command("pexpire", -3, WRITE, (1, 1, 1), "generic", super::keyspace::pexpire),
    command("pexpireat", -3, WRITE, (1, 1, 1), "generic", super::keyspace::pexpireat),
    command("pexpiretime", 2, READ, (1, 1, 1), "generic", super::keyspace::pexpiretime),
    command("ping", -1, 0, (0, 0, 0), "connection", super::connection::ping),
    command("psetex", 4, WRITE | GROWS, (1, 1, 1), "string", super::strings::psetex),
    command("pttl", 2, READ, (1, 1, 1), "generic", super::keyspace::pttl),
    command("quit", -1, NO_AUTH | AT_ONCE, (0, 0, 0), "connection", super::connection::quit),
    command("randomkey", 1, READ, (0, 0, 0), "generic", super::keyspace::randomkey),
    command("rename", 3, WRITE, (1, 2, 1), "generic", super::keyspace::rename),
    command("renamenx", 3, WRITE, (1, 2, 1), "generic", super::keyspace::renamenx),
    command("reset", 1, NO_AUTH | AT_ONCE, (0, 0, 0), "connection", super::connection::reset),
    command("rpop", -2, WRITE, (1, 1, 1), "list", super::lists::rpop),
    command("rpoplpush", 3, WRITE | GROWS, (1, 2, 1), "list", super::lists::rpoplpush),
    command("rpush", -3, WRITE | GROWS, (1, 1, 1), "list", super::lists::rpush),
    command("rpushx", -3, WRITE | GROWS, (1, 1, 1), "list", super::lists::rpushx),
    command("sadd", -3, WRITE | GROWS, (1, 1, 1), "set", super::sets::sadd),
    command("save", 1, ADMIN | NEVER_QUEUED, (0, 0, 0), "server", super::server::save),
    command("scan", -2, READ, (0, 0, 0), "generic", super::scan::scan),
    command("scard", 2, READ, (1, 1, 1), "set", super::sets::scard),
    command("sdiff", -2, READ, (1, -1, 1), "set", super::sets::sdiff),
    command("sdiffstore", -3, WRITE | GROWS, (1, -1, 1), "set", super::sets::sdiffstore),
    command("select", 2, 0, (0, 0, 0), "connection", super::connection::select),
    command("set", -3, WRITE | GROWS, (1, 1, 1), "string", super::strings::set),
    command("setbit", 4, WRITE | GROWS, (1, 1, 1), "bitmap", super::bits::setbit),
    command("setex", 4, WRITE | GROWS, (1, 1, 1), "string", super::strings::setex),
    command("setnx", 3, WRITE | GROWS, (1, 1, 1), "string", super::strings::setnx),
    command("setrange", 4, WRITE | GROWS, (1, 1, 1), "string", super::strings::setrange),
    command("shutdown", -1, ADMIN | NEVER_QUEUED, (0, 0, 0), "server", super::server::shutdown),
    command("sinter", -2, READ, (1, -1, 1), "set", super::sets::sinter),
    command("sintercard", -3, READ, (0, 0, 0), "set", super::sets::sintercard),
    command("sinterstore", -3, WRITE | GROWS, (1, -1, 1), "set", super::sets::sinterstore),
    command("sismember", 3, READ, (1, 1, 1), "set", super::sets::sismember),
    command("slowlog", -2, ADMIN, (0, 0, 0), "server", super::slow::slowlog),
    command("smembers", 2, READ, (1, 1, 1), "set", super::sets::smembers),
    command("smismember", -3, READ, (1, 1, 1), "set", super::sets::smismember),
    command("smove", 4, WRITE, (1, 2, 1), "set", super::sets::smove),
    command("spop", -2, WRITE, (1, 1, 1), "set", super::sets::spop),
    command("srandmember", -2, READ, (1, 1, 1), "set", super::sets::srandmember),
    command("srem", -3, WRITE, (1, 1, 1), "set", super::sets::srem),
    command("sscan", -3, READ, (1, 1, 1), "set", super::scan::sscan),
    command("strlen", 2, READ, (1, 1, 1), "string", super::strings::strlen),
    command("substr", 4, READ, (1, 1, 1), "string", super::strings::getrange),
    command("sunion", -2, READ, (1, -1, 1), "set", super::sets::sunion),
    command("sunionstore", -3, WRITE | GROWS, (1, -1, 1), "set", super::sets::sunionstore),
    command("swapdb", 3, WRITE, (0, 0, 0), "generic", super::keyspace::swapdb),
    command("time", 1, 0, (0, 0, 0), "server", super::server::time),
    command("touch", -2, READ, (1, -1, 1), "generic", super::keyspace::touch),
    command("ttl", 2, READ, (1, 1, 1), "generic", super::keyspace::ttl),
    command("type", 2, READ, (1, 1, 1), "generic", super::keyspace::type_of),
    command("unlink", -2, WRITE, (1, -1, 1), "generic", super::keyspace::del),
    command("unwatch", 1, 0, (0, 0, 0), "transactions", super::multi::unwatch),
    command("watch", -2, AT_ONCE, (1, -1, 1), "transactions", super::multi::watch),
    command("zadd", -4, WRITE | GROWS, (1, 1, 1), "sorted-set", super::zsets::zadd),
    command("zcard", 2, READ, (1, 1, 1), "sorted-set", super::zsets::zcard),
    command("zcount", 4, READ, (1, 1, 1), "sorted-set", super::zsets::zcount),
    command("zdiff", -3, READ, (0, 0, 0), "sorted-set", super::zsets::zdiff),
    command("zdiffstore", -4, WRITE | GROWS, (1, 1, 1), "sorted-set", super::zsets::zdiffstore),
    command("zincrby", 4, WRITE | GROWS, (1, 1, 1), "sorted-set", super::zsets::zincrby),
    command("zinter", -3, READ, (0, 0, 0), "sorted-set", super::zsets::zinter),
    command("zintercard", -3, READ, (0, 0, 0), "sorted-set", super::zsets::zintercard),
    command("zinterstore", -4, WRITE | GROWS, (1, 1, 1), "sorted-set", super::zsets::zinterstore),
    command("zlexcount", 4, READ, (1, 1, 1), "sorted-set", super::zsets::zlexcount),
    command("zmpop", -4, WRITE, (0, 0, 0), "sorted-set", super::zsets::zmpop),
    command("zmscore", -3, READ, (1, 1, 1), "sorted-set", super::zsets::zmscore),
    command("zpopmax", -2, WRITE, (1, 1, 1), "sorted-set", super::zsets::zpopmax),
    command("zpopmin", -2, WRITE, (1, 1, 1), "sorted-set", super::zsets::zpopmin),
    command("zrandmember", -2, READ, (1, 1, 1), "sorted-set", super::zsets::zrandmember),
    command("zrange", -4, READ, (1, 1, 1), "sorted-set", super::zsets::zrange),
    command("zrangebylex", -4, READ, (1, 1, 1), "sorted-set", super::zsets::zrangebylex),
    command("zrangebyscore", -4, READ, (1, 1, 1), "sorted-set", super::zsets::zrangebyscore),
    command("zrangestore", -5, WRITE | GROWS, (1, 2, 1), "sorted-set", super::zsets::zrangestore),
    command("zrank", -3, READ, (1, 1, 1), "sorted-set", super::zsets::zrank),
    command("zrem", -3, WRITE, (1, 1, 1), "sorted-set", super::zsets::zrem),
    command("zremrangebylex", 4, WRITE, (1, 1, 1), "sorted-set", super::zsets::zremrangebylex),
    command("zremrangebyrank", 4, WRITE, (1, 1, 1), "sorted-set", super::zsets::zremrangebyrank),
    command("zremrangebyscore", 4, WRITE, (1, 1, 1), "sorted-set", super::zsets::zremrangebyscore),
    command("zrevrange", -4, READ, (1, 1, 1), "sorted-set", super::zsets::zrevrange),
    command("zrevrangebylex", -4, READ, (1, 1, 1), "sorted-set", super::zsets::zrevrangebylex),
    command("zrevrangebyscore", -4, READ, (1, 1, 1), "sorted-set", super::zsets::zrevrangebyscore),
    command("zrevrank", -3, READ, (1, 1, 1), "sorted-set", super::zsets::zrevrank),
    command("zscan", -3, READ, (1, 1, 1), "sorted-set", super::scan::zscan),
    command("zscore", 3, READ, (1, 1, 1), "sorted-set", super::zsets::zscore),
    command("zunion", -3, READ, (0, 0, 0), "sorted-set", super::zsets::zunion),
    command("zunionstore", -4, WRITE | GROWS, (1, 1, 1), "sorted-set", super::zsets::zunionstore),
];

/// Commands of Redis that there are not, by what they begin with, and why.
pub(crate) const DECLINED: &[(&str, &str)] = &[
    ("acl", "there is one user; its password is that of --password-file"),
    ("asking", "there is no cluster"),
    ("bf.", "there are no modules"),
    ("bgrewriteaof", "the store compacts its log by itself"),
    ("bgsave", "the store is on disk already; SAVE syncs it, and `forrest backup` copies it"),
    ("cluster", "there is no cluster"),
    ("dump", "its format is that of Redis's files"),
    ("eval", "there is no Lua"),
    ("failover", "there are no replicas"),
    ("fcall", "there is no Lua"),
    ("ft.", "there are no modules"),
    ("json.", "there are no modules"),
    ("lolwut", "it draws a picture"),
    ("migrate", "there is no cluster"),
    ("module", "there are no modules"),
    ("monitor", "it would show all keys and values to a client; SLOWLOG lists slow commands"),
    ("pf", "estimates of counts have no use of an ordered store; sets count exactly"),
    ("psubscribe", "there are no channels"),
    ("psync", "there are no replicas"),
    ("publish", "there are no channels"),
    ("pubsub", "there are no channels"),
    ("punsubscribe", "there are no channels"),
    ("readonly", "there is no cluster"),
    ("readwrite", "there is no cluster"),
    ("replconf", "there are no replicas"),
    ("replicaof", "there are no replicas"),
    ("restore", "its format is that of Redis's files"),
    ("role", "there are no replicas"),
    ("script", "there is no Lua"),
    ("slaveof", "there are no replicas"),
    ("sort", "sorted sets and FORREST.RANGE are in order"),
    ("spublish", "there are no channels"),
    ("ssubscribe", "there are no channels"),
    ("subscribe", "there are no channels"),
    ("sunsubscribe", "there are no channels"),
    ("sync", "there are no replicas"),
    ("unsubscribe", "there are no channels"),
    ("wait", "there are no replicas"),
    ("x", "there are no streams"),
];

/// Longest name.
const NAME_BYTES_MAX: usize = 20;
static BY_NAME: LazyLock<HashMap<&'static [u8], &'static Command, Fnv>> =
    LazyLock::new(|| COMMANDS.iter().map(|command| (command.name.as_bytes(), command)).collect());

/// A hash for short names that no client chooses: FNV-1a.
#[derive(Clone, Copy, Default)]
struct Fnv;

struct FnvHasher(u64);

impl std::hash::BuildHasher for Fnv {
    type Hasher = FnvHasher;
    fn build_hasher(&self) -> FnvHasher {
        FnvHasher(0xcbf2_9ce4_8422_2325)
    }
}

impl std::hash::Hasher for FnvHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    fn write_usize(&mut self, _: usize) {}
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The command of a name, in any case.
#[inline]
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    BY_NAME.get(&*lower).copied()
}

/// Why there is no such command, if Redis has it.
pub(crate) fn declined(name: &[u8]) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    DECLINED.iter().find(|(begin, _)| name.starts_with(begin.as_bytes())).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_name_is_found() {
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
        for command in COMMANDS {
            assert!(
                find(command.name.to_uppercase().as_bytes()).is_some_and(|found| found.name == command.name)
            );
            // `object help` has none.
            let names_a_key = command.keys.0 > 0 && command.name != "object";
            let key = command.keys.0.unsigned_abs() < command.arity.unsigned_abs();
            assert!(!names_a_key || key, "{}", command.name);
        }
        assert!(find(b"nonesuch").is_none());
        assert!(find(&[b'x'; NAME_BYTES_MAX + 1]).is_none());
        assert!(DECLINED.is_sorted());
        assert!(DECLINED.iter().all(|(name, _)| find(name.as_bytes()).is_none()));
        assert_eq!(declined(b"XADD"), Some("there are no streams"));
        assert_eq!(declined(b"nonesuch"), None);
    }

    #[test]
    fn keys_are_found_in_requests() {
        let keys = |request: &[&str]| {
            let args: Vec<&[u8]> = request.iter().map(|arg| arg.as_bytes()).collect();
            find(args[0]).map_or(0, |command| command.keys_of(&args).len())
        };
        assert_eq!(keys(&["mset", "a", "1", "b", "2"]), 2);
        assert_eq!(keys(&["del", "a", "b", "c"]), 3);
        assert_eq!(keys(&["get", "a"]), 1);
        assert_eq!(keys(&["ping"]), 0);
    }
}
