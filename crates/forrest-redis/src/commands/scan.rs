//! `SCAN` and its family: a part of the keys or members at a time.
//!
//! Keys come in their order. A key that exists from the beginning of an iteration to its end is returned exactly once,
//! and one that comes or goes meanwhile at most once.

use super::members::{end_of, key_of};
use super::scored::BY_MEMBER;
use super::{Context, is, natural};
use crate::fault::{DAMAGED, Done, Fault, SYNTAX};
use crate::glob::Pattern;
use crate::keys::{self, Kind, RECORD_BYTES, Record};
use crate::number;
use std::ops::ControlFlow;

/// Pairs that a step looks at, unless its client says otherwise.
const COUNT: u64 = 10;
/// Most pairs that a step looks at, so that others do not wait for it.
const COUNT_MAX: u64 = 10_000;

/// Bytes of keys, or of members with their values, after which a step ends.
const BYTES_MAX: usize = 1 << 20;

struct Asked<'a> {
    pattern: Pattern<'a>,
    count: u64,
    kind: Option<Kind>,
    leaves_values: bool,
}

fn asked<'a>(args: &[&'a [u8]], kind_of_key: Option<Kind>) -> Result<Asked<'a>, Fault> {
    let mut asked = Asked { pattern: Pattern::new(b"*"), count: COUNT, kind: None, leaves_values: false };
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if is(word, "MATCH") {
            asked.pattern = Pattern::new(rest.next().ok_or(SYNTAX)?);
        } else if is(word, "COUNT") {
            let count = natural(rest.next().ok_or(SYNTAX)?, "ERR value is not an integer or out of range")?;
            asked.count = Some(count).filter(|count| *count > 0).ok_or(SYNTAX)?.min(COUNT_MAX);
        } else if is(word, "TYPE") && kind_of_key.is_none() {
            let name = rest.next().ok_or(SYNTAX)?;
            let stream = is(name, "stream") || is(name, "module");
            let kind = Kind::of_name(name);
            if kind.is_none() && !stream {
                return Err(Fault::new("ERR unknown type name"));
            }
            // There are none of the other types.
            asked.count = if stream { 0 } else { asked.count };
            asked.kind = kind;
        } else if is(word, "NOVALUES") && kind_of_key == Some(Kind::Hash)
            || is(word, "NOSCORES") && kind_of_key == Some(Kind::SortedSet)
        {
            asked.leaves_values = true;
        } else {
            return Err(SYNTAX);
        }
    }
    Ok(asked)
}

/// Where a cursor continues: `start` for 0.
fn place(context: &Context, cursor: &[u8], start: &[u8], end: &[u8]) -> Result<Vec<u8>, Fault> {
    let number = number::integer(cursor).and_then(|number| u64::try_from(number).ok());
    match number.ok_or(Fault::new("ERR invalid cursor"))? {
        0 => Ok(start.to_vec()),
        number => match context.server.cursors.get(number) {
            Some(key) if key >= start && key < end => Ok(key.to_vec()),
            _ => Err(Fault::new("ERR invalid cursor: it is of another key, or too old; begin again with 0")),
        },
    }
}

fn reply_cursor(context: &mut Context, next: Option<Vec<u8>>) {
    let cursor = next.map_or(0, |key| context.server.cursors.keep(key));
    context.reply.bulk(cursor.to_string().as_bytes());
}

