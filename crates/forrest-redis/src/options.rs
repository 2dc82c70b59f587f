//! [`Options`]: where the server listens, who may use it, how durable changes are, and its limits.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// When a change on disk is durable. Stores in memory and in the kernel ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Sync {
    /// A reply comes after the sync that made its change durable. One sync serves all clients that wait.
    Always,
    /// A reply comes when the operating system has the change, and a sync follows within a second. The end of the
    /// process loses nothing; power loss loses a second.
    #[default]
    EverySecond,
    /// As the operating system likes.
    No,
}

impl Sync {
    /// The name, as Redis has it.
    pub fn name(self) -> &'static str {
        match self {
            Sync::Always => "always",
            Sync::EverySecond => "everysec",
            Sync::No => "no",
        }
    }

    /// The value of a name.
    pub fn of_name(name: &str) -> Option<Sync> {
        [Sync::Always, Sync::EverySecond, Sync::No].into_iter().find(|sync| sync.name() == name)
    }
}

/// Certificate and key of the server, as PEM files.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The certificate and those that lead to its issuer.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What clients may take. Whatever is beyond is refused with an error that names the limit, or ends the connection.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time. One more gets an error and is closed.
    pub connections: usize,
    /// Bytes of a request, and of a string. A request above it gets an error, and its connection is closed.
    pub request_bytes: usize,
    /// Bytes of a reply, and of all replies of a transaction. A longer one is replaced by an error, and its command or
    /// transaction changes nothing.
    pub reply_bytes: usize,
    /// Bytes of all buffers of all connections, with requests that wait and watched keys. Above it the connection with
    /// the largest ones is closed.
    pub buffers_bytes: usize,
    /// How long a client may take to send the next part of a request of which it has sent some; and until it has given
    /// the password.
    pub half_request: Duration,
    /// How long a client may take to read the next part of its replies.
    pub slow_reader: Duration,
    /// How long a client may be silent between requests; `None` for ever.
    pub idle: Option<Duration>,
    /// Snapshots at a time.
    pub snapshots: usize,
    /// How long a snapshot is kept.
    pub snapshot_age: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 10_000,
            request_bytes: 64 << 20,
            reply_bytes: 256 << 20,
            buffers_bytes: 512 << 20,
            half_request: Duration::from_secs(30),
            slow_reader: Duration::from_secs(60),
            idle: None,
            snapshots: 16,
            snapshot_age: Duration::from_secs(3600),
        }
    }
}

/// How a server runs.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The addresses to listen at. Those that are not loopback need a password, and TLS unless [`plain`](Self::plain).
    pub listen: Vec<SocketAddr>,
    /// The path of a Unix socket, which only this user may connect to.
    pub unix: Option<PathBuf>,
    /// The password that clients give by `AUTH` or `HELLO`.
    pub password: Option<Vec<u8>>,
    /// TLS at all addresses, but not at the Unix socket.
    pub tls: Option<Tls>,
    /// Addresses that are not loopback may go without TLS.
    pub plain: bool,
    /// When changes on disk are durable.
    pub sync: Sync,
    /// What clients may take.
    pub limits: Limits,
    /// `DEBUG` and `CONFIG SET requirepass` may be used. For tests.
    pub debug: bool,
}

impl Options {
    /// Why these options are refused.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.listen.is_empty() && self.unix.is_none() {
            return Err("no address to listen at: name one by --listen or --unix".to_owned());
        }
        if self.password.as_ref().is_some_and(Vec::is_empty) {
            return Err("the password is empty".to_owned());
        }
        for address in self.listen.iter().filter(|address| !address.ip().is_loopback()) {
            if self.password.is_none() {
                return Err(format!(
                    "{address} can be reached from other machines, so it needs a password: --password-file FILE"
                ));
            }
            if self.tls.is_none() && !self.plain {
                return Err(format!(
                    "{address} can be reached from other machines, so it needs TLS: --tls-cert FILE and --tls-key FILE, \
                     or --plain if the network between is trusted"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_need_a_password_and_tls() {
        let at = |listen: &str| Options { listen: vec![listen.parse().unwrap()], ..Options::default() };
        assert_eq!(at("127.0.0.1:0").check(), Ok(()));
        assert_eq!(at("[::1]:0").check(), Ok(()));
        assert!(Options::default().check().unwrap_err().contains("--listen"));
        let open = at("0.0.0.0:0");
        assert!(open.check().unwrap_err().contains("--password-file"));
        let known = Options { password: Some(b"secret".to_vec()), ..open };
        assert!(known.check().unwrap_err().contains("--plain"));
        assert_eq!(Options { plain: true, ..known.clone() }.check(), Ok(()));
        let tls = Tls { certificate: "cert.pem".into(), key: "key.pem".into() };
        assert_eq!(Options { tls: Some(tls), ..known.clone() }.check(), Ok(()));
        assert!(Options { password: Some(Vec::new()), ..known }.check().unwrap_err().contains("empty"));
    }

    #[test]
    fn names_of_sync_are_those_of_redis() {
        for sync in [Sync::Always, Sync::EverySecond, Sync::No] {
            assert_eq!(Sync::of_name(sync.name()), Some(sync));
        }
        assert_eq!(Sync::of_name("sometimes"), None);
    }
}
