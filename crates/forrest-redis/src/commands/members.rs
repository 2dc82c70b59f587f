//! What hashes, sets and sorted sets share: records with a count, and random members.

use super::{Context, is, natural};
use crate::data::Found;
use crate::fault::{Done, Fault, SYNTAX, WRONG_TYPE};
use crate::keys::{self, Kind, MEMBER_BYTES, Record};
use std::ops::ControlFlow;

/// Pairs among which a random one is chosen with equal chances. Of more, a place between the first and the last key
/// is chosen, and a pair near to it, so that pairs after wide gaps have better chances.
const UNIFORM: u64 = 128;

/// A member with what it is mapped to.
pub(crate) type Member = (Vec<u8>, Vec<u8>);

/// The first key after all that begin with a prefix.
pub(crate) fn end_of(prefix: &[u8]) -> Vec<u8> {
    forrest::prefix_end(prefix).unwrap_or_else(|| vec![0xFF; keys::PREFIX_BYTES_MAX])
}

/// The record of a key that gets members, and whether there is one already.
pub(crate) fn or_new(context: &mut Context, found: Option<&Found>, kind: Kind) -> Result<Record, Fault> {
    if let Some(found) = found {
        return Ok(found.record);
    }
    let generation = context.server.data.new_generation()?;
    Ok(Record { kind, expires: 0, generation, count: 0, first: 0 })
}

/// The key of a member.
pub(crate) fn key_of(context: &Context, record: &Record, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = keys::members(context.slot(), record.generation).to_vec();
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// Writes the record of a key whose members have changed, or removes the key if it has none left.
pub(crate) fn finish(
    context: &mut Context,
    key: &[u8],
    found: Option<&Found>,
    record: &Record,
) -> Result<(), Fault> {
    let slot = context.slot();
    match found {
        Some(found) if record.count == 0 => context.server.data.delete(slot, key, &found.record)?,
        None if record.count == 0 => return Ok(()),
        Some(found) if found.record == *record => {}
        found => {
            let old = found.map(|found| &found.record);
            context.server.data.set(slot, key, old, record, &[])?;
        }
    }
    context.touch(key);
    Ok(())
}

/// Replies with the number of members of a key.
pub(crate) fn reply_count(context: &mut Context, key: &[u8], kind: Kind) -> Done {
    let found = context.look(key, kind)?;
    context.reply.count(found.map_or(0, |found| found.record.count));
    Ok(())
}

/// How many members a command takes away, if it says so.
pub(crate) fn pop_count(context: &Context, args: &[&[u8]]) -> Result<Option<u64>, Fault> {
    if args.len() > 3 {
        let name = context.client.shared.last_command.get();
        return Err(Fault::new(format!("ERR wrong number of arguments for '{name}' command")));
    }
    let count = args.get(2).map(|count| natural(count, "ERR value is out of range, must be positive"));
    count.transpose()
}

/// The first of some keys that there is. Of another type it is an error, unless the command has waited: then
/// something else has been put there meanwhile.
pub(crate) fn first<'a>(
    context: &mut Context,
    keys: &[&'a [u8]],
    kind: Kind,
) -> Result<Option<(&'a [u8], Found)>, Fault> {
    for key in keys {
        match context.find(key)? {
            Some(found) if found.record.kind == kind => return Ok(Some((key, found))),
            Some(_) if !context.client.has_waited => return Err(WRONG_TYPE),
            _ => {}
        }
    }
    Ok(None)
}

/// Arguments.
pub(crate) type Args<'a, 'b> = &'b [&'a [u8]];

/// Keys after their number, and what follows them.
pub(crate) fn numbered_keys<'a, 'b>(args: Args<'a, 'b>) -> Result<(Args<'a, 'b>, Args<'a, 'b>), Fault> {
    let count = natural(args[0], "ERR numkeys should be greater than 0")?;
    let count = usize::try_from(count).ok().filter(|count| *count > 0);
    let count = count.ok_or(Fault::new("ERR numkeys should be greater than 0"))?;
    if count > args.len() - 1 {
        return Err(Fault::new("ERR Number of keys can't be greater than number of args"));
    }
    Ok(args[1..].split_at(count))
}

/// The limit at the end of `SINTERCARD` and `ZINTERCARD`.
pub(crate) fn limit_of(rest: &[&[u8]]) -> Result<u64, Fault> {
    match rest {
        [] => Ok(u64::MAX),
        [word, limit] if is(word, "LIMIT") => match natural(limit, "ERR LIMIT can't be negative")? {
            0 => Ok(u64::MAX),
            limit => Ok(limit),
        },
        _ => Err(SYNTAX),
    }
}

