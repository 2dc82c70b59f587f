//! What Redis does not have: ranges of keys in their order, their removal, and snapshots.
//!
//! `FORREST.RANGE start end [REV] [LIMIT count] [KEYS] [SNAPSHOT id]`, `FORREST.DELRANGE start end`, and
//! `FORREST.SNAPSHOT CREATE | DROP id | LIST`. Bounds are written as those of `ZRANGEBYLEX`.

use super::members::end_of;
use super::scored::member_bound;
use super::{Context, is, natural};
use crate::data::Data;
use crate::fault::{DAMAGED, Done, Fault, SYNTAX};
use crate::keys::{self, Kind, RECORD_BYTES, Record};
use crate::server::Kept;
use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::time::Instant;

/// Keys that a range returns unless its client says otherwise.
const LIMIT: u64 = 100;
/// What a command takes in memory for the keys that it removes one by one, in bytes.
const REMOVED_BYTES_MAX: usize = 128 << 20;

/// The range of records between two bounds.
fn bounds(slot: u8, start: &[u8], end: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Fault> {
    let records = keys::records(slot);
    let place = |bound: Option<Bound<Vec<u8>>>, is_end: bool| match bound {
        None => end_of(&records),
        Some(Bound::Unbounded) => records.to_vec(),
        Some(Bound::Included(key)) if is_end => [&records[..], &key, &[0]].concat(),
        Some(Bound::Excluded(key)) if !is_end => [&records[..], &key, &[0]].concat(),
        Some(Bound::Included(key) | Bound::Excluded(key)) => [&records[..], &key].concat(),
    };
    Ok((place(member_bound(start)?, false), place(member_bound(end)?, true)))
}

#[derive(Default)]
struct Asked {
    is_back: bool,
    only_keys: bool,
    limit: u64,
    snapshot: Option<u64>,
}

fn asked(args: &[&[u8]]) -> Result<Asked, Fault> {
    let mut asked = Asked { limit: LIMIT, ..Asked::default() };
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if is(word, "REV") {
            asked.is_back = true;
        } else if is(word, "KEYS") {
            asked.only_keys = true;
        } else if is(word, "LIMIT") {
            asked.limit = natural(rest.next().ok_or(SYNTAX)?, "ERR LIMIT is not a count")?;
        } else if is(word, "SNAPSHOT") {
            asked.snapshot = Some(natural(rest.next().ok_or(SYNTAX)?, "ERR a snapshot is a number")?);
        } else {
            return Err(SYNTAX);
        }
    }
    Ok(asked)
}

pub(crate) fn range(context: &mut Context, args: &[&[u8]]) -> Done {
    let asked = asked(&args[3..])?;
    context.server.drop_snapshots();
    let now = context.server.now_ms();
    let Context { server, client, reply, .. } = context;
    let (mut left, mut failed, count) = (asked.limit, None, Cell::new(0));
    let mut see = |reply: &mut crate::reply::Reply, key: &[u8], value: &[u8]| {
        if left == 0 {
            return ControlFlow::Break(());
        }
        let Some((record, string)) = Record::of(value) else {
            failed = Some(DAMAGED);
            return ControlFlow::Break(());
        };
        if !record.is_expired(|| now) {
            left -= 1;
            reply.bulk(&key[RECORD_BYTES..]);
            if !asked.only_keys {
                reply.bulk_or_null((record.kind == Kind::String).then_some(string));
            }
            count.set(count.get() + if asked.only_keys { 1 } else { 2 });
        }
        if reply.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let done = match asked.snapshot {
        None => {
            let (start, end) = bounds(server.data.slot(client.database), args[1], args[2])?;
            reply.sequence(|reply| {
                server.data.scan((&start, &end), asked.is_back, |key, value| see(reply, key, value))?;
                Ok::<_, Fault>(count.get())
            })
        }
        Some(id) => {
            let kept =
                server.snapshots.get(&id).ok_or(Fault::new("ERR no such snapshot, or it was too old"))?;
            let (start, end) = bounds(kept.slots[client.database], args[1], args[2])?;
            let view = Data::view(&kept.snapshot)?;
            reply.sequence(|reply| {
                if start < end && asked.is_back {
                    view.scan_back(&start[..]..&end[..], |key, value| see(reply, key, value))?;
                } else if start < end {
                    view.scan(&start[..]..&end[..], |key, value| see(reply, key, value))?;
                }
                Ok::<_, Fault>(count.get())
            })
        }
    };
    done?;
    failed.map_or(Ok(()), Err)
}

pub(crate) fn delrange(context: &mut Context, args: &[&[u8]]) -> Done {
    let slot = context.slot();
    let (start, end) = bounds(slot, args[1], args[2])?;
    let (mut removed, mut is_damaged, mut touched) = (Vec::new(), false, Vec::new());
    let (mut count, mut removed_bytes) = (0_u64, 0);
    let watched = context.server.watched_of(context.client.database);
    context.server.data.scan((&start, &end), false, |key, value| {
        let Some((record, _)) = Record::of(value) else {
            is_damaged = true;
            return ControlFlow::Break(());
        };
        count += 1;
        let key = &key[RECORD_BYTES..];
        // The records go by one range delete; these have more.
        if record.kind != Kind::String || record.expires != 0 {
            removed.push((key.to_vec(), record));
            removed_bytes += key.len() + size_of::<(Vec<u8>, Record)>();
        }
        if watched.contains(key) {
            touched.push(key.to_vec());
        }
        if removed_bytes > REMOVED_BYTES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if is_damaged {
        return Err(DAMAGED);
    }
    if removed_bytes > REMOVED_BYTES_MAX {
        let what = "of keys that expire or are no strings";
        return Err(Fault::new(format!(
            "ERR the range has more than {REMOVED_BYTES_MAX} bytes {what}; take smaller ones"
        )));
    }
    for (key, record) in &removed {
        context.server.data.delete(slot, key, record)?;
    }
    if count > 0 {
        context.server.data.remove_range(&start, &end)?;
    }
    touched.iter().for_each(|key| context.touch(key));
    context.reply.count(count);
    Ok(())
}

pub(crate) fn snapshot(context: &mut Context, args: &[&[u8]]) -> Done {
    context.server.drop_snapshots();
    match &args[1..] {
        [word] if is(word, "CREATE") => {
            let most = context.server.options.limits.snapshots;
            if context.server.snapshots.len() >= most {
                return Err(Fault::new(format!("ERR there are {most} snapshots already; drop one")));
            }
            let snapshot = context.server.data.snapshot()?;
            let slots = (0..context.server.settings.databases).map(|number| context.server.data.slot(number));
            let kept = Kept { snapshot, since: Instant::now(), slots: slots.collect() };
            context.server.last_snapshot += 1;
            let id = context.server.last_snapshot;
            context.server.snapshots.insert(id, kept);
            context.reply.count(id);
        }
        [word, id] if is(word, "DROP") => {
            let id = natural(id, "ERR a snapshot is a number")?;
            let was_there = context.server.snapshots.remove(&id).is_some();
            context.reply.bool(was_there);
        }
        [word] if is(word, "LIST") => {
            let ids: Vec<u64> = context.server.snapshots.keys().copied().collect();
            context.reply.array(ids.len());
            ids.into_iter().for_each(|id| context.reply.count(id));
        }
        _ => return Err(SYNTAX),
    }
    Ok(())
}
