//! Lists: elements at positions, which grow to both sides from the middle of the numbers.
//!
//! Both ends are reached at once. `LINSERT` and `LREM` in the middle move the elements of the shorter side or all.

use super::members::{finish, first, key_of, keys_end_and_count, or_new, pop_count, reply_count};
use super::{Context, integer, is, natural, slice};
use crate::data::Found;
use crate::fault::{DAMAGED, Done, Fault, NO_KEY, SYNTAX};
use crate::keys::{Kind, MEMBER_BYTES, Record};
use std::ops::{ControlFlow, Range};

/// The position of the first element of a new list.
const MIDDLE: u64 = 1 << 62;

fn position(context: &Context, record: &Record, number: u64) -> Vec<u8> {
    key_of(context, record, &[&record.first.wrapping_add(number).to_be_bytes()])
}

/// The elements of a part of a list.
fn elements(context: &mut Context, record: &Record, part: Range<u64>) -> Result<Vec<Vec<u8>>, Fault> {
    let most = context.server.options.limits.reply_bytes;
    let (start, end) = (position(context, record, part.start), position(context, record, part.end));
    let (mut elements, mut bytes) = (Vec::new(), 0);
    context.server.data.scan((&start, &end), false, |_, value| {
        bytes += value.len() + MEMBER_BYTES;
        elements.push(value.to_vec());
        if bytes <= most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    if bytes > most {
        return Err(Fault::new(format!("ERR the part has more than {most} bytes (--reply-bytes)")));
    }
    Ok(elements)
}

/// Adds elements at one end, one after the other.
fn push_all(
    context: &mut Context,
    key: &[u8],
    found: Option<&Found>,
    elements: &[&[u8]],
    at_front: bool,
) -> Result<u64, Fault> {
    let mut record = or_new(context, found, Kind::List)?;
    if found.is_none() {
        record.first = MIDDLE;
    }
    for element in elements {
        if at_front {
            record.first -= 1;
        }
        let at = position(context, &record, if at_front { 0 } else { record.count });
        context.server.data.put(&at, element)?;
        record.count += 1;
    }
    finish(context, key, found, &record)?;
    Ok(record.count)
}

fn push(context: &mut Context, args: &[&[u8]], at_front: bool, only_old: bool) -> Done {
    let found = context.find_kind(args[1], Kind::List)?;
    if found.is_none() && only_old {
        context.reply.integer(0);
        return Ok(());
    }
    let count = push_all(context, args[1], found.as_ref(), &args[2..], at_front)?;
    context.reply.count(count);
    Ok(())
}

pub(crate) fn lpush(context: &mut Context, args: &[&[u8]]) -> Done {
    push(context, args, true, false)
}

pub(crate) fn rpush(context: &mut Context, args: &[&[u8]]) -> Done {
    push(context, args, false, false)
}

pub(crate) fn lpushx(context: &mut Context, args: &[&[u8]]) -> Done {
    push(context, args, true, true)
}

pub(crate) fn rpushx(context: &mut Context, args: &[&[u8]]) -> Done {
    push(context, args, false, true)
}

/// Keeps a part of a list.
fn keep(context: &mut Context, key: &[u8], found: &Found, part: Range<u64>) -> Done {
    let old = found.record;
    let mut record = old;
    record.count = part.end - part.start;
    if record.count > 0 {
        record.first = old.first + part.start;
        for gone in [0..part.start, part.end..old.count] {
            let (start, end) = (position(context, &old, gone.start), position(context, &old, gone.end));
            match gone.end - gone.start {
                0 => {}
                1 => context.server.data.remove(&start)?,
                _ => context.server.data.remove_range(&start, &end)?,
            }
        }
    }
    finish(context, key, Some(found), &record)
}

/// Takes elements from one end, the outermost first.
pub(super) fn pop_some(
    context: &mut Context,
    key: &[u8],
    found: &Found,
    count: u64,
    at_front: bool,
) -> Result<Vec<Vec<u8>>, Fault> {
    let len = found.record.count;
    let count = count.min(len);
    let (part, rest) = match at_front {
        true => (0..count, count..len),
        false => (len - count..len, 0..len - count),
    };
    let mut popped = elements(context, &found.record, part)?;
    if !at_front {
        popped.reverse();
    }
    if count > 0 {
        keep(context, key, found, rest)?;
    }
    Ok(popped)
}

fn pop(context: &mut Context, args: &[&[u8]], at_front: bool) -> Done {
    let count = pop_count(context, args)?;
    let Some(found) = context.find_kind(args[1], Kind::List)? else {
        match count {
            None => context.reply.null(),
            Some(_) => context.reply.null_array(),
        }
        return Ok(());
    };
    let popped = pop_some(context, args[1], &found, count.unwrap_or(1), at_front)?;
    match count {
        None => context.reply.bulk_or_null(popped.first().map(Vec::as_slice)),
        Some(_) => {
            context.reply.array(popped.len());
            popped.iter().for_each(|element| context.reply.bulk(element));
        }
    }
    Ok(())
}

pub(crate) fn lpop(context: &mut Context, args: &[&[u8]]) -> Done {
    pop(context, args, true)
}

pub(crate) fn rpop(context: &mut Context, args: &[&[u8]]) -> Done {
    pop(context, args, false)
}

/// Takes elements of the first of some keys that there is, and replies with it and them. False, without a reply, if
/// there is none.
pub(super) fn pop_first(context: &mut Context, args: &[&[u8]]) -> Result<bool, Fault> {
    let (keys, at_front, count) = keys_end_and_count(args, side)?;
    let Some((key, found)) = first(context, keys, Kind::List)? else { return Ok(false) };
    let popped = pop_some(context, key, &found, count, at_front)?;
    context.reply.array(2);
    context.reply.bulk(key);
    context.reply.array(popped.len());
    popped.iter().for_each(|element| context.reply.bulk(element));
    Ok(true)
}

pub(crate) fn lmpop(context: &mut Context, args: &[&[u8]]) -> Done {
    if !pop_first(context, &args[1..])? {
        context.reply.null_array();
    }
    Ok(())
}

pub(crate) fn llen(context: &mut Context, args: &[&[u8]]) -> Done {
    reply_count(context, args[1], Kind::List)
}

pub(crate) fn lrange(context: &mut Context, args: &[&[u8]]) -> Done {
    let (start, stop) = (integer(args[2])?, integer(args[3])?);
    let Some(found) = context.look(args[1], Kind::List)? else {
        context.reply.array(0);
        return Ok(());
    };
    let record = &found.record;
    let part = slice(start, stop, record.count);
    let (start, end) = (position(context, record, part.start), position(context, record, part.end));
    let Context { server, reply, .. } = context;
    reply.array((part.end - part.start) as usize);
    server.data.scan((&start, &end), false, |_, value| {
        reply.bulk(value);
        if reply.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

/// The number of an element, if the list is that long.
fn number(record: &Record, index: i64) -> Option<u64> {
    let part = slice(index, index, record.count);
    (part.end > part.start && (index >= 0 || index.unsigned_abs() <= record.count)).then_some(part.start)
}

pub(crate) fn lindex(context: &mut Context, args: &[&[u8]]) -> Done {
    let index = integer(args[2])?;
    let found = context.look(args[1], Kind::List)?;
    let at = found.and_then(|found| Some((found.record, number(&found.record, index)?)));
    let value = match at {
        None => None,
        Some((record, number)) => {
            let key = position(context, &record, number);
            context.server.data.get(&key)?
        }
    };
    context.reply.bulk_or_null(value.as_deref());
    Ok(())
}

/// `LPOS key element [RANK rank] [COUNT count] [MAXLEN elements]`.
pub(crate) fn lpos(context: &mut Context, args: &[&[u8]]) -> Done {
    let (mut rank, mut count, mut most) = (1, None, u64::MAX);
    let mut rest = args[3..].iter();
    while let Some(word) = rest.next() {
        let value = rest.next().ok_or(SYNTAX)?;
        let none_or_all = |number: u64| if number == 0 { u64::MAX } else { number };
        match word {
            word if is(word, "RANK") => rank = integer(value)?,
            word if is(word, "COUNT") => {
                count = Some(none_or_all(natural(value, "ERR COUNT can't be negative")?))
            }
            word if is(word, "MAXLEN") => most = none_or_all(natural(value, "ERR MAXLEN can't be negative")?),
            _ => return Err(SYNTAX),
        }
    }
    if rank == 0 || rank == i64::MIN {
        let why = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to \
                   start from the end of the list";
        return Err(Fault::new(if rank == 0 { why } else { "ERR value is out of range" }));
    }
    let mut found = Vec::new();
    if let Some(list) = context.look(args[1], Kind::List)? {
        let record = &list.record;
        let (start, end) = (position(context, record, 0), position(context, record, record.count));
        let (mut number, mut skip) = (0, rank.unsigned_abs() - 1);
        context.server.data.scan((&start, &end), rank < 0, |_, value| {
            if value == args[2] {
                if skip == 0 {
                    found.push(if rank < 0 { record.count - 1 - number } else { number });
                }
                skip = skip.saturating_sub(1);
            }
            number += 1;
            let is_done = found.len() as u64 >= count.unwrap_or(1) || number >= most;
            if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    }
    match (count, found.first()) {
        (None, None) => context.reply.null(),
        (None, Some(first)) => context.reply.count(*first),
        (Some(_), _) => {
            context.reply.array(found.len());
            found.iter().for_each(|number| context.reply.count(*number));
        }
    }
    Ok(())
}

pub(crate) fn lset(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.find_kind(args[1], Kind::List)?.ok_or(NO_KEY)?;
    let number = number(&found.record, integer(args[2])?).ok_or(Fault::new("ERR index out of range"))?;
    let key = position(context, &found.record, number);
    context.server.data.put(&key, args[3])?;
    context.touch(args[1]);
    context.reply.ok();
    Ok(())
}

pub(crate) fn ltrim(context: &mut Context, args: &[&[u8]]) -> Done {
    let (start, stop) = (integer(args[2])?, integer(args[3])?);
    if let Some(found) = context.find_kind(args[1], Kind::List)? {
        let part = slice(start, stop, found.record.count);
        keep(context, args[1], &found, part)?;
    }
    context.reply.ok();
    Ok(())
}

/// Replaces all elements of a list.
fn rewrite(context: &mut Context, key: &[u8], found: &Found, elements: &[Vec<u8>]) -> Done {
    let mut record = found.record;
    record.generation = context.server.data.new_generation()?;
    (record.first, record.count) = (MIDDLE, elements.len() as u64);
    for (number, element) in elements.iter().enumerate() {
        let at = position(context, &record, number as u64);
        context.server.data.put(&at, element)?;
    }
    finish(context, key, Some(found), &record)
}

pub(crate) fn linsert(context: &mut Context, args: &[&[u8]]) -> Done {
    let is_after = match args[2] {
        word if is(word, "BEFORE") => false,
        word if is(word, "AFTER") => true,
        _ => return Err(SYNTAX),
    };
    let Some(found) = context.find_kind(args[1], Kind::List)? else {
        context.reply.integer(0);
        return Ok(());
    };
    let mut all = elements(context, &found.record, 0..found.record.count)?;
    let Some(at) = all.iter().position(|element| element == args[3]) else {
        context.reply.integer(-1);
        return Ok(());
    };
    all.insert(at + usize::from(is_after), args[4].to_vec());
    rewrite(context, args[1], &found, &all)?;
    context.reply.count(all.len() as u64);
    Ok(())
}

pub(crate) fn lrem(context: &mut Context, args: &[&[u8]]) -> Done {
    let count = integer(args[2])?;
    let Some(found) = context.find_kind(args[1], Kind::List)? else {
        context.reply.integer(0);
        return Ok(());
    };
    let mut all = elements(context, &found.record, 0..found.record.count)?;
    let (before, mut left) = (all.len(), if count == 0 { u64::MAX } else { count.unsigned_abs() });
    if count < 0 {
        all.reverse();
    }
    all.retain(|element| {
        let goes = left > 0 && element == args[3];
        left -= u64::from(goes);
        !goes
    });
    if count < 0 {
        all.reverse();
    }
    if all.len() < before {
        rewrite(context, args[1], &found, &all)?;
    }
    context.reply.count((before - all.len()) as u64);
    Ok(())
}

pub(super) fn side(word: &[u8]) -> Result<bool, Fault> {
    match word {
        word if is(word, "LEFT") => Ok(true),
        word if is(word, "RIGHT") => Ok(false),
        _ => Err(SYNTAX),
    }
}

/// Moves an element, and replies with it. False, without a reply, if there is none.
pub(super) fn move_one(
    context: &mut Context,
    from: &[u8],
    to: &[u8],
    from_front: bool,
    to_front: bool,
) -> Result<bool, Fault> {
    let Some((_, found)) = first(context, &[from], Kind::List)? else { return Ok(false) };
    let mut other = context.find_kind(to, Kind::List)?;
    let element;
    if from == to {
        // Both changes are of one record.
        let mut record = found.record;
        let end = |record: &Record, is_front| if is_front { 0 } else { record.count - 1 };
        let at = position(context, &record, end(&record, from_front));
        element = context.server.data.get(&at)?.ok_or(DAMAGED)?.to_vec();
        if from_front != to_front {
            context.server.data.remove(&at)?;
            record.first = if from_front { record.first + 1 } else { record.first - 1 };
            let at = position(context, &record, end(&record, to_front));
            context.server.data.put(&at, &element)?;
        }
        finish(context, from, Some(&found), &record)?;
    } else {
        let mut popped = pop_some(context, from, &found, 1, from_front)?;
        element = popped.pop().ok_or(DAMAGED)?;
        push_all(context, to, other.take().as_ref(), &[&element], to_front)?;
    }
    context.reply.bulk(&element);
    Ok(true)
}

fn move_at_once(context: &mut Context, args: &[&[u8]], from_front: bool, to_front: bool) -> Done {
    if !move_one(context, args[1], args[2], from_front, to_front)? {
        context.reply.null();
    }
    Ok(())
}

pub(crate) fn lmove(context: &mut Context, args: &[&[u8]]) -> Done {
    move_at_once(context, args, side(args[3])?, side(args[4])?)
}

pub(crate) fn rpoplpush(context: &mut Context, args: &[&[u8]]) -> Done {
    move_at_once(context, args, false, true)
}
