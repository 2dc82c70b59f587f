//! Commands that wait until a key has an element to take: `BLPOP` and its like, for lists and for sorted sets.
//!
//! Each tries its keys in order. If none has an element, the connection waits (see `waiting.rs`), and the command is
//! executed again when one of them has. Within a transaction none waits.

use super::Context;
use super::lists::{self, side};
use super::members::{first, numbered_keys};
use super::zsets;
use crate::client::Wait;
use crate::fault::{Done, Fault};
use crate::keys::Kind;
use crate::number;
use std::time::{Duration, Instant};

/// The replies if nothing came: no array, or no string. Version 3 has one for both.
const NO_ARRAY: &[u8] = b"*-1\r\n";
const NO_STRING: &[u8] = b"$-1\r\n";
const NOTHING: &[u8] = b"_\r\n";

/// When a command that begins now stops waiting; `None` is never.
fn deadline(timeout: &[u8]) -> Result<Option<Instant>, Fault> {
    const WRONG: &str = "ERR timeout is not a float or out of range";
    let seconds = number::double(timeout).filter(|seconds| seconds.is_finite()).ok_or(Fault::new(WRONG))?;
    if seconds < 0.0 {
        return Err(Fault::new("ERR timeout is negative"));
    }
    if seconds == 0.0 {
        return Ok(None);
    }
    let time = Duration::try_from_secs_f64(seconds).ok();
    let end = time
        .and_then(|time| Instant::now().checked_add(time))
        .ok_or(Fault::new("ERR timeout is out of range"))?;
    Ok(Some(end))
}

/// Lets the client wait for keys, or replies that there is nothing where none may wait.
fn wait(
    context: &mut Context,
    args: &[&[u8]],
    keys: &[&[u8]],
    kind: Kind,
    deadline: Option<Instant>,
    nothing: &'static [u8],
) -> Done {
    let nothing = if context.client.is_3 { NOTHING } else { nothing };
    if context.client.in_exec {
        context.reply.raw(nothing);
        return Ok(());
    }
    let owned = |all: &[&[u8]]| all.iter().map(|arg| arg.to_vec()).collect();
    context.client.wait = Some(Wait {
        ticket: 0,
        database: context.client.database,
        keys: owned(keys),
        kind,
        args: owned(args),
        is_3: context.client.is_3,
        drops_reply: false,
        deadline,
        nothing,
    });
    Ok(())
}

/// `BLPOP key [key ...] timeout`, and those of its form.
fn pop_one(context: &mut Context, args: &[&[u8]], kind: Kind, at_front: bool) -> Done {
    let (keys, timeout) = (&args[1..args.len() - 1], args[args.len() - 1]);
    let deadline = deadline(timeout)?;
    let Some((key, found)) = first(context, keys, kind)? else {
        return wait(context, args, keys, kind, deadline, NO_ARRAY);
    };
    if kind == Kind::List {
        let popped = lists::pop_some(context, key, &found, 1, at_front)?;
        context.reply.array(2);
        context.reply.bulk(key);
        popped.iter().for_each(|element| context.reply.bulk(element));
    } else {
        let popped = zsets::pop_some(context, key, &found, 1, !at_front)?;
        context.reply.array(3);
        context.reply.bulk(key);
        for (member, score) in &popped {
            context.reply.bulk(member);
            context.reply.double(*score);
        }
    }
    Ok(())
}

pub(crate) fn blpop(context: &mut Context, args: &[&[u8]]) -> Done {
    pop_one(context, args, Kind::List, true)
}

pub(crate) fn brpop(context: &mut Context, args: &[&[u8]]) -> Done {
    pop_one(context, args, Kind::List, false)
}

pub(crate) fn bzpopmin(context: &mut Context, args: &[&[u8]]) -> Done {
    pop_one(context, args, Kind::SortedSet, true)
}

pub(crate) fn bzpopmax(context: &mut Context, args: &[&[u8]]) -> Done {
    pop_one(context, args, Kind::SortedSet, false)
}

/// `BLMPOP timeout numkeys key [key ...] LEFT|RIGHT [COUNT count]`, and its like.
fn pop_many(context: &mut Context, args: &[&[u8]], kind: Kind) -> Done {
    let deadline = deadline(args[1])?;
    let (keys, _) = numbered_keys(&args[2..])?;
    let is_done = match kind {
        Kind::List => lists::pop_first(context, &args[2..])?,
        _ => zsets::pop_first(context, &args[2..])?,
    };
    if is_done { Ok(()) } else { wait(context, args, keys, kind, deadline, NO_ARRAY) }
}

pub(crate) fn blmpop(context: &mut Context, args: &[&[u8]]) -> Done {
    pop_many(context, args, Kind::List)
}

pub(crate) fn bzmpop(context: &mut Context, args: &[&[u8]]) -> Done {
    pop_many(context, args, Kind::SortedSet)
}

fn move_one(context: &mut Context, args: &[&[u8]], from_front: bool, to_front: bool) -> Done {
    let deadline = deadline(args[args.len() - 1])?;
    match lists::move_one(context, args[1], args[2], from_front, to_front)? {
        true => Ok(()),
        false => wait(context, args, &args[1..2], Kind::List, deadline, NO_STRING),
    }
}

pub(crate) fn blmove(context: &mut Context, args: &[&[u8]]) -> Done {
    move_one(context, args, side(args[3])?, side(args[4])?)
}

pub(crate) fn brpoplpush(context: &mut Context, args: &[&[u8]]) -> Done {
    move_one(context, args, false, true)
}
