//! `SLOWLOG`: the commands that took long; and `LATENCY`, as Redis replies whose monitor is off.

use super::{Context, integer, is};
use crate::fault::{Done, Fault};

/// Entries that `SLOWLOG GET` returns if it does not say how many.
const ENTRIES: usize = 10;

const SLOWLOG_HELP: [&str; 9] = [
    "SLOWLOG <subcommand> [<arg> ...]. Subcommands are:",
    "GET [<count>]",
    "    The newest entries, 10 unless it says how many; -1 for all. Each has its number, the time, the microseconds, the",
    "    arguments, the client's address, and its name.",
    "LEN",
    "    How many entries there are.",
    "RESET",
    "    Removes all entries.",
    "HELP",
];

const LATENCY_HELP: [&str; 5] = [
    "LATENCY <subcommand> [<arg> ...]. There is no monitor of latency, so that nothing is ever reported by:",
    "DOCTOR, GRAPH <event>, HISTOGRAM [<command> ...], HISTORY <event>, LATEST",
    "RESET [<event> ...]",
    "    Removes nothing.",
    "HELP",
];

const DOCTOR: &str = "The server has no monitor of latency. SLOWLOG GET lists the commands that took long, and `forrest top` shows \
                      the store's latencies.\n";

fn help(context: &mut Context, lines: &[&str]) {
    context.reply.array(lines.len());
    lines.iter().for_each(|line| context.reply.simple(line));
}

/// A subcommand that there is not, or with other arguments than it takes.
fn wrong(command: &str, word: &[u8], known: &[&str]) -> Fault {
    let text = String::from_utf8_lossy(&word[..word.len().min(128)]).into_owned();
    if known.iter().any(|known| is(word, known)) {
        let text = text.to_ascii_lowercase();
        return Fault::new(format!("ERR wrong number of arguments for '{command}|{text}' command"));
    }
    let command = command.to_ascii_uppercase();
    Fault::new(format!("ERR unknown subcommand '{text}'. Try {command} HELP."))
}

fn get(context: &mut Context, count: Option<&&[u8]>) -> Done {
    let wrong = || Fault::new("ERR count should be greater than or equal to -1");
    let log = &context.server.slow_log;
    let count = match count.map(|count| integer(count)).transpose().map_err(|_| wrong())? {
        None => ENTRIES,
        Some(-1) => usize::MAX,
        Some(count) => usize::try_from(count).map_err(|_| wrong())?,
    };
    let reply = &mut context.reply;
    reply.array(count.min(log.len()));
    for entry in log.iter().take(count) {
        reply.array(6);
        reply.count(entry.id);
        reply.count(entry.time_s);
        reply.count(entry.micros);
        reply.array(entry.args.len());
        entry.args.iter().for_each(|arg| reply.bulk(arg));
        reply.bulk(entry.address.as_bytes());
        reply.bulk(&entry.name);
        if reply.is_over() {
            break;
        }
    }
    Ok(())
}

pub(crate) fn slowlog(context: &mut Context, args: &[&[u8]]) -> Done {
    match &args[1..] {
        [word] if is(word, "GET") => return get(context, None),
        [word, count] if is(word, "GET") => return get(context, Some(count)),
        [word] if is(word, "LEN") => context.reply.count(context.server.slow_log.len() as u64),
        [word] if is(word, "RESET") => {
            context.server.slow_log.clear();
            context.reply.ok();
        }
        [word] if is(word, "HELP") => help(context, &SLOWLOG_HELP),
        rest => return Err(wrong("slowlog", rest[0], &["GET", "LEN", "RESET", "HELP"])),
    }
    Ok(())
}

pub(crate) fn latency(context: &mut Context, args: &[&[u8]]) -> Done {
    match &args[1..] {
        [word] if is(word, "LATEST") => context.reply.array(0),
        [word, _] if is(word, "HISTORY") => context.reply.array(0),
        [word, ..] if is(word, "RESET") => context.reply.integer(0),
        [word, ..] if is(word, "HISTOGRAM") => context.reply.map(0),
        [word] if is(word, "DOCTOR") => context.reply.verbatim(DOCTOR),
        [word, event] if is(word, "GRAPH") => {
            let event = String::from_utf8_lossy(&event[..event.len().min(128)]);
            return Err(Fault::new(format!("ERR No samples available for event '{event}'")));
        }
        [word] if is(word, "HELP") => help(context, &LATENCY_HELP),
        rest => return Err(wrong("latency", rest[0], &["LATEST", "HISTORY", "DOCTOR", "GRAPH", "HELP"])),
    }
    Ok(())
}
