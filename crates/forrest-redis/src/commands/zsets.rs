//! Sorted sets.

use super::hashes::{Chosen, choose};
use super::members::{
    Args, finish, first, key_of, keys_end_and_count, limit_of, numbered_keys, or_new, pop_count, reply_count,
};
use super::scored::{
    Asked, BY_MEMBER, BY_SCORE, Part, Scored, Window, asked, by_member, by_score, count, rank, select,
};
use super::{Context, float, integer, is};
use crate::data::Found;
use crate::fault::{DAMAGED, Done, Fault, SYNTAX, WRONG_TYPE};
use crate::keys::{self, Kind, Record};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The score of a member.
fn score(context: &mut Context, record: &Record, member: &[u8]) -> Result<Option<f64>, Fault> {
    let key = key_of(context, record, &[BY_MEMBER, member]);
    let value = context.server.data.get(&key)?;
    value.map(|value| keys::score_of(&value).ok_or(DAMAGED)).transpose()
}

/// Sets the score of a member, which had another one or none.
fn put(context: &mut Context, record: &mut Record, member: &[u8], old: Option<f64>, new: f64) -> Done {
    let bytes = keys::score_bytes(new);
    match old {
        None => record.count += 1,
        Some(old) => {
            let key = key_of(context, record, &[BY_SCORE, &keys::score_bytes(old), member]);
            context.server.data.remove(&key)?;
        }
    }
    let key = key_of(context, record, &[BY_MEMBER, member]);
    context.server.data.put(&key, &bytes)?;
    let key = key_of(context, record, &[BY_SCORE, &bytes, member]);
    context.server.data.put(&key, &[])
}

fn take(context: &mut Context, record: &mut Record, member: &[u8], old: f64) -> Done {
    let key = key_of(context, record, &[BY_SCORE, &keys::score_bytes(old), member]);
    context.server.data.remove(&key)?;
    let key = key_of(context, record, &[BY_MEMBER, member]);
    context.server.data.remove(&key)?;
    record.count -= 1;
    Ok(())
}

#[derive(Default)]
pub(super) struct Conditions {
    pub(super) only_new: bool,
    pub(super) only_old: bool,
    only_greater: bool,
    only_less: bool,
    pub(super) counts_changed: bool,
    adds: bool,
}

fn conditions(args: &[&[u8]]) -> Result<(Conditions, usize), Fault> {
    let mut found = Conditions::default();
    let mut len = 0;
    for arg in args {
        if is(arg, "NX") {
            found.only_new = true;
        } else if is(arg, "XX") {
            found.only_old = true;
        } else if is(arg, "GT") {
            found.only_greater = true;
        } else if is(arg, "LT") {
            found.only_less = true;
        } else if is(arg, "CH") {
            found.counts_changed = true;
        } else if is(arg, "INCR") {
            found.adds = true;
        } else {
            break;
        }
        len += 1;
    }
    if found.only_new && found.only_old {
        return Err(Fault::new("ERR XX and NX options at the same time are not compatible"));
    }
    let compares = usize::from(found.only_greater) + usize::from(found.only_less);
    if compares + usize::from(found.only_new) > 1 {
        return Err(Fault::new("ERR GT, LT, and/or NX options at the same time are not compatible"));
    }
    Ok((found, len))
}

pub(crate) fn zadd(context: &mut Context, args: &[&[u8]]) -> Done {
    let (conditions, len) = conditions(&args[2..])?;
    let pairs = &args[2 + len..];
    if pairs.is_empty() || pairs.len() % 2 == 1 {
        return Err(SYNTAX);
    }
    if conditions.adds && pairs.len() > 2 {
        return Err(Fault::new("ERR INCR option supports a single increment-element pair"));
    }
    let scores = pairs.chunks_exact(2).map(|pair| float(pair[0])).collect::<Result<Vec<_>, _>>()?;
    add(context, args[1], &conditions, pairs, &scores)
}

