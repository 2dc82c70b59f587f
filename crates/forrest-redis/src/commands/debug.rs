//! `DEBUG`, for tests of clients and of this server. It exists only if the server was started so.

use super::{Context, is};
use crate::fault::{Done, Fault};
use std::time::Duration;

/// Longest sleep.
const SLEEP_MAX: Duration = Duration::from_secs(10);

pub(crate) fn debug(context: &mut Context, args: &[&[u8]]) -> Done {
    if !context.server.options.debug {
        return Err(Fault::new("ERR DEBUG is only for tests: the server needs --debug-commands"));
    }
    match &args[1..] {
        [word, on] if is(word, "SET-ACTIVE-EXPIRE") => {
            context.server.expires_actively = *on == b"1";
            context.reply.ok();
        }
        [word, seconds] if is(word, "SLEEP") => {
            // As in Redis, all clients wait meanwhile.
            let time = Duration::try_from_secs_f64(super::float(seconds)?).unwrap_or_default();
            std::thread::sleep(time.min(SLEEP_MAX));
            context.reply.ok();
        }
        [word, what] if is(word, "PROTOCOL") => return protocol(context, what),
        _ => return Err(Fault::new("ERR only DEBUG PROTOCOL, SET-ACTIVE-EXPIRE and SLEEP are supported")),
    }
    Ok(())
}

/// A reply of a type, which version 3 has and for which version 2 has another one.
fn protocol(context: &mut Context, what: &[u8]) -> Done {
    let reply = &mut context.reply;
    let is_3 = reply.is_3;
    match what {
        what if is(what, "string") => reply.bulk(b"Hello World"),
        what if is(what, "integer") => reply.integer(12345),
        what if is(what, "double") => reply.double(1.5),
        what if is(what, "null") => reply.null(),
        what if is(what, "true") && is_3 => reply.raw(b"#t\r\n"),
        what if is(what, "false") && is_3 => reply.raw(b"#f\r\n"),
        what if is(what, "true") => reply.integer(1),
        what if is(what, "false") => reply.integer(0),
        what if is(what, "verbatim") => reply.verbatim("This is a verbatim\nstring"),
        what if is(what, "bignum") && is_3 => reply.raw(b"(1234567999999999999999999999999999999\r\n"),
        what if is(what, "bignum") => reply.bulk(b"1234567999999999999999999999999999999"),
        what if is(what, "attrib") => {
            if is_3 {
                reply.raw(b"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n");
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        _ => return Err(Fault::new("ERR Wrong protocol type name")),
    }
    Ok(())
}
