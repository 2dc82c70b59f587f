//! Sets.

use super::hashes::{Chosen, choose, remove};
use super::members::{
    all, finish, key_of, limit_of, numbered_keys, or_new, pop_count, random_member, reply_count,
};
use super::{Context, integer};
use crate::fault::{Done, Fault};
use crate::keys::{Kind, Record};
use std::collections::BTreeSet;

pub(crate) fn sadd(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.find_kind(args[1], Kind::Set)?;
    let mut record = or_new(context, found.as_ref(), Kind::Set)?;
    if args.len() > 3 {
        context.server.data.read_own_writes();
    }
    let before = record.count;
    for member in &args[2..] {
        let key = key_of(context, &record, &[member]);
        if context.server.data.get(&key)?.is_none() {
            context.server.data.put(&key, &[])?;
            record.count += 1;
        }
    }
    if record.count > before {
        finish(context, args[1], found.as_ref(), &record)?;
    }
    context.reply.count(record.count - before);
    Ok(())
}

pub(crate) fn srem(context: &mut Context, args: &[&[u8]]) -> Done {
    let removed = match context.find_kind(args[1], Kind::Set)? {
        Some(found) => remove(context, args, &found)?,
        None => 0,
    };
    context.reply.count(removed);
    Ok(())
}

pub(crate) fn scard(context: &mut Context, args: &[&[u8]]) -> Done {
    reply_count(context, args[1], Kind::Set)
}

fn has(context: &mut Context, record: Option<&Record>, member: &[u8]) -> Result<bool, Fault> {
    let Some(record) = record else { return Ok(false) };
    let key = key_of(context, record, &[member]);
    Ok(context.server.data.get(&key)?.is_some())
}

pub(crate) fn sismember(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.look(args[1], Kind::Set)?;
    let is_there = has(context, found.as_ref().map(|found| &found.record), args[2])?;
    context.reply.bool(is_there);
    Ok(())
}

pub(crate) fn smismember(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.look(args[1], Kind::Set)?;
    context.reply.array(args.len() - 2);
    for member in &args[2..] {
        let is_there = has(context, found.as_ref().map(|found| &found.record), member)?;
        context.reply.bool(is_there);
    }
    Ok(())
}

pub(crate) fn smembers(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.look(args[1], Kind::Set)?;
    let members = found.map_or(Ok(Vec::new()), |found| all(context, &found.record, &[]))?;
    context.reply.set(members.len());
    members.iter().for_each(|(member, _)| context.reply.bulk(member));
    Ok(())
}

pub(crate) fn srandmember(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.look(args[1], Kind::Set)?;
    match (args.get(2), &found) {
        (None, None) => context.reply.null(),
        (None, Some(found)) => {
            let member = random_member(context, &found.record)?;
            context.reply.bulk_or_null(member.as_deref());
        }
        (Some(count), found) => {
            let count = integer(count)?;
            let chosen = match found {
                None => Chosen::Each(Vec::new()),
                Some(found) => choose(context, &found.record, &[], count)?,
            };
            context.reply.array(chosen.len());
            chosen.each(context, |context, (member, _)| {
                context.reply.bulk(member);
                Ok(())
            })?;
        }
    }
    Ok(())
}

pub(crate) fn spop(context: &mut Context, args: &[&[u8]]) -> Done {
    let count = pop_count(context, args)?;
    let Some(found) = context.find_kind(args[1], Kind::Set)? else {
        match count {
            None => context.reply.null(),
            Some(_) => context.reply.set(0),
        }
        return Ok(());
    };
    let chosen: Vec<Vec<u8>> = match count {
        None => random_member(context, &found.record)?.into_iter().collect(),
        Some(count) => {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            match choose(context, &found.record, &[], count)? {
                Chosen::Each(members) | Chosen::OneOf(members, _) => {
                    members.into_iter().map(|(member, _)| member).collect()
                }
            }
        }
    };
    let mut request = vec![args[0], args[1]];
    request.extend(chosen.iter().map(Vec::as_slice));
    remove(context, &request, &found)?;
    match count {
        None => context.reply.bulk_or_null(chosen.first().map(Vec::as_slice)),
        Some(_) => {
            context.reply.set(chosen.len());
            chosen.iter().for_each(|member| context.reply.bulk(member));
        }
    }
    Ok(())
}

