//! Parts of sorted sets: by index, by score, by member.

use super::members::key_of;
use super::{Context, integer, is, slice};
use crate::fault::{DAMAGED, Fault, SYNTAX};
use crate::keys::{self, Record};
use crate::number;
use std::ops::{Bound, ControlFlow};

/// The part of the keys by member, and that of the keys by score.
pub(crate) const BY_MEMBER: &[u8] = &[0];
pub(crate) const BY_SCORE: &[u8] = &[1];

/// A member with its score.
pub(crate) type Scored = (Vec<u8>, f64);

/// Which members.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    /// From one index to another, which count from the end if negative.
    Index(i64, i64),
    Score(Bound<f64>, Bound<f64>),
    /// `None` is after all members.
    Member(Option<Bound<Vec<u8>>>, Option<Bound<Vec<u8>>>),
}

/// How many, from which on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) skip: u64,
    pub(crate) count: u64,
}

impl Window {
    pub(crate) const ALL: Window = Window { skip: 0, count: u64::MAX };

    /// Of two arguments; a negative count means all.
    pub(crate) fn of(offset: &[u8], count: &[u8]) -> Result<Window, Fault> {
        let (offset, count) = (integer(offset)?, integer(count)?);
        let Ok(skip) = u64::try_from(offset) else { return Ok(Window { skip: 0, count: 0 }) };
        Ok(Window { skip, count: u64::try_from(count).unwrap_or(u64::MAX) })
    }
}

/// A bound by score: a number, after a parenthesis if it is excluded.
fn score_bound(arg: &[u8]) -> Result<Bound<f64>, Fault> {
    let (number, excluded) = match arg {
        [b'(', number @ ..] => (number, true),
        number => (number, false),
    };
    let score = number::double(number).ok_or(Fault::new("ERR min or max is not a float"))?;
    Ok(if excluded { Bound::Excluded(score) } else { Bound::Included(score) })
}

pub(crate) fn by_score(min: &[u8], max: &[u8]) -> Result<Part, Fault> {
    Ok(Part::Score(score_bound(min)?, score_bound(max)?))
}

/// A bound by member: `-`, `+`, or a member after `[` or `(`.
pub(crate) fn member_bound(arg: &[u8]) -> Result<Option<Bound<Vec<u8>>>, Fault> {
    match arg {
        b"-" => Ok(Some(Bound::Unbounded)),
        b"+" => Ok(None),
        [b'[', member @ ..] => Ok(Some(Bound::Included(member.to_vec()))),
        [b'(', member @ ..] => Ok(Some(Bound::Excluded(member.to_vec()))),
        _ => Err(Fault::new("ERR min or max not valid string range item")),
    }
}

pub(crate) fn by_member(min: &[u8], max: &[u8]) -> Result<Part, Fault> {
    Ok(Part::Member(member_bound(min)?, member_bound(max)?))
}

/// The range of keys of a part by score or member: where it starts, and where it ends.
fn range(context: &Context, record: &Record, part: &Part) -> (Vec<u8>, Vec<u8>) {
    let key = |parts: &[&[u8]]| key_of(context, record, parts);
    let score_key = |score: f64, is_after: bool| {
        let bytes = keys::score_bytes(score);
        if is_after { key(&[BY_SCORE, &keys::after(bytes)]) } else { key(&[BY_SCORE, &bytes]) }
    };
    match part {
        Part::Index(..) => (key(&[BY_SCORE]), key(&[&[BY_SCORE[0] + 1]])),
        Part::Score(min, max) => {
            let start = match min {
                Bound::Included(score) => score_key(*score, false),
                Bound::Excluded(score) => score_key(*score, true),
                Bound::Unbounded => key(&[BY_SCORE]),
            };
            let end = match max {
                Bound::Included(score) => score_key(*score, true),
                Bound::Excluded(score) => score_key(*score, false),
                Bound::Unbounded => key(&[&[BY_SCORE[0] + 1]]),
            };
            (start, end)
        }
        Part::Member(min, max) => {
            let bound = |bound: &Option<Bound<Vec<u8>>>, is_end: bool| match bound {
                None => key(&[BY_SCORE]),
                Some(Bound::Unbounded) => key(&[BY_MEMBER]),
                Some(Bound::Included(member)) if !is_end => key(&[BY_MEMBER, member]),
                Some(Bound::Excluded(member)) if is_end => key(&[BY_MEMBER, member]),
                Some(Bound::Included(member) | Bound::Excluded(member)) => key(&[BY_MEMBER, member, &[0]]),
            };
            (bound(min, false), bound(max, true))
        }
    }
}

/// The member and score of a pair of either range.
fn scored(is_by_member: bool, key: &[u8], value: &[u8]) -> Option<Scored> {
    if is_by_member {
        return Some((key[keys::MEMBER_BYTES + 1..].to_vec(), keys::score_of(value)?));
    }
    let (score, member) = key[keys::MEMBER_BYTES + 1..].split_at_checked(8)?;
    Some((member.to_vec(), keys::score_of(score)?))
}