/// Sets the scores of members, which are the second ones of the pairs.
pub(super) fn add(
    context: &mut Context,
    key: &[u8],
    conditions: &Conditions,
    pairs: &[&[u8]],
    scores: &[f64],
) -> Done {
    let found = context.find_kind(key, Kind::SortedSet)?;
    if found.is_none() && conditions.only_old {
        if conditions.adds {
            context.reply.null();
        } else {
            context.reply.integer(0);
        }
        return Ok(());
    }
    let mut record = or_new(context, found.as_ref(), Kind::SortedSet)?;
    if scores.len() > 1 {
        context.server.data.read_own_writes();
    }
    let (mut changed, mut last) = (0, None);
    for (pair, given) in pairs.chunks_exact(2).zip(scores) {
        let member = pair[1];
        let old = if found.is_some() || scores.len() > 1 { score(context, &record, member)? } else { None };
        let new = if conditions.adds { old.unwrap_or(0.0) + given } else { *given };
        if new.is_nan() {
            return Err(Fault::new("ERR resulting score is not a number (NaN)"));
        }
        let goes = match old {
            None => !conditions.only_old,
            Some(old) => {
                !(conditions.only_new
                    || conditions.only_greater && new <= old
                    || conditions.only_less && new >= old)
            }
        };
        last = if goes { Some(new) } else { None };
        if goes && old != Some(new) {
            put(context, &mut record, member, old, new)?;
            changed += 1;
        }
    }
    let new = record.count - found.as_ref().map_or(0, |found| found.record.count);
    if changed > 0 {
        finish(context, key, found.as_ref(), &record)?;
        context.touch(key);
    }
    if conditions.adds {
        match last {
            Some(score) => context.reply.double(score),
            None => context.reply.null(),
        }
    } else {
        context.reply.count(if conditions.counts_changed { changed } else { new });
    }
    Ok(())
}

pub(crate) fn zincrby(context: &mut Context, args: &[&[u8]]) -> Done {
    let conditions = Conditions { adds: true, ..Conditions::default() };
    let delta = float(args[2])?;
    add(context, args[1], &conditions, &args[2..], &[delta])
}

pub(crate) fn zrem(context: &mut Context, args: &[&[u8]]) -> Done {
    let Some(found) = context.find_kind(args[1], Kind::SortedSet)? else {
        context.reply.integer(0);
        return Ok(());
    };
    if args.len() > 3 {
        context.server.data.read_own_writes();
    }
    let mut record = found.record;
    for member in &args[2..] {
        if let Some(old) = score(context, &record, member)? {
            take(context, &mut record, member, old)?;
        }
    }
    let removed = found.record.count - record.count;
    if removed > 0 {
        finish(context, args[1], Some(&found), &record)?;
    }
    context.reply.count(removed);
    Ok(())
}

pub(crate) fn zcard(context: &mut Context, args: &[&[u8]]) -> Done {
    reply_count(context, args[1], Kind::SortedSet)
}

pub(super) fn score_of(
    context: &mut Context,
    found: Option<&Found>,
    member: &[u8],
) -> Result<Option<f64>, Fault> {
    found.map_or(Ok(None), |found| score(context, &found.record, member))
}

fn reply_with(context: &mut Context, score: Option<f64>) {
    match score {
        Some(score) => context.reply.double(score),
        None => context.reply.null(),
    }
}

pub(crate) fn zscore(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.look(args[1], Kind::SortedSet)?;
    let score = score_of(context, found.as_ref(), args[2])?;
    reply_with(context, score);
    Ok(())
}

pub(crate) fn zmscore(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.look(args[1], Kind::SortedSet)?;
    context.reply.array(args.len() - 2);
    for member in &args[2..] {
        let score = score_of(context, found.as_ref(), member)?;
        reply_with(context, score);
    }
    Ok(())
}

