//! One connection: receives requests, executes those that are whole, and sends the replies.
//!
//! All requests that a client has sent are executed together, up to [`OUTPUT_AT_ONCE`] bytes of replies. Their replies
//! go out when their changes are as durable as the server's setting says. Of all connections with more to execute or to
//! send, one goes on at a time, and others come between. While replies wait, nothing more is read from the client, so
//! that a slow reader holds one such part and one reply at most. A connection that waits for its
//! next request has no buffers: it reads into one that all connections share. While a command waits for a key, further
//! requests are received and kept, up to the limit of one request.

use crate::client::{Client, Shared, Wait};
use crate::durable::Syncs;
use crate::execute::{execute, note_active};
use crate::options::{Limits as ServerLimits, Sync};
use crate::reply::Reply;
use crate::resp::{Limits, Parser};
use crate::server::Server;
use forrest::Durability;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

/// Bytes that are read at a time.
const INPUT_AT_ONCE: usize = 16 << 10;
/// Bytes of replies after which they are sent before more requests are executed.
const OUTPUT_AT_ONCE: usize = 64 << 10;
/// Requests after which other clients come first.
const REQUESTS_AT_ONCE: usize = 1000;
/// Bytes received and sent after which other clients come first.
const BYTES_AT_ONCE: usize = 128 << 10;
/// Largest output buffer that connections pass on to each other.
const OUTPUT_KEPT: usize = 128 << 10;
/// How fast a large request has to arrive, in bytes a second.
const BYTES_PER_SECOND: usize = 64 << 10;
/// What is read of a client that is to see why it is refused, so that the system does not discard the reply.
const LINGER_BYTES: usize = 1 << 20;
const LINGER: Duration = Duration::from_secs(1);

/// What all connections share, on one thread.
pub(crate) struct Hub {
    pub(crate) server: RefCell<Server>,
    /// What waiting connections read into.
    input: RefCell<Vec<u8>>,
    /// An output buffer that no connection uses.
    output: Cell<Vec<u8>>,
    /// The turn of the connections that have more to do.
    turn: Semaphore,
    /// Of a store on disk.
    pub(crate) syncs: Option<Syncs>,
    /// The number of the last change that the operating system has.
    buffered: Cell<u64>,
    limits: ServerLimits,
}

impl Hub {
    pub(crate) fn new(server: Server, syncs: Option<Syncs>) -> Hub {
        let limits = server.options.limits;
        let input = RefCell::new(vec![0; INPUT_AT_ONCE]);
        Hub {
            server: RefCell::new(server),
            input,
            output: Cell::default(),
            turn: Semaphore::new(1),
            syncs,
            buffered: Cell::new(0),
            limits,
        }
    }
}

/// Why a connection goes on, or does not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// No whole request is left.
    Waits,
    /// There may be more requests.
    HasMore,
    /// The client has sent what is no request, or wants to leave.
    Ends,
    /// The same, and more may be coming from it.
    Refused,
    /// Its last command waits for a key.
    Blocked,
}

/// A connection whose stream is of any kind.
pub(crate) struct Connection<S> {
    stream: S,
    hub: Rc<Hub>,
    client: Client,
    parser: Parser,
    /// A part of a request, or requests after those whose replies are being sent.
    input: Vec<u8>,
    /// Bytes of it that were executed, and are still to be removed.
    done: usize,
    output: Vec<u8>,
    /// The number of the last change by this client.
    change: u64,
    /// When the request began to arrive of which there is a part.
    half_since: Option<Instant>,
    /// Bytes received and sent since others came first.
    moved: usize,
    /// Since when the client has not given the password that it needs.
    unknown_since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(crate) fn new(stream: S, hub: Rc<Hub>, shared: Rc<Shared>) -> Connection<S> {
        let is_known = hub.server.borrow().settings.password.is_none();
        Connection {
            stream,
            hub,
            client: Client::new(shared, is_known),
            parser: Parser::default(),
            input: Vec::new(),
            done: 0,
            output: Vec::new(),
            change: 0,
            half_since: None,
            moved: 0,
            unknown_since: None,
            timer: None,
        }
    }

