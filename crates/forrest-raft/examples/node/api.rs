//! What a node does for its clients and for other nodes.
//!
//! | request | what it does |
//! |---|---|
//! | `GET /keys/KEY` | the value; 404 if there is none |
//! | `PUT /keys/KEY`, `DELETE /keys/KEY` | sets it to the body; deletes it |
//! | `PUT /keys/KEY?if=VALUE`, `?absent` | the same if the value is this one, or there is none; else 409 with what was found |
//! | `GET /range?start=A&end=B&limit=N` | lines of a key, a tab and a value; at most N (1,000 if it is not given), and of 1 MiB |
//! | `DELETE /range?start=A&end=B` | deletes all keys from A to below B |
//! | `POST /batch` | lines as those of `forrest::line`, applied at one instant; all keys in one range |
//! | `POST /begin`, with lines of an id and an address | begins a new store of these nodes; to one of them, once |
//! | `POST /groups/GROUP/members`, with the same | makes these the nodes of a group |
//! | `GET /status` | a line for each group: its first key, this node's part in it, the leader, the last entry applied |
//! | `POST /cut`, with ids | cuts this node off from others, for tests |
//!
//! Reads are linearizable: the leader makes sure that it is still the leader. Another node redirects to it (307), or
//! returns 503 if it knows none. A range that goes on in the next group ends there, or at a limit, and the header
//! `x-next` has the key to go on with, percent-encoded as for a URL. Each part is read at one instant, and not all of
//! them at the same. Keys are text, in UTF-8.
//!
//! With the headers `x-client` and `x-serial`, both numbers, a change that is sent again is applied once.

use crate::peers::{FROM, MESSAGE_BYTES_MAX};
use crate::{App, Part};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use forrest::{Op, WriteBatch};
use forrest_raft::{Command, Meta, Moment, Response as Outcome, Types, Vote};
use futures_util::StreamExt;
use openraft::errors::ForwardToLeader;
use openraft::{BasicNode, ReadPolicy, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

type Shared = State<Arc<App>>;
type Answer = Result<Response, Response>;
type Parameters = Query<BTreeMap<String, String>>;

pub(crate) fn routes(app: Arc<App>) -> Router {
    Router::new()
        .route("/keys/{key}", get(get_key).put(put_key).delete(delete_key))
        .route("/range", get(get_range).delete(delete_range))
        .route("/batch", post(batch))
        .route("/begin", post(begin))
        .route("/groups/{group}/members", post(members))
        .route("/status", get(status))
        .route("/cut", post(cut))
        .route("/raft/{group}/{what}", post(raft))
        .layer(axum::extract::DefaultBodyLimit::max(MESSAGE_BYTES_MAX))
        .with_state(app)
}

fn failed(status: StatusCode, why: impl Display) -> Response {
    (status, format!("{why}\n")).into_response()
}

fn bad(why: impl Display) -> Response {
    failed(StatusCode::BAD_REQUEST, why)
}

fn internal(why: impl Display) -> Response {
    failed(StatusCode::INTERNAL_SERVER_ERROR, why)
}

/// Sends the client to the leader.
fn elsewhere(leader: &ForwardToLeader<Types>, path: &str) -> Response {
    match &leader.leader_node {
        Some(node) => {
            let location = [(header::LOCATION, format!("http://{}{path}", node.addr))];
            (StatusCode::TEMPORARY_REDIRECT, location).into_response()
        }
        None => failed(StatusCode::SERVICE_UNAVAILABLE, "no leader is known"),
    }
}

impl App {
    /// The part that has a key.
    fn part(&self, key: &str) -> &Part {
        self.parts.iter().rfind(|part| *part.start <= *key).expect("the first part begins with the first key")
    }

    fn of_group(&self, group: u64) -> Result<&Part, Response> {
        let part = self.parts.iter().find(|part| part.group == group);
        part.ok_or_else(|| failed(StatusCode::NOT_FOUND, format_args!("no group {group}")))
    }
}

impl Part {
    /// The data with all changes that were acknowledged before this call.
    async fn read(&self, path: &str) -> Result<Moment, Response> {
        if let Err(error) = self.raft.ensure_linearizable(ReadPolicy::ReadIndex).await {
            let leader = error.forward_to_leader();
            return Err(leader.map_or_else(
                || failed(StatusCode::SERVICE_UNAVAILABLE, &error),
                |leader| elsewhere(leader, path),
            ));
        }
        self.reader.moment().map_err(internal)
    }

    async fn write(&self, command: Command, headers: &HeaderMap, path: &str) -> Answer {
        let command = match session(headers)? {
            Some((client, serial)) => command.with_session(client, serial).map_err(bad)?,
            None => command,
        };
        let written = self.raft.client_write(command).await;
        let written = written.map_err(|error| {
            let leader = error.forward_to_leader();
            leader.map_or_else(
                || failed(StatusCode::SERVICE_UNAVAILABLE, &error),
                |leader| elsewhere(leader, path),
            )
        })?;
        Ok(match written.data {
            Outcome::Applied => StatusCode::NO_CONTENT.into_response(),
            Outcome::Mismatch { found: Some(found), .. } => (StatusCode::CONFLICT, found).into_response(),
            Outcome::Mismatch { found: None, .. } => {
                (StatusCode::CONFLICT, [("x-absent", "1")]).into_response()
            }
            Outcome::Refused(why) => failed(StatusCode::BAD_REQUEST, why),
            Outcome::Stale { last } => {
                failed(StatusCode::GONE, format_args!("the client's last serial number is {last}"))
            }
        })
    }
}

/// The client and the serial number of a change; `None` if it has neither.
fn session(headers: &HeaderMap) -> Result<Option<(u64, u64)>, Response> {
    let number = |name: &str| {
        let Some(value) = headers.get(name) else { return Ok(None) };
        let number = value.to_str().ok().and_then(|value| value.parse::<u64>().ok());
        number.map(Some).ok_or_else(|| bad(format_args!("{name}: {value:?} is no number of 64 bits")))
    };
    match (number("x-client")?, number("x-serial")?) {
        (Some(client), Some(serial)) => Ok(Some((client, serial))),
        (None, None) => Ok(None),
        _ => Err(bad("of x-client and x-serial one is missing")),
    }
}

fn command(batch: &WriteBatch) -> Result<Command, Response> {
    Command::try_from(batch).map_err(bad)
}

/// The path of the request, to send the client elsewhere with.
type Uri = axum::http::Uri;

fn path(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |path| path.as_str())
}

