//! [`Server`]: the addresses that a server listens at, and the loop that takes connections.

use crate::client::Shared;
use crate::connection::{Connection, Hub};
use crate::durable::Syncs;
use crate::options::{Options, Sync, Tls};
use crate::server;
use forrest::Db;
use rustix::fs::Mode;
use rustix::net::sockopt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// Connections that the system keeps until the server takes them.
const BACKLOG: u32 = 1024;
/// Descriptors for the store and for what a process has anyway.
const OTHER_FILES: u64 = 512;
/// How often keys that have expired are looked for.
const TICK: Duration = Duration::from_millis(100);
/// Ticks between two syncs.
const TICKS_PER_SYNC: u32 = 10;
/// How long the server waits if the system has no descriptor for a connection.
const PAUSE: Duration = Duration::from_millis(50);
/// Silence after which the system asks whether the peer is still there.
const SILENCE: Duration = Duration::from_secs(300);
/// How long a connection that is refused may take to see why.
const REFUSAL: Duration = Duration::from_millis(500);

/// A server that listens. It takes connections once it [runs](Server::run).
pub struct Server {
    runtime: Runtime,
    listeners: Vec<TcpListener>,
    unix: Option<(UnixListener, Removed)>,
    hub: Hub,
    tls: Acceptor,
    addresses: Vec<SocketAddr>,
}

/// The path of a socket, which goes when the server does.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message.into())
}

impl Server {
    /// Listens at all addresses of the options. Keys are in the keyspace `redis` of the store, which no other program
    /// should change meanwhile.
    ///
    /// A store on disk is best opened with [`Durability::Memory`](forrest::Durability): the server makes changes
    /// durable itself, as [`Options::sync`] says, for many clients at once. A transaction of a client, and a command
    /// unless the store is in memory, has the limits of its batches: a large
    /// [`batch_ops_max`](forrest::Builder::batch_ops_max) lets commands change keys with millions of members.
    ///
    /// # Errors
    /// `InvalidInput` for options that contradict each other or are unsafe, and for a keyspace that no server has
    /// written; otherwise those of the system, with the address.
    pub fn bind(db: &Db, mut options: Options) -> io::Result<Server> {
        options.check().map_err(invalid)?;
        let files = u64::try_from(options.limits.connections).unwrap_or(u64::MAX);
        let most = raise_files(files.saturating_add(OTHER_FILES)).saturating_sub(OTHER_FILES).max(1);
        options.limits.connections =
            options.limits.connections.min(usize::try_from(most).unwrap_or(usize::MAX));
        let tls = acceptor(options.tls.as_ref())?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let guard = runtime.enter();
        let at =
            |what: String| move |error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"));
        let mut listeners = Vec::new();
        for address in &options.listen {
            listeners.push(listen(*address).map_err(at(address.to_string()))?);
        }
        let unix = match &options.unix {
            None => None,
            Some(path) => {
                let listener = listen_at_path(path).map_err(at(path.display().to_string()))?;
                Some((listener, Removed(path.clone())))
            }
        };
        drop(guard);
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
        let mut server = server::Server::new(db, options).map_err(|fault| invalid(fault.0.into_owned()))?;
        server.port = addresses.first().map_or(0, SocketAddr::port);
        let syncs = if server.is_on_disk { Some(Syncs::new(db)?) } else { None };
        Ok(Server { runtime, listeners, unix, hub: Hub::new(server, syncs), tls, addresses })
    }

    /// The addresses, with the ports that the system has chosen for those with port 0.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// How many connections there may be: the limit of the options, or less if the system gives fewer descriptors.
    pub fn connections(&self) -> usize {
        self.hub.server.borrow().options.limits.connections
    }

    /// Serves clients until `stop` is ready or a client calls `SHUTDOWN`. Then all connections are closed, and what
    /// was changed is synced.
    ///
    /// # Errors
    /// That of the last sync.
    pub fn run(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let Server { runtime, listeners, unix, hub, tls, .. } = self;
        let hub = Rc::new(hub);
        let shutdown = hub.server.borrow().stop.clone();
        let local = LocalSet::new();
        local.spawn_local(tick(hub.clone()));
        for listener in listeners {
            local.spawn_local(accept_all(listener, hub.clone(), tls.clone()));
        }
        let _removed = unix.map(|(listener, removed)| {
            local.spawn_local(accept_unix(listener, hub.clone()));
            removed
        });
        let mut stop = std::pin::pin!(stop);
        let mut shutdown = std::pin::pin!(shutdown.notified());
        local.block_on(
            &runtime,
            std::future::poll_fn(|cx| {
                if stop.as_mut().poll(cx).is_ready() {
                    std::task::Poll::Ready(())
                } else {
                    shutdown.as_mut().poll(cx)
                }
            }),
        );
        drop(local);
        let server = hub.server.borrow();
        if server.is_on_disk {
            server.data.db().sync().map_err(io::Error::other)?;
        }
        Ok(())
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Listens at a path. A socket that nobody listens at any more is replaced.
fn listen_at_path(path: &Path) -> io::Result<UnixListener> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server listens there"));
    }
    let is_socket = std::fs::symlink_metadata(path)
        .is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()));
    if is_socket {
        std::fs::remove_file(path)?;
    }
    // Others must not connect between the creation of the socket and a change of its mode.
    let before = umask(Mode::RWXG | Mode::RWXO);
    let listener = UnixListener::bind(path);
    umask(before);
    listener
}