/// The members of a part in their order, or from the last on.
pub(crate) fn select(
    context: &mut Context,
    record: &Record,
    part: &Part,
    is_back: bool,
    window: Window,
) -> Result<Vec<Scored>, Fault> {
    let window = match part {
        Part::Index(start, stop) => {
            let part = slice(*start, *stop, record.count);
            Window { skip: part.start, count: part.end - part.start }
        }
        _ => window,
    };
    let is_by_member = matches!(part, Part::Member(..));
    let (start, end) = range(context, record, part);
    let most = context.server.options.limits.reply_bytes;
    let (mut skip, mut chosen, mut bytes, mut is_damaged) = (window.skip, Vec::new(), 0, false);
    if window.count == 0 {
        return Ok(chosen);
    }
    context.server.data.scan((&start, &end), is_back, |key, value| {
        if skip > 0 {
            skip -= 1;
            return ControlFlow::Continue(());
        }
        bytes += key.len();
        match scored(is_by_member, key, value) {
            Some(member) => chosen.push(member),
            None => is_damaged = true,
        }
        if chosen.len() as u64 == window.count || bytes > most || is_damaged {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    if is_damaged {
        return Err(DAMAGED);
    }
    if bytes > most {
        return Err(Fault::new(format!("ERR the part has more than {most} bytes (--reply-bytes)")));
    }
    Ok(chosen)
}

/// Passes the members with scores from the first on and below the second to `see`, until it breaks.
pub(crate) fn each_between(
    context: &mut Context,
    record: &Record,
    (least, end): (f64, f64),
    mut see: impl FnMut(&[u8], f64) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let part = Part::Score(Bound::Included(least), Bound::Excluded(end));
    let (start, end) = range(context, record, &part);
    let mut is_damaged = false;
    context.server.data.scan((&start, &end), false, |key, _| {
        let pair = key[keys::MEMBER_BYTES + 1..].split_at_checked(8);
        match pair.and_then(|(score, member)| Some((member, keys::score_of(score)?))) {
            Some((member, score)) => see(member, score),
            None => {
                is_damaged = true;
                ControlFlow::Break(())
            }
        }
    })?;
    if is_damaged { Err(DAMAGED) } else { Ok(()) }
}

/// How many members a part by score or member has.
pub(crate) fn count(context: &mut Context, record: &Record, part: &Part) -> Result<u64, Fault> {
    let (start, end) = range(context, record, part);
    if start >= end {
        return Ok(0);
    }
    context.server.data.count(&start, &end)
}

/// How many members come before one with its score.
pub(crate) fn rank(context: &mut Context, record: &Record, member: &[u8], score: f64) -> Result<u64, Fault> {
    let start = key_of(context, record, &[BY_SCORE]);
    let end = key_of(context, record, &[BY_SCORE, &keys::score_bytes(score), member]);
    context.server.data.count(&start, &end)
}

/// What `ZRANGE` and `ZRANGESTORE` say after the key.
pub(crate) struct Asked {
    pub(crate) part: Part,
    pub(crate) is_back: bool,
    pub(crate) window: Window,
    pub(crate) with_scores: bool,
}

pub(crate) fn asked(args: &[&[u8]]) -> Result<Asked, Fault> {
    let (mut by_score_word, mut by_lex, mut is_back, mut with_scores) = (false, false, false, false);
    let mut window = None;
    let mut rest = args[2..].iter();
    while let Some(word) = rest.next() {
        if is(word, "BYSCORE") {
            by_score_word = true;
        } else if is(word, "BYLEX") {
            by_lex = true;
        } else if is(word, "REV") {
            is_back = true;
        } else if is(word, "WITHSCORES") {
            with_scores = true;
        } else if is(word, "LIMIT") {
            let (offset, count) = (rest.next().ok_or(SYNTAX)?, rest.next().ok_or(SYNTAX)?);
            window = Some(Window::of(offset, count)?);
        } else {
            return Err(SYNTAX);
        }
    }
    let is_by_index = !by_score_word && !by_lex;
    if by_lex && (by_score_word || with_scores) {
        return Err(SYNTAX);
    }
    if window.is_some() && is_by_index {
        let why = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
        return Err(Fault::new(why));
    }
    let (min, max) = if is_back { (args[1], args[0]) } else { (args[0], args[1]) };
    let part = match (by_score_word, by_lex) {
        (true, _) => by_score(min, max)?,
        (_, true) => by_member(min, max)?,
        _ => Part::Index(integer(args[0])?, integer(args[1])?),
    };
    Ok(Asked { part, is_back, window: window.unwrap_or(Window::ALL), with_scores })
}