async fn get_key(State(app): Shared, Path(key): Path<String>, uri: Uri) -> Answer {
    let moment = app.part(&key).read(path(&uri)).await?;
    let value = moment.get(&key).map_err(internal)?;
    Ok(value.map_or_else(|| StatusCode::NOT_FOUND.into_response(), |value| value.to_vec().into_response()))
}

async fn put_key(
    State(app): Shared,
    Path(key): Path<String>,
    Query(parameters): Parameters,
    uri: Uri,
    headers: HeaderMap,
    value: Bytes,
) -> Answer {
    let mut batch = WriteBatch::new();
    match parameters.get("if") {
        Some(expected) => batch.compare_and_swap(&key, Some(expected.as_bytes()), Some(&value)),
        None if parameters.contains_key("absent") => batch.compare_and_swap(&key, None, Some(&value)),
        None => batch.set(&key, value),
    };
    app.part(&key).write(command(&batch)?, &headers, path(&uri)).await
}

async fn delete_key(
    State(app): Shared,
    Path(key): Path<String>,
    Query(parameters): Parameters,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let mut batch = WriteBatch::new();
    match parameters.get("if") {
        Some(expected) => batch.compare_and_swap(&key, Some(expected.as_bytes()), None),
        None => batch.delete(&key),
    };
    app.part(&key).write(command(&batch)?, &headers, path(&uri)).await
}

/// The part of a range that the first of its groups has, and the key to go on with.
fn first_part<'a>(
    app: &'a App,
    parameters: &'a BTreeMap<String, String>,
) -> (&'a Part, &'a str, Option<&'a str>, Option<&'a str>) {
    let start = parameters.get("start").map_or("", String::as_str);
    let end = parameters.get("end").map(String::as_str);
    let part = app.part(start);
    match part.end.as_deref().filter(|border| end.is_none_or(|end| *border < end)) {
        Some(border) => (part, start, Some(border), Some(border)),
        None => (part, start, end, None),
    }
}