fn rank_of(context: &mut Context, args: &[&[u8]], is_back: bool) -> Done {
    let with_score = match args.get(3) {
        None => false,
        Some(word) if is(word, "WITHSCORE") => true,
        Some(_) => return Err(SYNTAX),
    };
    let found = context.look(args[1], Kind::SortedSet)?;
    let score = score_of(context, found.as_ref(), args[2])?;
    let (Some(found), Some(score)) = (found, score) else {
        match with_score {
            true => context.reply.null_array(),
            false => context.reply.null(),
        }
        return Ok(());
    };
    let before = rank(context, &found.record, args[2], score)?;
    let rank = if is_back { found.record.count.saturating_sub(before + 1) } else { before };
    if with_score {
        context.reply.array(2);
    }
    context.reply.count(rank);
    if with_score {
        context.reply.double(score);
    }
    Ok(())
}

pub(crate) fn zrank(context: &mut Context, args: &[&[u8]]) -> Done {
    rank_of(context, args, false)
}

pub(crate) fn zrevrank(context: &mut Context, args: &[&[u8]]) -> Done {
    rank_of(context, args, true)
}

/// Writes members, with their scores or without: nested in version 3.
fn reply_members(context: &mut Context, members: &[Scored], with_scores: bool) {
    let nests = with_scores && context.reply.is_3;
    context.reply.array(if with_scores && !nests { members.len() * 2 } else { members.len() });
    for (member, score) in members {
        if nests {
            context.reply.array(2);
        }
        context.reply.bulk(member);
        if with_scores {
            context.reply.double(*score);
        }
    }
}

fn range(context: &mut Context, key: &[u8], asked: &Asked) -> Done {
    let found = context.look(key, Kind::SortedSet)?;
    let members = match found {
        None => Vec::new(),
        Some(found) => select(context, &found.record, &asked.part, asked.is_back, asked.window)?,
    };
    reply_members(context, &members, asked.with_scores);
    Ok(())
}

pub(crate) fn zrange(context: &mut Context, args: &[&[u8]]) -> Done {
    let asked = asked(&args[2..])?;
    range(context, args[1], &asked)
}

pub(crate) fn zrevrange(context: &mut Context, args: &[&[u8]]) -> Done {
    let with_scores = match args.get(4) {
        None => false,
        Some(word) if is(word, "WITHSCORES") => true,
        Some(_) => return Err(SYNTAX),
    };
    let part = Part::Index(integer(args[2])?, integer(args[3])?);
    range(context, args[1], &Asked { part, is_back: true, window: Window::ALL, with_scores })
}

fn old_range(
    context: &mut Context,
    args: &[&[u8]],
    is_back: bool,
    part: fn(&[u8], &[u8]) -> Result<Part, Fault>,
) -> Done {
    let (min, max) = if is_back { (args[3], args[2]) } else { (args[2], args[3]) };
    let mut asked = Asked { part: part(min, max)?, is_back, window: Window::ALL, with_scores: false };
    let is_by_score = matches!(asked.part, Part::Score(..));
    let mut rest = args[4..].iter();
    while let Some(word) = rest.next() {
        if is(word, "WITHSCORES") && is_by_score {
            asked.with_scores = true;
        } else if is(word, "LIMIT") {
            let (offset, count) = (rest.next().ok_or(SYNTAX)?, rest.next().ok_or(SYNTAX)?);
            asked.window = Window::of(offset, count)?;
        } else {
            return Err(SYNTAX);
        }
    }
    range(context, args[1], &asked)
}

pub(crate) fn zrangebyscore(context: &mut Context, args: &[&[u8]]) -> Done {
    old_range(context, args, false, by_score)
}

pub(crate) fn zrevrangebyscore(context: &mut Context, args: &[&[u8]]) -> Done {
    old_range(context, args, true, by_score)
}

pub(crate) fn zrangebylex(context: &mut Context, args: &[&[u8]]) -> Done {
    old_range(context, args, false, by_member)
}

pub(crate) fn zrevrangebylex(context: &mut Context, args: &[&[u8]]) -> Done {
    old_range(context, args, true, by_member)
}

