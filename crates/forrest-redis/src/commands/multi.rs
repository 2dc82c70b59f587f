//! Transactions: `MULTI`, `EXEC`, `DISCARD`, `WATCH`.
//!
//! The commands of a transaction are executed in one turn of the server's only thread, and their changes are one batch
//! of the store: nobody sees a part of them, and no crash leaves one. A command that fails changes nothing, and the
//! others go on. If all are too much for the limits of the store or of a reply, none changes anything.

use super::{Command, Context, GROWS, WRITE};
use crate::client::Watched;
use crate::fault::{Done, FULL, Fault};
use crate::reply::Reply;

/// Keys that a client may watch.
const WATCHED_MAX: usize = 10_000;

pub(crate) fn multi(context: &mut Context, _: &[&[u8]]) -> Done {
    if context.client.queue.is_some() {
        context.client.is_aborted = true;
        return Err(Fault::new("ERR MULTI calls can not be nested"));
    }
    context.client.queue = Some(Vec::new());
    context.client.shared.in_multi.set(true);
    context.reply.ok();
    Ok(())
}

/// Forgets which keys the client watches.
pub(crate) fn forget_watched(context: &mut Context) {
    let shared = context.client.shared.clone();
    context.server.unwatch(&mut context.client.watched, &shared);
    context.client.watched_bytes = 0;
}

pub(crate) fn discard(context: &mut Context, _: &[&[u8]]) -> Done {
    if context.client.queue.is_none() {
        return Err(Fault::new("ERR DISCARD without MULTI"));
    }
    context.client.end_multi();
    forget_watched(context);
    context.reply.ok();
    Ok(())
}

pub(crate) fn watch(context: &mut Context, args: &[&[u8]]) -> Done {
    if context.client.queue.is_some() {
        context.client.is_aborted = true;
        return Err(Fault::new("ERR WATCH inside MULTI is not allowed"));
    }
    if context.client.watched.len() + args.len() > WATCHED_MAX {
        return Err(Fault::new(format!("ERR a client may watch {WATCHED_MAX} keys")));
    }
    let database = context.client.database;
    for key in &args[1..] {
        // One that has expired counts as absent from here on.
        let was_there = context.find(key)?.is_some();
        if !context.client.watched.iter().any(|watched| watched.database == database && watched.key == *key) {
            let shared = context.client.shared.clone();
            context.server.watch(database, key, &shared);
            let watched = Watched { database, key: key.to_vec(), was_there };
            context.client.watched_bytes += watched.memory_bytes();
            context.client.watched.push(watched);
        }
    }
    context.reply.ok();
    Ok(())
}

pub(crate) fn unwatch(context: &mut Context, _: &[&[u8]]) -> Done {
    forget_watched(context);
    context.reply.ok();
    Ok(())
}

/// Whether a watched key has expired meanwhile, which changes it.
fn has_expired(context: &mut Context) -> Result<bool, Fault> {
    for watched in context.client.watched.iter().filter(|watched| watched.was_there) {
        let slot = context.server.data.slot(watched.database);
        let found = context.server.data.find(slot, &watched.key)?;
        if found.is_some_and(|found| found.record.is_expired(|| context.server.now_ms())) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) fn exec(context: &mut Context, _: &[&[u8]]) -> Done {
    if context.client.queue.is_none() {
        return Err(Fault::new("ERR EXEC without MULTI"));
    }
    let is_aborted = context.client.is_aborted;
    let queue = context.client.end_multi();
    let is_dirty = context.client.shared.is_dirty.get() || has_expired(context)?;
    forget_watched(context);
    if is_aborted {
        return Err(Fault::new("EXECABORT Transaction discarded because of previous errors."));
    }
    if is_dirty {
        context.reply.null_array();
        return Ok(());
    }
    let commands: Option<Vec<_>> = queue.iter().map(|request| context.command(&request[0])).collect();
    let commands =
        commands.ok_or(Fault::new("EXECABORT Transaction discarded because of an unknown command"))?;
    if context.server.is_full() && commands.iter().any(|command| command.has(GROWS)) {
        return Err(Fault::new(format!("EXECABORT Transaction discarded because of: {}", FULL.0)));
    }
    context.reply.array(queue.len());
    let (database, is_3) = (context.client.database, context.client.is_3);
    context.server.data.begin();
    context.client.in_exec = true;
    let done = commands.iter().zip(&queue).try_for_each(|(command, request)| {
        let args: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
        one(context, command, &args)
    });
    context.client.in_exec = false;
    done.and_then(|()| context.server.data.end()).map_err(|fault| {
        context.client.select(database);
        context.client.speak(is_3);
        let why = fault.0.strip_prefix("ERR ").unwrap_or(&fault.0);
        Fault::new(format!("EXECABORT Transaction discarded because of: {why}"))
    })
}

/// Executes one command of a transaction. Its errors are its reply, and the others go on. What fails here ends the
/// transaction.
fn one(context: &mut Context, command: &Command, args: &[&[u8]]) -> Done {
    let mut out = Vec::new();
    let room = context.server.options.limits.reply_bytes.saturating_sub(context.reply.bytes());
    let reply = Reply::new(&mut out, context.client.is_3, room);
    let mut inner =
        Context { server: context.server, client: context.client, commands: context.commands, reply };
    inner.server.writes += u64::from(command.has(WRITE));
    let mut done = (command.run)(&mut inner, args);
    inner.end_command(command, args);
    let is_over = done.is_ok() && inner.reply.is_over();
    if done.is_ok() && !is_over {
        done = inner.server.data.commit();
    }
    if let Err(fault) = done {
        if inner.server.data.has_failed() {
            return Err(fault);
        }
        inner.server.data.undo();
        inner.reply.fail(&fault.0);
    }
    // The version may have been changed by HELLO.
    context.reply.is_3 = context.client.is_3;
    if is_over {
        context.reply.go_over();
    }
    context.reply.raw(&out);
    context.reply.check()
}