    /// Serves the client until it leaves, or is ended.
    pub(crate) async fn run(&mut self) -> io::Result<()> {
        loop {
            let mut turn = self.receive().await?;
            loop {
                if let Err(why) = self.wait_for_durability().await {
                    self.refuse(&why);
                    turn = Turn::Refused;
                }
                self.send().await?;
                match turn {
                    Turn::Waits if self.moved < BYTES_AT_ONCE => break,
                    Turn::Waits => {
                        self.let_others_come().await?;
                        break;
                    }
                    Turn::Ends => return Ok(()),
                    Turn::Refused => return self.linger().await,
                    Turn::HasMore => {}
                    Turn::Blocked => {
                        turn = self.wait_for_key().await?;
                        continue;
                    }
                }
                self.let_others_come().await?;
                turn = self.go_on();
            }
        }
    }

    /// Returns when others have come first. Of all connections with more to do, one goes on between two looks at what
    /// has arrived, so that a client with one request waits for one of them, however many they are.
    async fn let_others_come(&mut self) -> io::Result<()> {
        let hub = self.hub.clone();
        let mut turn = std::pin::pin!(hub.turn.acquire());
        let turn = poll_fn(|cx| match turn.as_mut().poll(cx) {
            Poll::Pending => self.pend(cx),
            Poll::Ready(turn) => Poll::Ready(turn.map_err(io::Error::other)),
        })
        .await?;
        tokio::task::yield_now().await;
        drop(turn);
        self.moved = 0;
        Ok(())
    }

    /// Waits for input, and executes the requests in it.
    async fn receive(&mut self) -> io::Result<Turn> {
        if !self.input.is_empty() {
            let received = self.receive_more().await?;
            self.moved += received;
            return if received == 0 { Ok(Turn::Ends) } else { Ok(self.go_on()) };
        }
        // A time that no clock reaches is none.
        let idle = self.hub.server.borrow().settings.idle;
        let deadline = idle.and_then(|idle| Instant::now().checked_add(idle));
        self.set_input_timer(deadline);
        poll_fn(|cx| self.poll_receive(cx)).await
    }

