//! `serve`: the store for programs that speak Redis's protocol, until Ctrl-C.

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::session::{Answer, Session};
use forrest::Capability;
use forrest_redis::{Limits, Options, Server, Tls};
use signal_hook::consts::SIGTERM;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Operations of one command or transaction. A key with some million members is copied or united by one, and the bytes
/// of a batch have a limit of their own.
pub(crate) const BATCH_OPS_MAX: usize = 8 << 20;
/// How often Ctrl-C and SIGTERM are looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Longest password.
const PASSWORD_BYTES_MAX: u64 = 4096;

pub(crate) fn run(session: &mut Session, args: &ServeArgs) -> Result<Answer, Failure> {
    let asked = options(args)?;
    let cannot = |error| Failure::io("cannot serve", error);
    let connections = asked.limits.connections;
    let server = Server::bind(&session.db, asked).map_err(cannot)?;
    if server.connections() < connections {
        session.note(format_args!(
            "{} connections at most, because the system gives no more descriptors (ulimit -n)",
            server.connections()
        ));
    }
    if !session.db.capabilities().has(Capability::Persistence) {
        session.note(format_args!("the store is in memory and ends with this process; name another by --db"));
    }
    for address in server.addresses() {
        session.line(format_args!("listening at {address}"))?;
    }
    if let Some(path) = &args.unix {
        session.line(format_args!("listening at {}", path.display()))?;
    }
    session.flush()?;
    let stopped = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGTERM, stopped.clone())
        .map_err(|error| Failure::io("cannot watch for SIGTERM", error))?;
    server.run(until_stopped(&stopped)).map_err(cannot)?;
    Ok(Answer::Done)
}

/// Ready after Ctrl-C or SIGTERM. A thread looks for them, because the server has no other work then.
async fn until_stopped(stopped: &Arc<AtomicBool>) {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let stopped = stopped.clone();
    thread::spawn(move || {
        // ORDERING: relaxed, because nothing else depends on the flag.
        while interrupt::check().is_ok() && !stopped.load(Ordering::Relaxed) && !sender.is_closed() {
            thread::sleep(LOOK);
        }
        let _ = sender.send(());
    });
    let _ = receiver.await;
}

fn options(args: &ServeArgs) -> Result<Options, Failure> {
    let defaults = Limits::default();
    let seconds = |given: Option<u64>, otherwise| given.map_or(otherwise, Duration::from_secs);
    let limits = Limits {
        connections: args.connections.unwrap_or(defaults.connections),
        request_bytes: args.request_bytes.unwrap_or(defaults.request_bytes),
        reply_bytes: args.reply_bytes.unwrap_or(defaults.reply_bytes),
        buffers_bytes: args.buffers_bytes.unwrap_or(defaults.buffers_bytes),
        half_request: seconds(args.half_request, defaults.half_request),
        slow_reader: seconds(args.slow_reader, defaults.slow_reader),
        idle: args.idle.map(Duration::from_secs),
        ..defaults
    };
    let listen = match (&args.listen[..], &args.unix) {
        ([], None) => vec![([127, 0, 0, 1], 6379).into()],
        (listen, _) => listen.to_vec(),
    };
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls { certificate: certificate.clone(), key: key.clone() }),
        _ => None,
    };
    Ok(Options {
        listen,
        unix: args.unix.clone(),
        password: args.password_file.as_deref().map(password).transpose()?,
        tls,
        plain: args.plain,
        sync: args.fsync,
        limits,
        debug: args.debug_commands,
    })
}

/// The first line of a file.
fn password(path: &Path) -> Result<Vec<u8>, Failure> {
    let cannot = |error| Failure::io(format!("cannot read the password {}", path.display()), error);
    let len = std::fs::metadata(path).map_err(cannot)?.len();
    if len > PASSWORD_BYTES_MAX {
        let shown = path.display();
        return Err(Failure::usage(format!("{shown} has {len} bytes, and a password {PASSWORD_BYTES_MAX}")));
    }
    let bytes = std::fs::read(path).map_err(cannot)?;
    Ok(bytes.split(|byte| *byte == b'\n').next().unwrap_or_default().to_vec())
}