pub(crate) fn smove(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.find_kind(args[1], Kind::Set)?;
    let other = context.find_kind(args[2], Kind::Set)?;
    let is_there = has(context, found.as_ref().map(|found| &found.record), args[3])?;
    let Some(found) = found.filter(|_| is_there) else {
        context.reply.bool(false);
        return Ok(());
    };
    if args[1] != args[2] {
        remove(context, &[args[0], args[1], args[3]], &found)?;
        let mut record = or_new(context, other.as_ref(), Kind::Set)?;
        if !has(context, Some(&record), args[3])? {
            let key = key_of(context, &record, &[args[3]]);
            context.server.data.put(&key, &[])?;
            record.count += 1;
            finish(context, args[2], other.as_ref(), &record)?;
        }
    }
    context.reply.bool(true);
    Ok(())
}

/// How sets are put together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Union,
    Intersection,
    Difference,
}

fn members(context: &mut Context, key: &[u8]) -> Result<BTreeSet<Vec<u8>>, Fault> {
    let found = context.find_kind(key, Kind::Set)?;
    let members = found.map_or(Ok(Vec::new()), |found| all(context, &found.record, &[]))?;
    Ok(members.into_iter().map(|(member, _)| member).collect())
}

/// Why a union is refused that a command cannot hold.
pub(super) fn union_too_long(most: usize) -> Fault {
    Fault::new(format!("ERR the union has more than {most} bytes (--reply-bytes)"))
}

fn together(context: &mut Context, keys: &[&[u8]], how: How) -> Result<BTreeSet<Vec<u8>>, Fault> {
    let mut result = members(context, keys[0])?;
    let mut bytes: usize = result.iter().map(Vec::len).sum();
    let most = context.server.options.limits.reply_bytes;
    for key in &keys[1..] {
        match how {
            How::Union => {
                for member in members(context, key)? {
                    let len = member.len();
                    bytes += if result.insert(member) { len } else { 0 };
                }
                if bytes > most {
                    return Err(union_too_long(most));
                }
            }
            How::Intersection | How::Difference => {
                let found = context.find_kind(key, Kind::Set)?;
                let mut kept = BTreeSet::new();
                for member in result {
                    let is_there = has(context, found.as_ref().map(|found| &found.record), &member)?;
                    if is_there == (how == How::Intersection) {
                        kept.insert(member);
                    }
                }
                result = kept;
            }
        }
    }
    Ok(result)
}

fn reply_with(context: &mut Context, keys: &[&[u8]], how: How) -> Done {
    let result = together(context, keys, how)?;
    context.reply.set(result.len());
    result.iter().for_each(|member| context.reply.bulk(member));
    Ok(())
}

fn store(context: &mut Context, args: &[&[u8]], how: How) -> Done {
    let result = together(context, &args[2..], how)?;
    if let Some(old) = context.find(args[1])? {
        context.delete(args[1], &old.record)?;
    }
    let mut record = or_new(context, None, Kind::Set)?;
    for member in &result {
        let key = key_of(context, &record, &[member]);
        context.server.data.put(&key, &[])?;
    }
    record.count = result.len() as u64;
    finish(context, args[1], None, &record)?;
    context.reply.count(record.count);
    Ok(())
}

pub(crate) fn sunion(context: &mut Context, args: &[&[u8]]) -> Done {
    reply_with(context, &args[1..], How::Union)
}

pub(crate) fn sinter(context: &mut Context, args: &[&[u8]]) -> Done {
    reply_with(context, &args[1..], How::Intersection)
}

pub(crate) fn sdiff(context: &mut Context, args: &[&[u8]]) -> Done {
    reply_with(context, &args[1..], How::Difference)
}

pub(crate) fn sunionstore(context: &mut Context, args: &[&[u8]]) -> Done {
    store(context, args, How::Union)
}

pub(crate) fn sinterstore(context: &mut Context, args: &[&[u8]]) -> Done {
    store(context, args, How::Intersection)
}

pub(crate) fn sdiffstore(context: &mut Context, args: &[&[u8]]) -> Done {
    store(context, args, How::Difference)
}

pub(crate) fn sintercard(context: &mut Context, args: &[&[u8]]) -> Done {
    let (keys, rest) = numbered_keys(&args[1..])?;
    let limit = limit_of(rest)?;
    let count = together(context, keys, How::Intersection)?.len() as u64;
    context.reply.count(count.min(limit));
    Ok(())
}