/// Raises the limit of descriptors, and returns what it is then.
fn raise_files(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    if current >= wanted {
        return current;
    }
    let raised = wanted.min(limit.maximum.unwrap_or(u64::MAX));
    match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum }) {
        Ok(()) => raised,
        Err(_) => current,
    }
}

/// What is done from time to time: keys that have expired are removed, and changes are synced.
async fn tick(hub: Rc<Hub>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut number: u32 = 0;
    loop {
        ticks.tick().await;
        number = number.wrapping_add(1);
        while round(&hub) {
            // Clients come between two rounds.
            tokio::task::yield_now().await;
        }
        let mut server = hub.server.borrow_mut();
        if let Some(syncs) = &hub.syncs {
            server.counts.syncs = syncs.count();
            if let Some(why) = syncs.failure() {
                server.warn_of_disk(&why);
            }
            if number.is_multiple_of(TICKS_PER_SYNC) && server.sync() == Sync::EverySecond {
                syncs.ask(server.data.changes());
            }
        }
    }
}

/// Removes some keys that have expired. True if there may be more.
fn round(hub: &Hub) -> bool {
    let mut server = hub.server.borrow_mut();
    server.look_at_memory();
    server.drop_snapshots();
    if !server.expires_actively {
        return false;
    }
    let has_more = server.expire_some();
    if has_more.is_err() {
        // A store that fails says so to the next client that writes.
        server.data.undo();
    }
    has_more.unwrap_or(false)
}

async fn accept_all(listener: TcpListener, hub: Rc<Hub>, tls: Acceptor) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // A reply is one write, which is not to wait for another one.
                let _ = stream.set_nodelay(true);
                let _ = keep_alive(&stream);
                match &tls {
                    #[cfg(feature = "tls")]
                    Some(tls) => {
                        if is_full(&hub) {
                            hub.server.borrow_mut().counts.refused += 1;
                            continue;
                        }
                        hub.server.borrow_mut().handshakes += 1;
                        let (accept, hub) = (tls.accept(stream), hub.clone());
                        spawn_local(async move {
                            let limit = hub.server.borrow().options.limits.half_request;
                            let accepted = timeout(limit, accept).await;
                            hub.server.borrow_mut().handshakes -= 1;
                            if let Ok(Ok(stream)) = accepted {
                                serve(stream, hub, peer.to_string()).await;
                            }
                        });
                    }
                    _ => drop(spawn_local(serve(stream, hub.clone(), peer.to_string()))),
                }
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// A peer that vanished without a word is noticed, also while its client waits for a key: the system asks it after this
/// silence, and ends the connection if three questions get no reply.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(stream, SILENCE / 3)?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    Ok(())
}

async fn accept_unix(listener: UnixListener, hub: Rc<Hub>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(spawn_local(serve(stream, hub.clone(), "unix".to_owned()))),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Whether there are as many connections as there may be.
fn is_full(hub: &Hub) -> bool {
    let server = hub.server.borrow();
    server.clients.len() + server.handshakes >= server.settings.connections
}

/// Serves one connection, or refuses it if there are too many.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, hub: Rc<Hub>, address: String) {
    let shared = {
        let is_full = is_full(&hub);
        let server = &mut *hub.server.borrow_mut();
        server.counts.connections += 1;
        if is_full {
            server.counts.refused += 1;
            None
        } else {
            server.last_client += 1;
            let shared = Shared::new(server.last_client, address);
            server.clients.insert(shared.id, shared.clone());
            Some(shared)
        }
    };
    let Some(shared) = shared else {
        let refuse = stream.write_all(b"-ERR max number of clients reached\r\n");
        let _ = timeout(REFUSAL, refuse).await;
        return;
    };
    // How a connection ends concerns its client only.
    let _ = Connection::new(stream, hub, shared).run().await;
}

#[cfg(feature = "tls")]
type Acceptor = Option<tokio_rustls::TlsAcceptor>;
#[cfg(not(feature = "tls"))]
type Acceptor = Option<Rc<std::convert::Infallible>>;

#[cfg(not(feature = "tls"))]
fn acceptor(tls: Option<&Tls>) -> io::Result<Acceptor> {
    match tls {
        None => Ok(None),
        Some(_) => {
            Err(invalid("this build has no TLS: build it with the feature `tls`, which needs a C compiler"))
        }
    }
}

#[cfg(feature = "tls")]
fn acceptor(tls: Option<&Tls>) -> io::Result<Acceptor> {
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

    let Some(tls) = tls else { return Ok(None) };
    let failed = |path: &Path, error: String| invalid(format!("{}: {error}", path.display()));
    let certificates = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(&tls.certificate, error.to_string()))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| failed(&tls.key, error.to_string()))?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| failed(&tls.certificate, error.to_string()))?;
    Ok(Some(tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config))))
}