    fn poll_receive(&mut self, cx: &mut Context) -> Poll<io::Result<Turn>> {
        self.check(cx)?;
        let hub = self.hub.clone();
        let mut bytes = hub.input.borrow_mut();
        let mut buffer = ReadBuf::new(&mut bytes);
        match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
            Poll::Pending => self.pend(cx),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => Poll::Ready(Ok(Turn::Ends)),
            Poll::Ready(Ok(())) => {
                let bytes = buffer.filled();
                self.moved += bytes.len();
                let (turn, done) = self.process(bytes);
                self.input.extend_from_slice(&bytes[done..]);
                Poll::Ready(Ok(turn))
            }
        }
    }

    /// Waits for the next part of a request.
    async fn receive_more(&mut self) -> io::Result<usize> {
        let since = *self.half_since.get_or_insert_with(Instant::now);
        let arrived = Duration::from_secs(((self.input.len() - self.done) / BYTES_PER_SECOND) as u64);
        self.set_input_timer(since.checked_add(self.hub.limits.half_request.saturating_add(arrived)));
        self.input.reserve(INPUT_AT_ONCE);
        poll_fn(|cx| {
            self.check(cx)?;
            let poll = std::pin::pin!(self.stream.read_buf(&mut self.input)).poll(cx);
            match poll {
                Poll::Pending => self.pend(cx),
                ready => ready,
            }
        })
        .await
    }

    /// Executes the requests that are left.
    fn go_on(&mut self) -> Turn {
        let mut bytes = std::mem::take(&mut self.input);
        let (turn, done) = self.process(&bytes[self.done..]);
        self.done += done;
        let left = bytes.len() - self.done;
        // No more bytes are moved than were executed: a client that waited may have sent many requests.
        if left <= self.done {
            bytes.drain(..std::mem::take(&mut self.done));
            if left == 0 && bytes.capacity() > INPUT_AT_ONCE {
                bytes = Vec::new();
            }
            bytes.shrink_to(2 * left.max(INPUT_AT_ONCE));
        }
        self.input = bytes;
        turn
    }

    /// Executes whole requests, and returns how many bytes they had.
    fn process(&mut self, bytes: &[u8]) -> (Turn, usize) {
        if self.output.capacity() == 0 {
            self.output = self.hub.output.take();
        }
        let hub = self.hub.clone();
        let mut server = hub.server.borrow_mut();
        let before = (server.data.changes(), server.writes);
        note_active(&mut server, &self.client);
        let mut requests = 0;
        let turn = loop {
            if self.output.len() >= OUTPUT_AT_ONCE || requests == REQUESTS_AT_ONCE {
                break Turn::HasMore;
            }
            requests += 1;
            let limits =
                Limits { request_bytes: self.hub.limits.request_bytes, is_known: self.client.is_known };
            match self.parser.next(bytes, limits) {
                Ok(false) => break Turn::Waits,
                Ok(true) => {
                    execute_parsed(&mut server, &mut self.client, &self.parser, bytes, &mut self.output);
                }
                Err(malformed) => {
                    self.output
                        .extend_from_slice(format!("-ERR Protocol error: {}\r\n", malformed.0).as_bytes());
                    break Turn::Refused;
                }
            }
            if self.client.quits {
                break Turn::Ends;
            }
            if self.client.shared.wait.borrow().is_some() {
                break Turn::Blocked;
            }
        };
        // A command that has changed nothing may have seen why: a change that is to be durable before its reply too.
        if (server.data.changes(), server.writes) != before {
            self.change = server.data.changes();
        }
        let done = self.parser.consume();
        self.parser.shrink();
        if turn == Turn::Waits && done == bytes.len() || done > 0 {
            self.half_since = None;
        }
        (turn, done)
    }

    /// Returns when the command that waits has its reply. Further requests are received meanwhile, because only that
    /// shows whether the client is still there: the end of the stream comes after all that was sent. They have the
    /// limit of a request, and count for the budget of all connections.
    async fn wait_for_key(&mut self) -> io::Result<Turn> {
        self.timer = None;
        let deadline = self.client.shared.wait.borrow().as_ref().and_then(|wait| wait.deadline);
        let mut end = deadline.map(|deadline| Box::pin(sleep_until(deadline.into())));
        let turn = poll_fn(|cx| {
            self.check(cx)?;
            let is_served = self.client.shared.served.borrow().is_some();
            if is_served || end.as_mut().is_some_and(|end| end.as_mut().poll(cx).is_ready()) {
                return Poll::Ready(Ok(Turn::HasMore));
            }
            loop {
                match self.poll_receive_later(cx) {
                    Poll::Pending => return self.pend(cx),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Ready(Ok(0)) => return Poll::Ready(Ok(Turn::Ends)),
                    Poll::Ready(Ok(_)) if self.input.len() - self.done > self.hub.limits.request_bytes => {
                        return Poll::Ready(Ok(Turn::Refused));
                    }
                    Poll::Ready(Ok(_)) => {}
                }
            }
        })
        .await?;
        // From here on nothing is served to it.
        let wait = self.hub.server.borrow_mut().waiting.forget(&self.client.shared);
        if turn == Turn::Refused {
            let most = self.hub.limits.request_bytes;
            let error =
                format!("-ERR a client that waits has sent more than {most} bytes (--request-bytes)\r\n");
            self.output.extend_from_slice(error.as_bytes());
            (self.input, self.done) = (Vec::new(), 0);
        }
        if turn != Turn::HasMore {
            return Ok(turn);
        }
        if let Some(served) = self.client.shared.served.take().or(wait.as_ref().map(Wait::unserved)) {
            self.output.extend_from_slice(&served.reply);
            self.change = served.change;
        }
        note_active(&mut self.hub.server.borrow_mut(), &self.client);
        Ok(Turn::HasMore)
    }

    /// Receives what is executed later. Nothing is held for a client that sends nothing.
    fn poll_receive_later(&mut self, cx: &mut Context) -> Poll<io::Result<usize>> {
        let hub = self.hub.clone();
        let mut bytes = hub.input.borrow_mut();
        let mut buffer = ReadBuf::new(&mut bytes);
        match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => {
                self.input.extend_from_slice(buffer.filled());
                Poll::Ready(Ok(buffer.filled().len()))
            }
        }
    }

    /// Replaces the replies, which do not hold, by an error. Nobody knows for which of them it is, so that the
    /// connection ends with it.
    fn refuse(&mut self, why: &str) {
        self.output.clear();
        let mut reply = Reply::new(&mut self.output, self.client.is_3, usize::MAX);
        reply.error(&format!("MISCONF changes were not made durable and may be lost: {why}"));
        self.hub.server.borrow_mut().warn_of_disk(why);
    }

    /// Returns when what the client has changed is as durable as its replies say, or with the reason why it is not.
    async fn wait_for_durability(&mut self) -> Result<(), String> {
        let change = std::mem::take(&mut self.change);
        let (Some(syncs), true) = (&self.hub.syncs, change > 0) else { return Ok(()) };
        let sync = self.hub.server.borrow().sync();
        match sync {
            Sync::Always => syncs.until(change).await,
            Sync::EverySecond | Sync::No => self.wait_for_buffer(change).await,
        }
    }

    /// Returns when the operating system has a change. One write serves all clients whose requests have arrived.
    async fn wait_for_buffer(&mut self, change: u64) -> Result<(), String> {
        if self.hub.buffered.get() < change && self.hub.server.borrow().clients.len() > 1 {
            // The others execute theirs first.
            tokio::task::yield_now().await;
        }
        if self.hub.buffered.get() < change {
            let server = self.hub.server.borrow();
            server.data.make_durable(Durability::Buffered).map_err(|error| error.to_string())?;
            self.hub.buffered.set(server.data.changes());
        }
        Ok(())
    }

    /// Sends the replies.
    async fn send(&mut self) -> io::Result<()> {
        let mut sent = 0;
        self.timer = None;
        while sent < self.output.len() {
            if self.moved >= BYTES_AT_ONCE {
                self.let_others_come().await?;
            }
            // A system with much room for them would copy all of a long reply at once.
            let end = self.output.len().min(sent + BYTES_AT_ONCE);
            let written = poll_fn(|cx| {
                self.check(cx)?;
                match Pin::new(&mut self.stream).poll_write(cx, &self.output[sent..end]) {
                    Poll::Pending => self.pend_for_reader(cx),
                    Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    ready => ready,
                }
            })
            .await?;
            sent += written;
            self.moved += written;
            self.timer = None;
        }
        // A stream of TLS has a buffer of its own.
        poll_fn(|cx| {
            self.check(cx)?;
            match Pin::new(&mut self.stream).poll_flush(cx) {
                Poll::Pending => self.pend_for_reader(cx),
                ready => ready,
            }
        })
        .await?;
        self.timer = None;
        let mut output = std::mem::take(&mut self.output);
        if output.capacity() <= OUTPUT_KEPT {
            output.clear();
            self.hub.output.set(output);
        }
        Ok(())
    }

    /// Reads for a moment what a refused client still sends.
    async fn linger(&mut self) -> io::Result<()> {
        let drain = async {
            self.stream.shutdown().await?;
            let mut left = LINGER_BYTES;
            let mut bytes = [0; 4096];
            while left > 0 {
                match self.stream.read(&mut bytes).await? {
                    0 => break,
                    len => left = left.saturating_sub(len),
                }
            }
            Ok(())
        };
        timeout(LINGER, drain).await.unwrap_or(Ok(()))
    }

    /// Sets the time in which input is to come. A client that needs a password has the time of one request to give it,
    /// so that those who do not know it cannot hold all places.
    fn set_input_timer(&mut self, deadline: Option<Instant>) {
        if self.client.is_known {
            self.unknown_since = None;
            return self.set_timer(deadline);
        }
        let since = *self.unknown_since.get_or_insert_with(Instant::now);
        let end = since.checked_add(self.hub.limits.half_request);
        // A time that no clock reaches is none.
        self.set_timer([deadline, end].into_iter().flatten().min());
    }

    fn set_timer(&mut self, deadline: Option<Instant>) {
        match (&mut self.timer, deadline) {
            (timer, None) => *timer = None,
            (Some(timer), Some(deadline)) => timer.as_mut().reset(deadline),
            (timer, Some(deadline)) => *timer = Some(Box::pin(sleep_until(deadline))),
        }
    }

    /// Fails if the connection is to end.
    fn check(&mut self, cx: &mut Context) -> io::Result<()> {
        if self.client.shared.is_ended.get() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if let Some(timer) = &mut self.timer
            && timer.as_mut().poll(cx).is_ready()
        {
            self.hub.server.borrow_mut().counts.ended_for_time += 1;
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// Waits for a client to take its reply, for a time.
    fn pend_for_reader<T>(&mut self, cx: &mut Context) -> Poll<io::Result<T>> {
        if self.timer.is_none() {
            self.set_timer(Instant::now().checked_add(self.hub.limits.slow_reader));
        }
        self.pend(cx)
    }

    /// Counts what the connection holds, as long as it waits.
    fn pend<T>(&mut self, cx: &mut Context) -> Poll<io::Result<T>> {
        // The timer may have been set after it was looked at.
        self.check(cx)?;
        self.moved = 0;
        self.client.shared.wake_by(cx.waker());
        let held = self.input.capacity() + self.output.capacity() + self.parser.memory_bytes();
        let wait_bytes = self.client.shared.wait.borrow().as_ref().map_or(0, Wait::memory_bytes);
        let bytes = held + self.client.queue_bytes + self.client.watched_bytes + wait_bytes;
        if bytes != self.client.shared.memory_bytes.get() {
            self.hub.server.borrow_mut().count_memory(&self.client.shared, bytes);
        }
        Poll::Pending
    }
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        let server = &mut *self.hub.server.borrow_mut();
        server.count_memory(&self.client.shared, 0);
        server.unwatch(&mut self.client.watched, &self.client.shared);
        server.waiting.forget(&self.client.shared);
        server.clients.remove(&self.client.shared.id);
    }
}

