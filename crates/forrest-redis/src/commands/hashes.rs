//! Hashes.

use super::members::{Member, all, finish, key_of, or_new, random, random_member, reply_count};
use super::{Context, float, integer, is};
use crate::data::Found;
use crate::fault::{Done, Fault, SYNTAX};
use crate::keys::{Kind, Record};
use crate::number;

/// Sets fields, and returns how many are new.
fn set_fields(context: &mut Context, args: &[&[u8]], command: &str) -> Result<u64, Fault> {
    if args.len() % 2 == 1 {
        return Err(Fault::new(format!("ERR wrong number of arguments for '{command}' command")));
    }
    let found = context.find_kind(args[1], Kind::Hash)?;
    let mut record = or_new(context, found.as_ref(), Kind::Hash)?;
    if args.len() > 4 {
        context.server.data.read_own_writes();
    }
    let before = record.count;
    for pair in args[2..].chunks_exact(2) {
        let key = key_of(context, &record, &[pair[0]]);
        let is_new = context.server.data.get(&key)?.is_none();
        record.count += u64::from(is_new);
        context.server.data.put(&key, pair[1])?;
    }
    finish(context, args[1], found.as_ref(), &record)?;
    Ok(record.count - before)
}

pub(crate) fn hset(context: &mut Context, args: &[&[u8]]) -> Done {
    let new = set_fields(context, args, "hset")?;
    context.reply.count(new);
    Ok(())
}

pub(crate) fn hmset(context: &mut Context, args: &[&[u8]]) -> Done {
    set_fields(context, args, "hmset")?;
    context.reply.ok();
    Ok(())
}

pub(crate) fn hsetnx(context: &mut Context, args: &[&[u8]]) -> Done {
    let is_there = field(context, args[1], args[2])?.1.is_some();
    if !is_there {
        set_fields(context, args, "hsetnx")?;
    }
    context.reply.bool(!is_there);
    Ok(())
}

/// A hash, and the value of one of its fields.
fn field(
    context: &mut Context,
    key: &[u8],
    field: &[u8],
) -> Result<(Option<Found>, Option<forrest::Value>), Fault> {
    let Some(found) = context.look(key, Kind::Hash)? else { return Ok((None, None)) };
    let at = key_of(context, &found.record, &[field]);
    let value = context.server.data.get(&at)?;
    Ok((Some(found), value))
}

pub(crate) fn hget(context: &mut Context, args: &[&[u8]]) -> Done {
    let (_, value) = field(context, args[1], args[2])?;
    context.reply.bulk_or_null(value.as_deref());
    Ok(())
}

pub(crate) fn hmget(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.look(args[1], Kind::Hash)?;
    context.reply.array(args.len() - 2);
    for field in &args[2..] {
        let value = match &found {
            None => None,
            Some(found) => {
                let key = key_of(context, &found.record, &[field]);
                context.server.data.get(&key)?
            }
        };
        context.reply.bulk_or_null(value.as_deref());
    }
    Ok(())
}

pub(crate) fn hexists(context: &mut Context, args: &[&[u8]]) -> Done {
    let (_, value) = field(context, args[1], args[2])?;
    context.reply.bool(value.is_some());
    Ok(())
}

pub(crate) fn hstrlen(context: &mut Context, args: &[&[u8]]) -> Done {
    let (_, value) = field(context, args[1], args[2])?;
    context.reply.count(value.map_or(0, |value| value.len() as u64));
    Ok(())
}

pub(crate) fn hlen(context: &mut Context, args: &[&[u8]]) -> Done {
    reply_count(context, args[1], Kind::Hash)
}

pub(crate) fn hdel(context: &mut Context, args: &[&[u8]]) -> Done {
    let Some(found) = context.find_kind(args[1], Kind::Hash)? else {
        context.reply.integer(0);
        return Ok(());
    };
    let removed = remove(context, args, &found)?;
    context.reply.count(removed);
    Ok(())
}

/// Removes members that are keys by themselves.
pub(crate) fn remove(context: &mut Context, args: &[&[u8]], found: &Found) -> Result<u64, Fault> {
    let mut record = found.record;
    if args.len() > 3 {
        context.server.data.read_own_writes();
    }
    for member in &args[2..] {
        let key = key_of(context, &record, &[member]);
        if context.server.data.get(&key)?.is_some() {
            context.server.data.remove(&key)?;
            record.count -= 1;
        }
    }
    let removed = found.record.count - record.count;
    if removed > 0 {
        finish(context, args[1], Some(found), &record)?;
    }
    Ok(removed)
}

fn entries(context: &mut Context, args: &[&[u8]], fields: bool, values: bool) -> Done {
    let found = context.look(args[1], Kind::Hash)?;
    let pairs = found.map_or(Ok(Vec::new()), |found| all(context, &found.record, &[]))?;
    match fields && values {
        true => context.reply.map(pairs.len()),
        false => context.reply.array(pairs.len()),
    }
    for (field, value) in &pairs {
        if fields {
            context.reply.bulk(field);
        }
        if values {
            context.reply.bulk(value);
        }
    }
    Ok(())
}

pub(crate) fn hgetall(context: &mut Context, args: &[&[u8]]) -> Done {
    entries(context, args, true, true)
}

pub(crate) fn hkeys(context: &mut Context, args: &[&[u8]]) -> Done {
    entries(context, args, true, false)
}

pub(crate) fn hvals(context: &mut Context, args: &[&[u8]]) -> Done {
    entries(context, args, false, true)
}