fn count_part(context: &mut Context, key: &[u8], part: &Part) -> Done {
    let found = context.look(key, Kind::SortedSet)?;
    let count = found.map_or(Ok(0), |found| count(context, &found.record, part))?;
    context.reply.count(count);
    Ok(())
}

pub(crate) fn zcount(context: &mut Context, args: &[&[u8]]) -> Done {
    count_part(context, args[1], &by_score(args[2], args[3])?)
}

pub(crate) fn zlexcount(context: &mut Context, args: &[&[u8]]) -> Done {
    count_part(context, args[1], &by_member(args[2], args[3])?)
}

fn remove_part(context: &mut Context, key: &[u8], part: &Part) -> Done {
    let Some(found) = context.find_kind(key, Kind::SortedSet)? else {
        context.reply.integer(0);
        return Ok(());
    };
    let members = select(context, &found.record, part, false, Window::ALL)?;
    remove_all(context, key, &found, &members)?;
    context.reply.count(members.len() as u64);
    Ok(())
}

fn remove_all(context: &mut Context, key: &[u8], found: &Found, members: &[Scored]) -> Done {
    let mut record = found.record;
    if members.len() as u64 == record.count {
        // They go by one range delete.
        record.count = 0;
    } else {
        for (member, score) in members {
            take(context, &mut record, member, *score)?;
        }
    }
    if members.is_empty() { Ok(()) } else { finish(context, key, Some(found), &record) }
}

pub(crate) fn zremrangebyrank(context: &mut Context, args: &[&[u8]]) -> Done {
    remove_part(context, args[1], &Part::Index(integer(args[2])?, integer(args[3])?))
}

pub(crate) fn zremrangebyscore(context: &mut Context, args: &[&[u8]]) -> Done {
    remove_part(context, args[1], &by_score(args[2], args[3])?)
}

pub(crate) fn zremrangebylex(context: &mut Context, args: &[&[u8]]) -> Done {
    remove_part(context, args[1], &by_member(args[2], args[3])?)
}

