//! The server: its settings, its commands, its end.

use super::{Command, Context, is};
use crate::fault::{Done, Fault, SYNTAX};
use forrest::Durability;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

fn get_settings(context: &mut Context, patterns: &[&[u8]]) -> Done {
    let mut found: Vec<(&str, String)> = Vec::new();
    for pattern in patterns {
        for (name, value) in context.server.settings.matching(pattern) {
            if !found.iter().any(|(known, _)| *known == name) {
                found.push((name, value));
            }
        }
    }
    context.reply.map(found.len());
    for (name, value) in found {
        context.reply.bulk(name.as_bytes());
        context.reply.bulk(value.as_bytes());
    }
    Ok(())
}

fn set_settings(context: &mut Context, pairs: &[&[u8]]) -> Done {
    let mut names = Vec::new();
    for pair in pairs.chunks_exact(2) {
        let name = String::from_utf8_lossy(pair[0]).to_ascii_lowercase();
        if !context.server.settings.has(&name) {
            let why = "Unknown option or number of arguments for CONFIG SET";
            return Err(Fault::new(format!("ERR {why} - '{name}'")));
        }
        names.push(name);
    }
    // All or none.
    let mut settings = context.server.settings.clone();
    for (name, pair) in names.iter().zip(pairs.chunks_exact(2)) {
        settings.set(name, pair[1]).map_err(|why| {
            Fault::new(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"))
        })?;
    }
    context.server.settings = settings;
    context.server.look_at_memory();
    context.server.slow_log.trim(context.server.settings.slow_entries_max);
    // It may have been off.
    context.server.begin_lap(Instant::now());
    context.reply.ok();
    Ok(())
}

pub(crate) fn config(context: &mut Context, args: &[&[u8]]) -> Done {
    match &args[1..] {
        [word, patterns @ ..] if is(word, "GET") && !patterns.is_empty() => {
            return get_settings(context, patterns);
        }
        [word, pairs @ ..] if is(word, "SET") && !pairs.is_empty() && pairs.len() % 2 == 0 => {
            return set_settings(context, pairs);
        }
        [word] if is(word, "RESETSTAT") => {
            context.server.counts = crate::server::Counts::default();
            context.reply.ok();
        }
        [word] if is(word, "REWRITE") => {
            return Err(Fault::new("ERR The server is running without a config file"));
        }
        [word, ..] => {
            let word = String::from_utf8_lossy(word).to_ascii_lowercase();
            return Err(Fault::new(format!("ERR wrong number of arguments for 'config|{word}' command")));
        }
        [] => return Err(SYNTAX),
    }
    Ok(())
}

fn describe(context: &mut Context, command: Option<&Command>) {
    let Some(command) = command else { return context.reply.null_array() };
    let reply = &mut context.reply;
    reply.array(10);
    reply.bulk(command.name.as_bytes());
    reply.integer(i64::from(command.arity));
    let flags: Vec<&str> = command.flag_names().collect();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
    let (first, last, step) = command.keys;
    for number in [first, last, step] {
        reply.integer(i64::from(number));
    }
    for _ in 0..4 {
        reply.array(0);
    }
}

pub(crate) fn command(context: &mut Context, args: &[&[u8]]) -> Done {
    match &args[1..] {
        [] => {
            context.reply.array(context.commands.len());
            context.commands.iter().for_each(|command| describe(context, Some(command)));
        }
        [word] if is(word, "COUNT") => context.reply.count(context.commands.len() as u64),
        [word] if is(word, "LIST") => {
            context.reply.array(context.commands.len());
            context.commands.iter().for_each(|command| context.reply.bulk(command.name.as_bytes()));
        }
        [word, names @ ..] if is(word, "INFO") => {
            context.reply.array(names.len());
            names.iter().for_each(|name| describe(context, context.command(name)));
        }
        [word, names @ ..] if is(word, "DOCS") => {
            let named = names.iter().filter_map(|name| context.command(name));
            let commands: Vec<&Command> =
                if names.is_empty() { context.commands.iter().collect() } else { named.collect() };
            context.reply.map(commands.len());
            for command in commands {
                context.reply.bulk(command.name.as_bytes());
                context.reply.map(1);
                context.reply.bulk(b"group");
                context.reply.bulk(command.group.as_bytes());
            }
        }
        [word, name, rest @ ..] if is(word, "GETKEYS") => {
            let command = context.command(name).ok_or(Fault::new("ERR Invalid command specified"))?;
            let request = [&[*name][..], rest].concat();
            let keys = command.keys_of(&request);
            if keys.is_empty() || !command.takes(request.len()) {
                return Err(Fault::new("ERR The command has no key arguments"));
            }
            context.reply.array(keys.len());
            keys.iter().for_each(|key| context.reply.bulk(key));
        }
        [word, ..] => {
            let word = String::from_utf8_lossy(word);
            return Err(Fault::new(format!("ERR unknown subcommand '{word}'. Try COMMAND HELP.")));
        }
    }
    Ok(())
}

pub(crate) fn time(context: &mut Context, _: &[&[u8]]) -> Done {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    context.reply.array(2);
    context.reply.bulk(now.as_secs().to_string().as_bytes());
    context.reply.bulk(now.subsec_micros().to_string().as_bytes());
    Ok(())
}

/// Makes all that was changed durable. What runs later may be durable as well.
pub(crate) fn save(context: &mut Context, _: &[&[u8]]) -> Done {
    if context.server.is_on_disk {
        context.server.data.make_durable(Durability::Sync)?;
        context.server.counts.syncs += 1;
    }
    context.reply.ok();
    Ok(())
}

pub(crate) fn shutdown(context: &mut Context, args: &[&[u8]]) -> Done {
    let known = ["NOSAVE", "SAVE", "NOW", "FORCE"];
    if !args[1..].iter().all(|arg| known.iter().any(|word| is(arg, word))) {
        return Err(SYNTAX);
    }
    context.client.quits = true;
    context.server.stop.notify_one();
    Ok(())
}

pub(crate) fn lastsave(context: &mut Context, _: &[&[u8]]) -> Done {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    context.reply.count(now.as_secs());
    Ok(())
}

/// There are no functions, so that none are left to be removed.
pub(crate) fn function(context: &mut Context, args: &[&[u8]]) -> Done {
    match &args[1..] {
        [word, ..] if is(word, "FLUSH") => context.reply.ok(),
        [word, ..] if is(word, "LIST") => context.reply.array(0),
        _ => return Err(Fault::new("ERR functions are not supported: the server has no Lua")),
    }
    Ok(())
}

pub(crate) fn memory(context: &mut Context, args: &[&[u8]]) -> Done {
    match &args[1..] {
        [word, key, ..] if is(word, "USAGE") => match context.find(key)? {
            None => context.reply.null(),
            Some(found) if found.record.kind == crate::keys::Kind::String => {
                context.reply.count((key.len() + found.string().len()) as u64 + 3);
            }
            Some(found) => {
                let members = super::members::key_of(context, &found.record, &[]);
                let mut bytes = key.len() as u64 + 27;
                let end = super::members::end_of(&members);
                context.server.data.scan((&members, &end), false, |key, value| {
                    bytes += (key.len() + value.len()) as u64;
                    std::ops::ControlFlow::Continue(())
                })?;
                context.reply.count(bytes);
            }
        },
        _ => return Err(Fault::new("ERR only MEMORY USAGE key is supported")),
    }
    Ok(())
}