/// The same response, with the key to go on with. A header has no other letters than those of ASCII, and a key may.
fn with_next(mut response: Response, next: Option<&[u8]>) -> Response {
    if let Some(next) = next {
        let mut text = String::new();
        for byte in next {
            match byte {
                b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => {
                    text.push(char::from(*byte))
                }
                other => text += &format!("%{other:02X}"),
            }
        }
        response.headers_mut().insert("x-next", text.parse().expect("it is ASCII"));
    }
    response
}

/// Pairs of a response, if the request names no limit.
const PAIRS: NonZeroUsize = NonZeroUsize::new(1000).unwrap();
/// A response with this many bytes or more ends, whatever the limit: it is built in memory.
const RANGE_BYTES: usize = 1 << 20;

async fn get_range(State(app): Shared, Query(parameters): Parameters, uri: Uri) -> Answer {
    let (part, start, end, next) = first_part(&app, &parameters);
    let limit = parameters.get("limit").map_or(Ok(PAIRS), |limit| limit.parse());
    let limit: NonZeroUsize = limit.map_err(|error| bad(format_args!("the limit: {error}")))?;
    let moment = part.read(path(&uri)).await?;
    let mut lines = String::new();
    let upper = end.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
    for (at, pair) in moment.range((std::ops::Bound::Included(start), upper)).enumerate() {
        let pair = pair.map_err(internal)?;
        if at == limit.get() || lines.len() >= RANGE_BYTES {
            return Ok(with_next(lines.into_response(), Some(pair.key())));
        }
        let (key, value) = (pair.key().escape_ascii(), pair.value_bytes().map_err(internal)?.escape_ascii());
        writeln!(lines, "{key}\t{value}").map_err(internal)?;
    }
    Ok(with_next(lines.into_response(), next.map(str::as_bytes)))
}

async fn delete_range(
    State(app): Shared,
    Query(parameters): Parameters,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let (part, start, end, next) = first_part(&app, &parameters);
    let op = Op::DeleteRange { start, end };
    let command = Command::one(op).map_err(bad)?;
    let done = part.write(command, &headers, path(&uri)).await?;
    Ok(with_next(done, next.map(str::as_bytes)))
}

async fn batch(State(app): Shared, uri: Uri, headers: HeaderMap, lines: String) -> Answer {
    let (mut batch, mut part) = (WriteBatch::new(), None);
    for line in lines.lines() {
        let op: Op = line.parse().map_err(bad)?;
        let key = match &op {
            Op::Set { key, .. } | Op::Delete { key } | Op::CompareAndSwap { key, .. } => key,
            other => return Err(bad(format_args!("{other} in a batch"))),
        };
        let key = std::str::from_utf8(key).map_err(|error| bad(format_args!("the key of {op}: {error}")))?;
        let of = app.part(key);
        if part.replace(of.group).is_some_and(|other| other != of.group) {
            return Err(bad("the keys are in more than one range"));
        }
        batch.push(op);
    }
    let part = app.parts.iter().find(|one| Some(one.group) == part);
    let part = part.ok_or_else(|| bad("no change"))?;
    part.write(command(&batch)?, &headers, path(&uri)).await
}

fn nodes(lines: &str) -> Result<BTreeMap<u64, BasicNode>, Response> {
    let node = |line: &str| {
        let (id, addr) = line.split_once(' ')?;
        Some((id.parse().ok()?, BasicNode::new(addr)))
    };
    let wrong = |line| bad(format_args!("\"{line}\" is no id and address of a node"));
    lines.lines().map(|line| node(line).ok_or_else(|| wrong(line))).collect()
}