/// Takes the members with the lowest scores, or with the highest.
pub(super) fn pop_some(
    context: &mut Context,
    key: &[u8],
    found: &Found,
    count: u64,
    is_back: bool,
) -> Result<Vec<Scored>, Fault> {
    let all = Part::Score(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
    let members = select(context, &found.record, &all, is_back, Window { skip: 0, count })?;
    remove_all(context, key, found, &members)?;
    Ok(members)
}

fn is_max(word: &[u8]) -> Result<bool, Fault> {
    match word {
        word if is(word, "MIN") => Ok(false),
        word if is(word, "MAX") => Ok(true),
        _ => Err(SYNTAX),
    }
}

/// Takes members of the first of some keys that there is, and replies with it and them. False, without a reply, if
/// there is none.
pub(super) fn pop_first(context: &mut Context, args: &[&[u8]]) -> Result<bool, Fault> {
    let (keys, is_back, count) = keys_end_and_count(args, is_max)?;
    let Some((key, found)) = first(context, keys, Kind::SortedSet)? else { return Ok(false) };
    let members = pop_some(context, key, &found, count, is_back)?;
    context.reply.array(2);
    context.reply.bulk(key);
    context.reply.array(members.len());
    for (member, score) in &members {
        context.reply.array(2);
        context.reply.bulk(member);
        context.reply.double(*score);
    }
    Ok(true)
}

pub(crate) fn zmpop(context: &mut Context, args: &[&[u8]]) -> Done {
    if !pop_first(context, &args[1..])? {
        context.reply.null_array();
    }
    Ok(())
}

fn pop(context: &mut Context, args: &[&[u8]], is_back: bool) -> Done {
    let count = pop_count(context, args)?;
    let found = context.find_kind(args[1], Kind::SortedSet)?;
    let members = match &found {
        Some(found) => pop_some(context, args[1], found, count.unwrap_or(1), is_back)?,
        None => Vec::new(),
    };
    if count.is_none() && context.reply.is_3 && !members.is_empty() {
        context.reply.array(2);
        context.reply.bulk(&members[0].0);
        context.reply.double(members[0].1);
    } else {
        reply_members(context, &members, true);
    }
    Ok(())
}

pub(crate) fn zpopmin(context: &mut Context, args: &[&[u8]]) -> Done {
    pop(context, args, false)
}

pub(crate) fn zpopmax(context: &mut Context, args: &[&[u8]]) -> Done {
    pop(context, args, true)
}

pub(crate) fn zrandmember(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.look(args[1], Kind::SortedSet)?;
    let count = args.get(2).map_or(Ok(1), |count| integer(count))?;
    let with_scores = match args.get(3) {
        None => false,
        Some(word) if is(word, "WITHSCORES") => true,
        Some(_) => return Err(SYNTAX),
    };
    let chosen = match &found {
        None => Chosen::Each(Vec::new()),
        Some(found) => choose(context, &found.record, BY_MEMBER, count)?,
    };
    let nests = with_scores && context.reply.is_3;
    match (args.len(), chosen.len()) {
        (2, 0) => context.reply.null(),
        (2, _) => {}
        (_, len) => context.reply.array(if with_scores && !nests { len * 2 } else { len }),
    }
    chosen.each(context, |context, (member, score)| {
        if nests {
            context.reply.array(2);
        }
        context.reply.bulk(member);
        if with_scores {
            context.reply.double(keys::score_of(score).ok_or(DAMAGED)?);
        }
        Ok(())
    })
}

/// The members of a set or sorted set. Those of a set have the score 1.
fn members(context: &mut Context, key: &[u8]) -> Result<BTreeMap<Vec<u8>, f64>, Fault> {
    let Some(found) = context.find(key)? else { return Ok(BTreeMap::new()) };
    match found.record.kind {
        Kind::SortedSet => {
            let all = Part::Member(Some(std::ops::Bound::Unbounded), None);
            Ok(select(context, &found.record, &all, false, Window::ALL)?.into_iter().collect())
        }
        Kind::Set => {
            let all = super::members::all(context, &found.record, &[])?;
            Ok(all.into_iter().map(|(member, _)| (member, 1.0)).collect())
        }
        _ => Err(WRONG_TYPE),
    }
}

/// How sorted sets are put together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Union,
    Intersection,
    Difference,
}

/// The keys of a command that has their number before them, and the rest.
fn input_keys<'a, 'b>(context: &Context, args: Args<'a, 'b>) -> Result<(Args<'a, 'b>, Args<'a, 'b>), Fault> {
    if integer(args[0])? < 1 {
        let name = context.client.shared.last_command.get();
        return Err(Fault::new(format!("ERR at least 1 input key is needed for '{name}' command")));
    }
    numbered_keys(args)
}

fn together(
    context: &mut Context,
    args: &[&[u8]],
    how: How,
    can_have_scores: bool,
) -> Result<(Vec<Scored>, bool), Fault> {
    let (keys, rest) = input_keys(context, args)?;
    let (mut weights, mut aggregate, mut with_scores) = (vec![1.0; keys.len()], "SUM", false);
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        if is(word, "WEIGHTS") && how != How::Difference {
            for weight in &mut weights {
                let arg = rest.next().ok_or(SYNTAX)?;
                *weight = crate::number::double(arg).ok_or(Fault::new("ERR weight value is not a float"))?;
            }
        } else if is(word, "AGGREGATE") && how != How::Difference {
            let word = rest.next().ok_or(SYNTAX)?;
            let known = ["SUM", "MIN", "MAX"].into_iter().find(|known| is(word, known));
            aggregate = known.ok_or(SYNTAX)?;
        } else if is(word, "WITHSCORES") && can_have_scores {
            with_scores = true;
        } else {
            return Err(SYNTAX);
        }
    }
    let whole = |score: f64| if score.is_nan() { 0.0 } else { score };
    let most = context.server.options.limits.reply_bytes;
    let mut bytes = 0;
    let mut result: BTreeMap<Vec<u8>, f64> = BTreeMap::new();
    for (number, (key, weight)) in keys.iter().zip(&weights).enumerate() {
        let others = members(context, key)?;
        if number == 0 {
            bytes = others.keys().map(Vec::len).sum();
            result = others.into_iter().map(|(member, score)| (member, whole(score * weight))).collect();
            continue;
        }
        let put = |a: f64, b: f64| match aggregate {
            "MIN" => a.min(b),
            "MAX" => a.max(b),
            _ => whole(a + b),
        };
        match how {
            How::Difference => result.retain(|member, _| !others.contains_key(member)),
            How::Intersection => result.retain(|member, score| {
                let other = others.get(member);
                *score = other.map_or(*score, |other| put(*score, whole(other * weight)));
                other.is_some()
            }),
            How::Union => {
                for (member, other) in others {
                    let other = whole(other * weight);
                    match result.entry(member) {
                        Entry::Occupied(mut score) => *score.get_mut() = put(*score.get(), other),
                        Entry::Vacant(place) => {
                            bytes += place.key().len();
                            place.insert(other);
                        }
                    }
                }
                if bytes > most {
                    return Err(super::sets::union_too_long(most));
                }
            }
        }
    }
    let mut members: Vec<Scored> = result.into_iter().collect();
    members.sort_by(|(_, a), (_, b)| keys::compare(*a, *b));
    Ok((members, with_scores))
}