/// Sets one field to what `change` makes of its value, and returns that.
fn change(
    context: &mut Context,
    args: &[&[u8]],
    change: impl FnOnce(Option<&[u8]>) -> Result<Vec<u8>, Fault>,
) -> Result<Vec<u8>, Fault> {
    let (_, value) = field(context, args[1], args[2])?;
    let value = change(value.as_deref())?;
    set_fields(context, &[args[0], args[1], args[2], &value], "hset")?;
    Ok(value)
}

pub(crate) fn hincrby(context: &mut Context, args: &[&[u8]]) -> Done {
    let delta = integer(args[3])?;
    let mut sum = 0;
    change(context, args, |value| {
        let number = value.map_or(Some(0), number::integer);
        let number = number.ok_or(Fault::new("ERR hash value is not an integer"))?;
        sum = number.checked_add(delta).ok_or(Fault::new("ERR increment or decrement would overflow"))?;
        Ok(number::text(sum))
    })?;
    context.reply.integer(sum);
    Ok(())
}

pub(crate) fn hincrbyfloat(context: &mut Context, args: &[&[u8]]) -> Done {
    let delta = float(args[3])?;
    if !delta.is_finite() {
        return Err(Fault::new("ERR value is NaN or Infinity"));
    }
    let text = change(context, args, |value| {
        let number = value.map_or(Some(0.0), number::double);
        let sum = number.ok_or(Fault::new("ERR hash value is not a float"))? + delta;
        if !sum.is_finite() {
            return Err(Fault::new("ERR increment would produce NaN or Infinity"));
        }
        Ok(number::sum_text(sum).into_bytes())
    })?;
    context.reply.bulk(&text);
    Ok(())
}

/// Members that were chosen: each once, or a number of times one of them.
pub(crate) enum Chosen {
    Each(Vec<Member>),
    OneOf(Vec<Member>, u64),
}

impl Chosen {
    pub(crate) fn len(&self) -> usize {
        match self {
            Chosen::Each(members) => members.len(),
            Chosen::OneOf(_, count) => *count as usize,
        }
    }

    /// Passes them to `show`, until the reply is too long. What is chosen several times is not held several times.
    pub(crate) fn each(
        &self,
        context: &mut Context,
        mut show: impl FnMut(&mut Context, &Member) -> Done,
    ) -> Done {
        for at in 0..self.len() {
            let member = match self {
                Chosen::Each(members) => &members[at],
                Chosen::OneOf(members, _) => {
                    &members[context.server.random.below(members.len() as u64) as usize]
                }
            };
            show(context, member)?;
            if context.reply.is_over() {
                break;
            }
        }
        Ok(())
    }
}

/// Random members: different ones, or with repetitions if their number is negative.
pub(crate) fn choose(
    context: &mut Context,
    record: &Record,
    part: &[u8],
    count: i64,
) -> Result<Chosen, Fault> {
    if count == 0 {
        return Ok(Chosen::Each(Vec::new()));
    }
    // Most members that are chosen one by one. Of more, all are read.
    const ONE_BY_ONE: u64 = 16;
    let many = count.unsigned_abs();
    let limit = context.server.options.limits.reply_bytes as u64;
    if count < 0 && many > limit / 8 {
        return Err(Fault::new("ERR value is out of range"));
    }
    if record.count > 1000 && many <= ONE_BY_ONE {
        let prefix = key_of(context, record, &[part]);
        let mut chosen: Vec<Member> = Vec::new();
        // One that was chosen before is rarely chosen again.
        for _ in 0..4 * many {
            if chosen.len() as u64 == many {
                break;
            }
            let Some(key) = random(context, &prefix, Some(record.count))? else { break };
            let member = &key[prefix.len()..];
            if count > 0 && chosen.iter().any(|(known, _)| known == member) {
                continue;
            }
            let value = context.server.data.get(&key)?;
            chosen.push((member.to_vec(), value.map_or(Vec::new(), |value| value.to_vec())));
        }
        if chosen.len() as u64 == many {
            return Ok(Chosen::Each(chosen));
        }
    }
    let mut members = all(context, record, part)?;
    let len = members.len() as u64;
    if count < 0 {
        return Ok(if len == 0 { Chosen::Each(members) } else { Chosen::OneOf(members, many) });
    }
    for at in 0..many.min(len) {
        let other = at + context.server.random.below(len - at);
        members.swap(at as usize, other as usize);
    }
    members.truncate(many.min(len) as usize);
    Ok(Chosen::Each(members))
}

pub(crate) fn hrandfield(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.look(args[1], Kind::Hash)?;
    if args.len() == 2 {
        let member = found.map_or(Ok(None), |found| random_member(context, &found.record))?;
        context.reply.bulk_or_null(member.as_deref());
        return Ok(());
    }
    let count = integer(args[2])?;
    let with_values = match args.get(3) {
        None => false,
        Some(word) if is(word, "WITHVALUES") && args.len() == 4 => true,
        Some(_) => return Err(SYNTAX),
    };
    let chosen = match &found {
        None => Chosen::Each(Vec::new()),
        Some(found) => choose(context, &found.record, &[], count)?,
    };
    let nests = with_values && context.reply.is_3;
    context.reply.array(if with_values && !nests { chosen.len() * 2 } else { chosen.len() });
    chosen.each(context, |context, (field, value)| {
        if nests {
            context.reply.array(2);
        }
        context.reply.bulk(field);
        if with_values {
            context.reply.bulk(value);
        }
        Ok(())
    })
}