pub(crate) fn scan(context: &mut Context, args: &[&[u8]]) -> Done {
    let mut asked = asked(&args[2..], None)?;
    let slot = context.slot();
    let start = [&keys::records(slot), asked.pattern.prefix()].concat();
    let end = end_of(&start);
    let place = place(context, args[1], &start, &end)?;
    let now = context.server.now_ms();
    let (mut found, mut expired, mut next, mut left) = (Vec::new(), Vec::new(), None, asked.count);
    let (mut failed, mut bytes) = (None, 0);
    context.server.data.scan((&place, &end), false, |key, value| {
        if left == 0 {
            next = Some(key.to_vec());
            return ControlFlow::Break(());
        }
        left -= 1;
        let name = &key[RECORD_BYTES..];
        bytes += name.len();
        if bytes > BYTES_MAX {
            left = 0;
        }
        match (Record::of(value), asked.pattern.matches(name)) {
            (None, _) => failed = Some(DAMAGED),
            (_, Err(error)) => failed = Some(error.into()),
            (Some((record, _)), _) if asked.kind.is_some_and(|kind| kind != record.kind) => {}
            (Some((record, _)), _) if record.is_expired(|| now) => expired.push((name.to_vec(), record)),
            (Some(_), Ok(true)) => found.push(name.to_vec()),
            (Some(_), Ok(false)) => {}
        }
        if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if let Some(failed) = failed {
        return Err(failed);
    }
    for (name, record) in expired {
        context.delete(&name, &record)?;
        context.server.counts.expired += 1;
    }
    context.reply.array(2);
    let next = next.filter(|_| asked.count > 0);
    reply_cursor(context, next);
    context.reply.array(found.len());
    found.iter().for_each(|key| context.reply.bulk(key));
    Ok(())
}

/// A step over the members of a key. `part` is before them, and `show` writes one and returns how many items that was.
fn members(
    context: &mut Context,
    args: &[&[u8]],
    kind: Kind,
    part: &[u8],
    show: fn(&mut Context, &[u8], &[u8], bool) -> usize,
) -> Done {
    let mut asked = asked(&args[3..], Some(kind))?;
    let Some(key) = context.look(args[1], kind)? else {
        context.reply.array(2);
        context.reply.bulk(b"0");
        context.reply.array(0);
        return Ok(());
    };
    let all = key_of(context, &key.record, &[part]);
    let start = [&all[..], asked.pattern.prefix()].concat();
    let end = end_of(&start);
    let place = place(context, args[2], &start, &end)?;
    let (mut found, mut next, mut left, mut failed) = (Vec::new(), None, asked.count, None);
    let mut bytes = 0;
    context.server.data.scan((&place, &end), false, |key, value| {
        if left == 0 {
            next = Some(key.to_vec());
            return ControlFlow::Break(());
        }
        left -= 1;
        match asked.pattern.matches(&key[all.len()..]) {
            Ok(true) => {
                bytes += key.len() + value.len();
                found.push((key[all.len()..].to_vec(), value.to_vec()));
            }
            Ok(false) => {}
            Err(error) => failed = Some(error),
        }
        if bytes > BYTES_MAX {
            left = 0;
        }
        if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if let Some(failed) = failed {
        return Err(failed.into());
    }
    context.reply.array(2);
    reply_cursor(context, next);
    let each = if asked.leaves_values { 1 } else { show(context, &[], &[], true) };
    context.reply.array(found.len() * each);
    for (member, value) in &found {
        if asked.leaves_values {
            context.reply.bulk(member);
        } else {
            show(context, member, value, false);
        }
    }
    Ok(())
}

pub(crate) fn hscan(context: &mut Context, args: &[&[u8]]) -> Done {
    members(context, args, Kind::Hash, &[], |context, field, value, only_counts| {
        if !only_counts {
            context.reply.bulk(field);
            context.reply.bulk(value);
        }
        2
    })
}

pub(crate) fn sscan(context: &mut Context, args: &[&[u8]]) -> Done {
    members(context, args, Kind::Set, &[], |context, member, _, only_counts| {
        if !only_counts {
            context.reply.bulk(member);
        }
        1
    })
}

pub(crate) fn zscan(context: &mut Context, args: &[&[u8]]) -> Done {
    members(context, args, Kind::SortedSet, BY_MEMBER, |context, member, score, only_counts| {
        if !only_counts {
            context.reply.bulk(member);
            let score = keys::score_of(score).unwrap_or(f64::NAN);
            context.reply.bulk(number::double_text(score).as_bytes());
        }
        2
    })
}