/// What `LMPOP` and `ZMPOP` have after the number of their keys: the keys, from which end, and how many.
pub(crate) fn keys_end_and_count<'a, 'b>(
    args: &'a [&'b [u8]],
    end: impl Fn(&[u8]) -> Result<bool, Fault>,
) -> Result<(&'a [&'b [u8]], bool, u64), Fault> {
    let (keys, rest) = numbered_keys(args)?;
    let (from, count) = match rest {
        [from] => (from, 1),
        [from, word, count] if is(word, "COUNT") => {
            let wrong = "ERR count should be greater than 0";
            let count = natural(count, wrong)?;
            (from, (count > 0).then_some(count).ok_or(Fault::new(wrong))?)
        }
        _ => return Err(SYNTAX),
    };
    Ok((keys, end(from)?, count))
}

/// A random member of a hash or set.
pub(crate) fn random_member(context: &mut Context, record: &Record) -> Result<Option<Vec<u8>>, Fault> {
    let prefix = key_of(context, record, &[]);
    let key = random(context, &prefix, Some(record.count))?;
    Ok(key.map(|key| key[MEMBER_BYTES..].to_vec()))
}

/// The key of a random pair with a prefix, of as many as are known.
pub(crate) fn random(
    context: &mut Context,
    prefix: &[u8],
    count: Option<u64>,
) -> Result<Option<Vec<u8>>, Fault> {
    let end = end_of(prefix);
    let few = match count {
        Some(count) => count.min(UNIFORM + 1),
        None => {
            let mut few = 0;
            context.server.data.scan((prefix, &end), false, |_, _| {
                few += 1;
                if few <= UNIFORM { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            few
        }
    };
    if few == 0 {
        return Ok(None);
    }
    if few <= UNIFORM {
        let number = context.server.random.below(few);
        return nth(context, prefix, &end, false, number);
    }
    let Some(first) = nth(context, prefix, &end, false, 0)? else { return Ok(None) };
    let Some(last) = nth(context, prefix, &end, true, 0)? else { return Ok(None) };
    let place = between(&first, &last, context.server.random.next());
    let skip = context.server.random.below(UNIFORM / 2);
    match nth(context, &place, &end, false, skip)? {
        Some(key) => Ok(Some(key)),
        None => nth(context, prefix, &end, true, skip),
    }
}

/// A place between two keys: their common beginning, and then a number between those that follow.
fn between(first: &[u8], last: &[u8], random: u64) -> Vec<u8> {
    let same = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let number = |key: &[u8]| {
        let mut bytes = [0; 8];
        let rest = &key[same..key.len().min(same + 8)];
        bytes[..rest.len()].copy_from_slice(rest);
        u64::from_be_bytes(bytes)
    };
    let (low, high) = (number(first), number(last));
    let part = (u128::from(high - low.min(high)) * u128::from(random)) >> 64;
    let mut place = first[..same].to_vec();
    place.extend_from_slice(&(low + part as u64).to_be_bytes());
    place
}

/// The key of a pair of a range, by its number from one end.
fn nth(
    context: &mut Context,
    start: &[u8],
    end: &[u8],
    is_back: bool,
    number: u64,
) -> Result<Option<Vec<u8>>, Fault> {
    let (mut left, mut found) = (number, None);
    context.server.data.scan((start, end), is_back, |key, _| {
        if left == 0 {
            found = Some(key.to_vec());
            return ControlFlow::Break(());
        }
        left -= 1;
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// All members of a key, up to a number of bytes; more are an error, because a command cannot hold them.
pub(crate) fn all(context: &mut Context, record: &Record, part: &[u8]) -> Result<Vec<Member>, Fault> {
    let start = key_of(context, record, &[part]);
    let most = context.server.options.limits.reply_bytes;
    let (mut members, mut bytes) = (Vec::new(), 0);
    context.server.data.scan((&start, &end_of(&start)), false, |key, value| {
        bytes += key.len() + value.len();
        members.push((key[start.len()..].to_vec(), value.to_vec()));
        if bytes <= most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    if bytes > most {
        return Err(Fault::new(format!("ERR the key has more than {most} bytes of members (--reply-bytes)")));
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::between;

    #[test]
    fn a_place_lies_between() {
        for random in [0, 1, u64::MAX / 2, u64::MAX] {
            let place = between(b"user:1", b"user:9zzz", random);
            assert!(place.starts_with(b"user:"));
            assert!(place.as_slice() <= &b"user:9zzz\0\0\0\0"[..], "{}", place.escape_ascii());
            assert!(place.as_slice() >= &b"user:1"[..]);
        }
        assert_eq!(between(b"a", b"a", 7), b"a\0\0\0\0\0\0\0\0");
    }
}