async fn begin(State(app): Shared, lines: String) -> Answer {
    let members = nodes(&lines)?;
    for part in &app.parts {
        part.raft.initialize(members.clone()).await.map_err(|error| failed(StatusCode::CONFLICT, error))?;
        // With a leader, a majority has stored that it began.
        let has_leader = part.raft.wait(Some(Duration::from_secs(10)));
        let is_known = |metrics: &openraft::RaftMetrics<Types>| metrics.current_leader.is_some();
        has_leader.metrics(is_known, "a leader").await.map_err(internal)?;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn members(State(app): Shared, Path(group): Path<u64>, uri: Uri, lines: String) -> Answer {
    let (members, part) = (nodes(&lines)?, app.of_group(group)?);
    let failed = |error: openraft::errors::RaftError<Types, openraft::errors::ClientWriteError<Types>>| {
        let leader = error.forward_to_leader();
        leader.map_or_else(|| internal(&error), |leader| elsewhere(leader, path(&uri)))
    };
    // A new node gets the data before it counts.
    for (id, node) in &members {
        part.raft.add_learner(*id, node.clone(), true).await.map_err(failed)?;
    }
    let ids: BTreeSet<u64> = members.into_keys().collect();
    part.raft.change_membership(ids, false).await.map_err(failed)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn status(State(app): Shared) -> String {
    use openraft::async_runtime::WatchReceiver;
    let mut lines = String::new();
    for part in &app.parts {
        let metrics = part.raft.metrics().borrow_watched().clone();
        let leader = metrics.current_leader.map_or("none".to_owned(), |leader| leader.to_string());
        let applied = metrics.last_applied.map_or(0, |id| id.index);
        let state = format!("{:?}", metrics.state).to_lowercase();
        let (group, start) = (part.group, part.start.escape_debug());
        lines += &format!("group {group} from \"{start}\": {state}, leader {leader}, applied {applied}\n");
    }
    lines
}

async fn cut(State(app): Shared, ids: String) -> StatusCode {
    app.peers.cut(ids.split_whitespace().filter_map(|id| id.parse().ok()).collect());
    StatusCode::NO_CONTENT
}

fn packed(message: &impl serde::Serialize) -> Answer {
    rmp_serde::to_vec(message).map(IntoResponse::into_response).map_err(internal)
}

/// A message of another node.
async fn raft(
    State(app): Shared,
    Path((group, what)): Path<(u64, String)>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let from = headers.get(FROM).and_then(|from| from.to_str().ok()?.parse().ok());
    if from.is_none_or(|from| app.peers.is_cut(from)) {
        return Err(failed(StatusCode::SERVICE_UNAVAILABLE, "cut off"));
    }
    let part = app.of_group(group)?;
    if what == "snapshot" {
        return snapshot(part, body).await;
    }
    let body = axum::body::to_bytes(body, MESSAGE_BYTES_MAX).await.map_err(bad)?;
    match &*what {
        "append" => {
            let message = rmp_serde::from_slice(&body).map_err(bad)?;
            packed(&part.raft.append_entries(message).await.map_err(internal)?)
        }
        "vote" => {
            packed(&part.raft.vote(rmp_serde::from_slice(&body).map_err(bad)?).await.map_err(internal)?)
        }
        "pre-vote" => {
            packed(&part.raft.pre_vote(rmp_serde::from_slice(&body).map_err(bad)?).await.map_err(internal)?)
        }
        other => Err(failed(StatusCode::NOT_FOUND, format_args!("no message \"{other}\""))),
    }
}

/// Stores a snapshot while it arrives, and installs it when it is complete.
async fn snapshot(part: &Part, body: Body) -> Answer {
    let mut receiver = part.reader.receive().map_err(internal)?;
    let mut body = body.into_data_stream();
    let (mut head, mut decoded) = (Vec::new(), None);
    while let Some(bytes) = body.next().await {
        let bytes = bytes.map_err(bad)?;
        if decoded.is_some() {
            receiver.push(&bytes).map_err(internal)?;
            continue;
        }
        head.extend_from_slice(&bytes);
        let Some((length, rest)) = head.split_first_chunk::<4>() else { continue };
        let Some((message, image)) = rest.split_at_checked(u32::from_be_bytes(*length) as usize) else {
            continue;
        };
        let message: (Vote, Meta) = rmp_serde::from_slice(message).map_err(bad)?;
        decoded = Some(message);
        receiver.push(image).map_err(internal)?;
    }
    let (vote, meta) = decoded.ok_or_else(|| bad("a snapshot without a head"))?;
    let snapshot = Snapshot { meta, snapshot: receiver.finish().map_err(internal)? };
    packed(&part.raft.install_full_snapshot(vote, snapshot).await.map_err(internal)?)
}