/// Arguments that need no allocation.
const FEW: usize = 8;

/// Executes the request that the parser has found.
fn execute_parsed(
    server: &mut Server,
    client: &mut Client,
    parser: &Parser,
    bytes: &[u8],
    output: &mut Vec<u8>,
) {
    match parser.len() {
        0 => {}
        len @ ..=FEW => {
            let mut args: [&[u8]; FEW] = [&[]; FEW];
            for (number, arg) in args[..len].iter_mut().enumerate() {
                *arg = parser.arg(bytes, number);
            }
            execute(server, client, &args[..len], output);
        }
        len => {
            let args: Vec<&[u8]> = (0..len).map(|number| parser.arg(bytes, number)).collect();
            execute(server, client, &args, output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use forrest::Db;

    /// A peer that takes replies only up to the stream's own buffer. A stream of TLS has one.
    struct Stuck(&'static [u8]);

    impl AsyncRead for Stuck {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.0.is_empty() {
                return Poll::Pending;
            }
            buffer.put_slice(std::mem::take(&mut self.0));
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Stuck {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    fn hub(limits: ServerLimits) -> Rc<Hub> {
        let options = Options { limits, ..Options::default() };
        Rc::new(Hub::new(Server::new(&Db::open("memory:").unwrap(), options).unwrap(), None))
    }

    fn connection<S: AsyncRead + AsyncWrite + Unpin>(hub: &Rc<Hub>, stream: S) -> Connection<S> {
        Connection::new(stream, hub.clone(), Shared::new(1, String::new()))
    }

    fn run(future: impl Future<Output = io::Result<()>>) -> io::ErrorKind {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let patience = Duration::from_secs(20);
        let ended = runtime.block_on(async { timeout(patience, future).await });
        ended.expect("the connection stays").unwrap_err().kind()
    }

    #[test]
    fn a_reply_that_a_stream_keeps_has_a_time() {
        let hub = hub(ServerLimits { slow_reader: Duration::from_millis(20), ..ServerLimits::default() });
        let mut stuck = connection(&hub, Stuck(b"PING\r\n"));
        assert_eq!(run(stuck.run()), io::ErrorKind::TimedOut);
        assert_eq!(hub.server.borrow().counts.ended_for_time, 1);
    }

    #[test]
    fn one_whose_reply_a_stream_keeps_can_be_ended() {
        let hub = hub(ServerLimits::default());
        let mut stuck = connection(&hub, Stuck(b"PING\r\n"));
        let shared = stuck.client.shared.clone();
        let mut running = std::pin::pin!(stuck.run());
        let ended = poll_fn(|cx| {
            let poll = running.as_mut().poll(cx);
            shared.end();
            poll
        });
        assert_eq!(run(ended), io::ErrorKind::ConnectionAborted);
    }

    /// A client that sends the same request for ever, and takes all replies.
    struct Greedy {
        requests: Vec<u8>,
        taken: Rc<Cell<usize>>,
    }

    impl AsyncRead for Greedy {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            buffer.put_slice(&self.requests);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Greedy {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.taken.set(self.taken.get() + bytes.len());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn others_wait_for_one_of_many_greedy_clients() {
        for value in [100, 10_000, 1 << 20] {
            let hub = hub(ServerLimits::default());
            let set = [&b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n"[..], format!("${value}\r\n").as_bytes()].concat();
            connection(&hub, Stuck(b"")).process(&[&set[..], &vec![b'x'; value], b"\r\n"].concat());
            let taken = Rc::new(Cell::new(0));
            let local = tokio::task::LocalSet::new();
            for _ in 0..20 {
                let greedy = Greedy { requests: b"GET k\r\n".repeat(900), taken: taken.clone() };
                let mut connection = connection(&hub, greedy);
                local.spawn_local(async move { connection.run().await });
            }
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let most = local.block_on(&runtime, async {
                let (mut most, mut before) = (0, 0);
                // At first each of them executes what has arrived.
                for round in 0..300 {
                    tokio::task::yield_now().await;
                    let now = taken.get();
                    most = most.max(if round < 30 { 0 } else { now - before });
                    before = now;
                }
                most
            });
            assert!(taken.get() > 100 * OUTPUT_AT_ONCE, "{value}");
            assert!(most <= 4 * BYTES_AT_ONCE, "{most} bytes of replies of {value}");
        }
    }

    #[test]
    fn a_change_that_does_nothing_waits_for_those_that_it_has_seen() {
        let hub = hub(ServerLimits::default());
        let mut writer = connection(&hub, Stuck(b""));
        writer.process(b"SET a 1\r\n");
        assert_eq!(writer.change, 1);
        let mut other = connection(&hub, Stuck(b""));
        other.process(b"GET a\r\n");
        assert_eq!(other.change, 0);
        other.process(b"SETNX a 2\r\n");
        assert_eq!(other.change, 1);
        let mut third = connection(&hub, Stuck(b""));
        third.process(b"MULTI\r\nSETNX a 2\r\nEXEC\r\n");
        assert_eq!(third.change, 1);
    }
}
