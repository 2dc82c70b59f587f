//! The connection itself: who the client is, what it speaks, which database it uses.

use super::strings::database;
use super::{Context, VERSION, integer, is, natural};
use crate::client::{Shared, Skips};
use crate::fault::{Done, Fault, SYNTAX};
use std::fmt::Write as _;
use std::rc::Rc;

/// Longest name of a client.
const NAME_BYTES_MAX: usize = 256;

pub(crate) fn ping(context: &mut Context, args: &[&[u8]]) -> Done {
    match args {
        [_] => context.reply.simple("PONG"),
        [_, message] => context.reply.bulk(message),
        _ => return Err(Fault::new("ERR wrong number of arguments for 'ping' command")),
    }
    Ok(())
}

pub(crate) fn echo(context: &mut Context, args: &[&[u8]]) -> Done {
    context.reply.bulk(args[1]);
    Ok(())
}

pub(crate) fn quit(context: &mut Context, _: &[&[u8]]) -> Done {
    context.client.quits = true;
    context.reply.ok();
    Ok(())
}

pub(crate) fn select(context: &mut Context, args: &[&[u8]]) -> Done {
    let database = database(context, args[1])?;
    context.client.select(database);
    context.reply.ok();
    Ok(())
}

/// Whether two strings are equal, in a time that does not depend on where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    let differs = a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b));
    std::hint::black_box(differs) == 0 && a.len() == b.len()
}

/// Lets a client in who knows the password.
fn let_in(context: &mut Context, user: &[u8], password: &[u8]) -> Done {
    let is_right = match &context.server.settings.password {
        None => true,
        Some(right) => same(right, password),
    };
    if user != b"default" || !is_right {
        return Err(Fault::new("WRONGPASS invalid username-password pair or user is disabled."));
    }
    context.client.is_known = true;
    Ok(())
}

pub(crate) fn auth(context: &mut Context, args: &[&[u8]]) -> Done {
    match args {
        [_, _] if context.server.settings.password.is_none() => {
            let why = "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                       configuration is correct?";
            return Err(Fault::new(why));
        }
        [_, password] => let_in(context, b"default", password)?,
        [_, user, password] => let_in(context, user, password)?,
        _ => return Err(SYNTAX),
    }
    context.reply.ok();
    Ok(())
}

