//! One request after the other: which command it is, whether the client may call it, and its reply.

use crate::client::{Client, Shared, Skips, Wait};
use crate::commands::{AT_ONCE, Command, Context, GROWS, NEVER_QUEUED, NO_AUTH, WRITE, is, table};
use crate::fault::{FULL, Fault};
use crate::reply::Reply;
use crate::server::Server;
use std::rc::Rc;
use std::time::Instant;

/// First words of lines that a browser sends before those that a web page has chosen, which might be commands. As in
/// Redis, they end the connection, without a reply. A request of another method than `POST` has a line with `Host:`.
const OF_HTTP: [&str; 2] = ["post", "host:"];

/// Executes a request and appends its reply.
pub(crate) fn execute(server: &mut Server, client: &mut Client, args: &[&[u8]], out: &mut Vec<u8>) {
    let start = out.len();
    server.counts.commands += 1;
    let skips = client.skips;
    execute_and_reply(server, client, args, out);
    let is_this = client.skips == Skips::Next && skips != Skips::Next;
    let drops_reply = client.skips == Skips::All || is_this || skips == Skips::Next;
    if drops_reply {
        out.truncate(start);
    }
    if let Some(wait) = client.wait.take() {
        server.waiting.park(&client.shared, Wait { drops_reply, ..wait });
    }
    if skips == Skips::Next && client.skips == Skips::Next {
        client.skips = Skips::Nothing;
    }
    serve(server);
}

/// Executes a request and appends its reply, or the error that it ends with.
fn execute_and_reply(server: &mut Server, client: &mut Client, args: &[&[u8]], out: &mut Vec<u8>) {
    server.begin_time();
    let reply = Reply::new(out, client.is_3, server.options.limits.reply_bytes);
    let mut context = Context { server, client, commands: table::COMMANDS, reply };
    if let Err(fault) = start_command(&mut context, args) {
        context.server.data.discard();
        context.reply.fail(&fault.0);
    }
}

/// Gives clients that wait what the last command has made.
fn serve(server: &mut Server) {
    while server.waiting.has_ready() {
        for (database, key) in server.waiting.take_ready() {
            // If the store does not read, those who wait go on doing so: their own calls find that out.
            let _unserved = serve_key(server, &(database, key));
        }
    }
}

/// Executes the commands that wait for a key, one after the other, as long as it has elements.
fn serve_key(server: &mut Server, key: &(usize, Vec<u8>)) -> Result<(), Fault> {
    let mut after = 0;
    loop {
        let slot = server.data.slot(key.0);
        let Some(found) = server.data.find(slot, &key.1)? else { return Ok(()) };
        let Some((ticket, shared)) = server.waiting.next(key, found.record.kind, after) else {
            return Ok(());
        };
        after = ticket;
        execute_again(server, &shared);
    }
}

/// Executes the command of a client that waits. If there is nothing for it, it goes on waiting.
fn execute_again(server: &mut Server, shared: &Rc<Shared>) {
    let Some(wait) = server.waiting.forget(shared) else { return };
    let mut client = Client::new(shared.clone(), true);
    (client.database, client.is_3, client.has_waited) = (wait.database, wait.is_3, true);
    let args: Vec<&[u8]> = wait.args.iter().map(Vec::as_slice).collect();
    let mut out = Vec::new();
    execute_and_reply(server, &mut client, &args, &mut out);
    if client.wait.is_some() {
        server.waiting.park(shared, wait);
    } else {
        shared.serve(wait.served(out, server.data.changes()));
    }
}

fn start_command(context: &mut Context, args: &[&[u8]]) -> Result<(), Fault> {
    if OF_HTTP.iter().any(|word| is(args[0], word)) {
        context.server.warn_of_page(&context.client.shared.address);
        context.client.quits = true;
        return Ok(());
    }
    let admitted = admit(context, args);
    let client = &mut *context.client;
    let command = admitted.inspect_err(|_| client.is_aborted |= client.queue.is_some())?;
    if client.queue.is_some() && !command.has(AT_ONCE) {
        return queue(context, command, args);
    }
    run(context, command, args)
}

/// The command of a request, if the client may call it so.
fn admit(context: &Context, args: &[&[u8]]) -> Result<&'static Command, Fault> {
    let command = table::find(args[0]).ok_or_else(|| unknown(args))?;
    if !context.client.is_known && !command.has(NO_AUTH) {
        return Err(Fault::new("NOAUTH Authentication required."));
    }
    if !command.takes(args.len()) {
        let name = command.name;
        return Err(Fault::new(format!("ERR wrong number of arguments for '{name}' command")));
    }
    context.client.shared.last_command.set(command.name);
    if context.server.is_full() && command.has(GROWS) {
        return Err(FULL);
    }
    Ok(command)
}

/// Runs a command to its end.
#[inline]
fn run(context: &mut Context, command: &'static Command, args: &[&[u8]]) -> Result<(), Fault> {
    context.server.writes += u64::from(command.has(WRITE));
    let done = (command.run)(context, args)
        .and_then(|()| context.reply.check())
        .and_then(|()| context.server.data.commit());
    context.end_command(command, args);
    done
}

/// Keeps a request for `EXEC`.
fn queue(context: &mut Context, command: &Command, args: &[&[u8]]) -> Result<(), Fault> {
    let client = &mut *context.client;
    if command.has(NEVER_QUEUED) {
        client.is_aborted = true;
        return Err(Fault::new("ERR Command not allowed inside a transaction"));
    }
    let bytes: usize = args.iter().map(|arg| arg.len() + size_of::<Vec<u8>>()).sum();
    let most = context.server.options.limits.request_bytes;
    if client.queue_bytes + bytes > most {
        client.is_aborted = true;
        return Err(Fault::new(format!("ERR the transaction has more than {most} bytes (--request-bytes)")));
    }
    client.queue_bytes += bytes;
    if let Some(queue) = &mut client.queue {
        queue.push(args.iter().map(|arg| arg.to_vec()).collect());
    }
    context.reply.simple("QUEUED");
    Ok(())
}

/// What is to be sent to a client that calls a command that there is not.
pub(crate) fn unknown(args: &[&[u8]]) -> Fault {
    let short = |arg: &[u8]| String::from_utf8_lossy(&arg[..arg.len().min(128)]).into_owned();
    let name = short(args[0]);
    if let Some(why) = table::declined(args[0]) {
        return Fault::new(format!("ERR '{name}' is not supported: {why}"));
    }
    let mut with = String::new();
    for arg in args[1..].iter().take(20) {
        if with.len() > 128 {
            break;
        }
        with += &format!(" '{}'", short(arg));
    }
    Fault::new(format!("ERR unknown command '{name}', with args beginning with:{with}"))
}

/// Notes when a client was last active: now, when its next command begins.
pub(crate) fn note_active(server: &mut Server, client: &Client) {
    let now = Instant::now();
    client.shared.active.set(now);
    server.begin_lap(now);
}