fn reply_together(context: &mut Context, args: &[&[u8]], how: How) -> Done {
    let (members, with_scores) = together(context, &args[1..], how, true)?;
    reply_members(context, &members, with_scores);
    Ok(())
}

/// Makes a sorted set of members, in place of what the key had.
pub(super) fn store(context: &mut Context, key: &[u8], members: &[Scored]) -> Done {
    if let Some(old) = context.find(key)? {
        context.delete(key, &old.record)?;
    }
    let mut record = or_new(context, None, Kind::SortedSet)?;
    for (member, score) in members {
        put(context, &mut record, member, None, *score)?;
    }
    finish(context, key, None, &record)?;
    context.reply.count(members.len() as u64);
    Ok(())
}

pub(crate) fn zunion(context: &mut Context, args: &[&[u8]]) -> Done {
    reply_together(context, args, How::Union)
}

pub(crate) fn zinter(context: &mut Context, args: &[&[u8]]) -> Done {
    reply_together(context, args, How::Intersection)
}

pub(crate) fn zintercard(context: &mut Context, args: &[&[u8]]) -> Done {
    let (keys, rest) = input_keys(context, &args[1..])?;
    let limit = limit_of(rest)?;
    let mut common = members(context, keys[0])?;
    for key in &keys[1..] {
        let others = members(context, key)?;
        common.retain(|member, _| others.contains_key(member));
    }
    context.reply.count(limit.min(common.len() as u64));
    Ok(())
}

pub(crate) fn zdiff(context: &mut Context, args: &[&[u8]]) -> Done {
    reply_together(context, args, How::Difference)
}

fn store_together(context: &mut Context, args: &[&[u8]], how: How) -> Done {
    let (members, _) = together(context, &args[2..], how, false)?;
    store(context, args[1], &members)
}

pub(crate) fn zunionstore(context: &mut Context, args: &[&[u8]]) -> Done {
    store_together(context, args, How::Union)
}

pub(crate) fn zinterstore(context: &mut Context, args: &[&[u8]]) -> Done {
    store_together(context, args, How::Intersection)
}

pub(crate) fn zdiffstore(context: &mut Context, args: &[&[u8]]) -> Done {
    store_together(context, args, How::Difference)
}

pub(crate) fn zrangestore(context: &mut Context, args: &[&[u8]]) -> Done {
    let asked = asked(&args[3..])?;
    if asked.with_scores {
        return Err(SYNTAX);
    }
    let members = match context.find_kind(args[2], Kind::SortedSet)? {
        None => Vec::new(),
        Some(found) => select(context, &found.record, &asked.part, asked.is_back, asked.window)?,
    };
    store(context, args[1], &members)
}