pub(crate) fn hello(context: &mut Context, args: &[&[u8]]) -> Done {
    let mut version = None;
    if let Some(arg) = args.get(1) {
        let number = crate::number::integer(arg);
        let number = number.ok_or(Fault::new("ERR Protocol version is not an integer or out of range"))?;
        version = Some(number);
        if number != 2 && number != 3 {
            return Err(Fault::new("NOPROTO unsupported protocol version"));
        }
    }
    let mut name = None;
    let mut rest = args.iter().skip(2);
    while let Some(word) = rest.next() {
        if is(word, "AUTH") {
            let (user, password) = (rest.next().ok_or(SYNTAX)?, rest.next().ok_or(SYNTAX)?);
            let_in(context, user, password)?;
        } else if is(word, "SETNAME") {
            name = Some(rest.next().ok_or(SYNTAX)?);
        } else {
            let word = String::from_utf8_lossy(word);
            return Err(Fault::new(format!("ERR Syntax error in HELLO option '{word}'")));
        }
    }
    if !context.client.is_known {
        let why = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
                   <user> <pass> option can be used to authenticate the client and select the RESP protocol version at \
                   the same time";
        return Err(Fault::new(why));
    }
    if let Some(name) = name {
        set_name(context, name)?;
    }
    if let Some(version) = version {
        context.client.speak(version == 3);
    }
    let is_3 = context.client.is_3;
    let zone = context.server.settings.zone.clone();
    let reply = &mut context.reply;
    reply.is_3 = is_3;
    reply.map(if zone.is_empty() { 7 } else { 8 });
    for (key, value) in [("server", "redis"), ("version", VERSION)] {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(if is_3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.count(context.client.shared.id);
    for (key, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
    if !zone.is_empty() {
        reply.bulk(b"availability_zone");
        reply.bulk(zone.as_bytes());
    }
    Ok(())
}

pub(crate) fn reset(context: &mut Context, _: &[&[u8]]) -> Done {
    context.client.end_multi();
    super::multi::forget_watched(context);
    context.client.select(0);
    context.client.speak(false);
    context.client.skips = Skips::Nothing;
    context.client.is_known = context.server.settings.password.is_none();
    context.client.shared.name.borrow_mut().clear();
    context.reply.is_3 = false;
    context.reply.simple("RESET");
    Ok(())
}

fn set_name(context: &mut Context, name: &[u8]) -> Done {
    if name.len() > NAME_BYTES_MAX || !name.iter().all(u8::is_ascii_graphic) {
        let why = "ERR Client names cannot contain spaces, newlines or special characters.";
        return Err(Fault::new(why));
    }
    *context.client.shared.name.borrow_mut() = name.to_vec();
    Ok(())
}

/// The line of a client, for people.
fn line(client: &Shared) -> String {
    let (library, version) = &*client.library.borrow();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut line = String::new();
    let _infallible = write!(
        line,
        "id={} addr={} name={} age={} idle={} flags={} db={} multi={} tot-mem={} cmd={} resp={} lib-name={} lib-ver={}",
        client.id,
        client.address,
        text(&client.name.borrow()),
        client.since.elapsed().as_secs(),
        client.active.get().elapsed().as_secs(),
        match (client.in_multi.get(), client.wait.borrow().is_some()) {
            (true, _) => "x",
            (false, true) => "b",
            (false, false) => "N",
        },
        client.database.get(),
        if client.in_multi.get() { 0 } else { -1 },
        client.memory_bytes.get(),
        client.last_command.get(),
        if client.is_3.get() { 3 } else { 2 },
        text(library),
        text(version),
    );
    line
}

fn list(context: &mut Context, args: &[&[u8]]) -> Done {
    let all = || context.server.clients.values().cloned().collect::<Vec<Rc<Shared>>>();
    let clients = match args {
        [] => all(),
        [word, kind] if is(word, "TYPE") => match kind {
            kind if is(kind, "normal") => all(),
            kind if is(kind, "master") || is(kind, "replica") || is(kind, "pubsub") => Vec::new(),
            _ => return Err(Fault::new("ERR Unknown client type")),
        },
        [word, ids @ ..] if is(word, "ID") && !ids.is_empty() => {
            let ids = ids.iter().map(|id| natural(id, "ERR Invalid client ID"));
            let ids = ids.collect::<Result<Vec<_>, _>>()?;
            ids.iter().filter_map(|id| context.server.clients.get(id).cloned()).collect()
        }
        _ => return Err(SYNTAX),
    };
    let text: String = clients.iter().map(|client| line(client) + "\n").collect();
    context.reply.verbatim(&text);
    Ok(())
}

/// Which clients `CLIENT KILL` ends.
fn to_end(context: &Context, args: &[&[u8]]) -> Result<Vec<Rc<Shared>>, Fault> {
    let mut clients: Vec<Rc<Shared>> = context.server.clients.values().cloned().collect();
    let mut skips_own = true;
    for pair in args.chunks_exact(2) {
        let (word, value) = (pair[0], pair[1]);
        if is(word, "ID") {
            let wrong = "ERR client-id should be greater than 0";
            let id = Some(natural(value, wrong)?).filter(|id| *id > 0).ok_or(Fault::new(wrong))?;
            clients.retain(|client| client.id == id);
        } else if is(word, "ADDR") {
            clients.retain(|client| client.address.as_bytes() == value);
        } else if is(word, "TYPE") {
            let text = String::from_utf8_lossy(value);
            let is_known =
                ["normal", "master", "replica", "slave", "pubsub"].iter().any(|kind| is(value, kind));
            if !is_known {
                return Err(Fault::new(format!("ERR Unknown client type '{text}'")));
            }
            clients.retain(|_| is(value, "normal"));
        } else if is(word, "USER") {
            if value != b"default" {
                return Err(Fault::new(format!("ERR No such user '{}'", String::from_utf8_lossy(value))));
            }
        } else if is(word, "MAXAGE") {
            let wrong = "ERR maxage is not an integer or out of range";
            let age = crate::number::integer(value).ok_or(Fault::new(wrong))?;
            let age = u64::try_from(age).ok().filter(|age| *age > 0);
            let age = age.ok_or(Fault::new("ERR maxage should be greater than 0"))?;
            clients.retain(|client| client.since.elapsed().as_secs() >= age);
        } else if is(word, "SKIPME") {
            skips_own = match value {
                value if is(value, "yes") => true,
                value if is(value, "no") => false,
                _ => return Err(SYNTAX),
            };
        } else if is(word, "LADDR") {
            return Err(Fault::new(
                "ERR CLIENT KILL LADDR is not supported: a connection is known by its peer",
            ));
        } else {
            return Err(SYNTAX);
        }
    }
    clients.retain(|client| !(skips_own && client.id == context.client.shared.id));
    Ok(clients)
}

fn kill(context: &mut Context, args: &[&[u8]]) -> Done {
    let clients = match args {
        // The old form.
        [address] => to_end(context, &[b"ADDR", address, b"SKIPME", b"no"])?,
        [] => return Err(SYNTAX),
        pairs if pairs.len() % 2 == 1 => return Err(SYNTAX),
        pairs => to_end(context, pairs)?,
    };
    for client in &clients {
        if client.id == context.client.shared.id {
            // After its reply.
            context.client.quits = true;
        } else {
            context.server.end(client);
        }
    }
    match args {
        [_] if clients.is_empty() => return Err(Fault::new("ERR No such client")),
        [_] => context.reply.ok(),
        _ => context.reply.count(clients.len() as u64),
    }
    Ok(())
}

/// Ends the waiting of a client, with the reply of a time that is over or with an error.
fn unblock(context: &mut Context, id: &[u8], how: &[&[u8]]) -> Done {
    let is_error = match how {
        [] => false,
        [word] if is(word, "TIMEOUT") => false,
        [word] if is(word, "ERROR") => true,
        _ => return Err(Fault::new("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
    };
    let id = u64::try_from(integer(id)?).ok();
    let client = id.and_then(|id| context.server.clients.get(&id).cloned());
    let wait = client.as_ref().and_then(|client| context.server.waiting.forget(client));
    context.reply.bool(wait.is_some());
    if let (Some(client), Some(wait)) = (client, wait) {
        let error = b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n";
        client.serve(if is_error { wait.served(error.to_vec(), 0) } else { wait.unserved() });
    }
    Ok(())
}

fn set_info(context: &mut Context, what: &[u8], value: &[u8]) -> Done {
    if value.len() > NAME_BYTES_MAX || !value.iter().all(u8::is_ascii_graphic) {
        return Err(Fault::new("ERR lib-name and lib-ver cannot contain spaces or special characters"));
    }
    let mut library = context.client.shared.library.borrow_mut();
    match what {
        what if is(what, "LIB-NAME") => library.0 = value.to_vec(),
        what if is(what, "LIB-VER") => library.1 = value.to_vec(),
        _ => return Err(Fault::new("ERR Unrecognized option")),
    }
    drop(library);
    context.reply.ok();
    Ok(())
}

pub(crate) fn client(context: &mut Context, args: &[&[u8]]) -> Done {
    let shared = context.client.shared.clone();
    match &args[1..] {
        [word] if is(word, "ID") => context.reply.count(shared.id),
        [word] if is(word, "INFO") => context.reply.verbatim(&(line(&shared) + "\n")),
        [word] if is(word, "GETNAME") => {
            let name = shared.name.borrow();
            context.reply.bulk_or_null((!name.is_empty()).then_some(&name[..]));
        }
        [word, name] if is(word, "SETNAME") => {
            set_name(context, name)?;
            context.reply.ok();
        }
        [word, what, value] if is(word, "SETINFO") => return set_info(context, what, value),
        [word, rest @ ..] if is(word, "LIST") => return list(context, rest),
        [word, rest @ ..] if is(word, "KILL") => return kill(context, rest),
        [word, how] if is(word, "REPLY") => match how {
            how if is(how, "ON") => {
                context.client.skips = Skips::Nothing;
                context.reply.ok();
            }
            how if is(how, "OFF") => context.client.skips = Skips::All,
            how if is(how, "SKIP") => context.client.skips = Skips::Next,
            _ => return Err(SYNTAX),
        },
        [word, _] if is(word, "NO-EVICT") || is(word, "NO-TOUCH") => context.reply.ok(),
        [word, id, how @ ..] if is(word, "UNBLOCK") => return unblock(context, id, how),
        [word, ..] => {
            let word = String::from_utf8_lossy(word);
            return Err(Fault::new(format!(
                "ERR unknown subcommand or wrong number of arguments for '{word}'. Try CLIENT HELP."
            )));
        }
        [] => return Err(SYNTAX),
    }
    Ok(())
}
