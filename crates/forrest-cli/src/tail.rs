//! `tail`: the changes of a store, in their order, a line each.
//!
//! | format | a line |
//! |---|---|
//! | `text` | the sequence number, TAB, the change as in `ops`; `create-keyspace`, `drop-keyspace` and `ingest FIRST LAST` too |
//! | `ops` | the change as an operation, which `load` makes again; those of a keyspace as a whole are comments |
//! | `jsonl` | `{"sequence": 7, "ends_batch": true, "what": "set", "keyspace": "...", "key": "...", "value": "..."}` |
//!
//! The changes have no pairs of an ingest. In `ops` they follow its comment, as they are when the line is printed:
//! after all changes the state is the same.

use crate::args::{Level, TailArgs};
use crate::codec::{Format, write_json_field, write_op_keyspace};
use crate::dump;
use crate::failure::Failure;
use crate::interrupt;
use crate::session::{Answer, Session};
use forrest::{Change, DEFAULT_KEYSPACE, Durability, Expires, Op, What, line};
use std::io::Write;
use std::ops::Bound;
use std::time::Duration;

/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Prints the changes that there are, and those that come if they are followed.
pub(crate) fn run(session: &mut Session, args: &TailArgs) -> Result<Answer, Failure> {
    let format = session.format;
    if !matches!(format, Format::Text | Format::Ops | Format::Jsonl) {
        return Err(Failure::usage("tail prints changes as text, ops or jsonl"));
    }
    let durability = match args.durability {
        Level::Memory => Durability::Memory,
        Level::Buffered => Durability::Buffered,
        Level::Sync => Durability::Sync,
    };
    let mut changes = session.db.changes_with(args.since, durability)?;
    let mut out = Vec::new();
    loop {
        interrupt::check()?;
        let Some(change) = changes.next().transpose()? else {
            session.flush()?;
            if !args.follow {
                return Ok(Answer::Done);
            }
            if let Some(change) = changes.next_within(LOOK)? {
                print(session, format, &change, &mut out)?;
            }
            continue;
        };
        print(session, format, &change, &mut out)?;
    }
}

fn print(session: &mut Session, format: Format, change: &Change, out: &mut Vec<u8>) -> Result<(), Failure> {
    out.clear();
    match format {
        Format::Jsonl => json(change, out),
        _ => text(format == Format::Ops, change, out),
    }
    session.write(out)?;
    match &change.what {
        What::Ingest { first, last } if format == Format::Ops => {
            ingested(session, &change.keyspace, (first, last), out)
        }
        _ => Ok(()),
    }
}

/// Prints the pairs from `first` to `last` as they are now: the changes do not have those of an ingest. What is newer
/// than the ingest in them is among the changes that follow, which make it once more. A keyspace that was dropped
/// meanwhile has none.
fn ingested(
    session: &mut Session,
    keyspace: &str,
    (first, last): (&[u8], &[u8]),
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    // The changes of another process may be newer than what is read here.
    session.db.refresh()?;
    let may_expire = session.db.stats()?.expiring > 0;
    // A snapshot makes no keyspace.
    let view = session.db.snapshot()?.keyspace(keyspace)?;
    let name = (keyspace != DEFAULT_KEYSPACE).then_some(keyspace);
    for entry in view.range((Bound::Included(first), Bound::Included(last))) {
        interrupt::check()?;
        out.clear();
        dump::write_entry(Format::Ops, name, (&view, &entry?), may_expire, out)?;
        session.write(out)?;
    }
    Ok(())
}

/// A change as a line of operations, or beside its number.
fn text(is_op: bool, change: &Change, out: &mut Vec<u8>) {
    let op = match &change.what {
        What::Set { key, value } => Op::Set { key: key.clone(), value: value.clone() }.to_string(),
        What::SetUntil { key, value, expires_ms } => {
            let (key, value, expires) = (key.clone(), value.clone(), Expires::At(*expires_ms));
            Op::SetUntil { key, value, expires }.to_string()
        }
        What::Delete { key } => Op::Delete { key: key.clone() }.to_string(),
        What::DeleteRange { start, end } => {
            Op::DeleteRange { start: start.clone(), end: end.clone() }.to_string()
        }
        What::CreateKeyspace => "create-keyspace".to_string(),
        What::DropKeyspace => "drop-keyspace".to_string(),
        What::Ingest { first, last } => format!("ingest {} {}", line::quote(first), line::quote(last)),
        _ => "unknown".to_string(),
    };
    let is_known = matches!(
        change.what,
        What::Set { .. } | What::SetUntil { .. } | What::Delete { .. } | What::DeleteRange { .. }
    );
    if !is_op {
        out.extend_from_slice(format!("{}\t", change.sequence).as_bytes());
    } else if !is_known {
        out.extend_from_slice(b"# ");
    }
    if &*change.keyspace != DEFAULT_KEYSPACE {
        write_op_keyspace(Some(&change.keyspace), out);
    }
    out.extend_from_slice(op.as_bytes());
    out.push(b'\n');
}

/// A name and bytes.
type Field<'c> = (&'c str, &'c [u8]);

fn json(change: &Change, out: &mut Vec<u8>) {
    let (what, fields): (&str, [Option<Field<'_>>; 2]) = match &change.what {
        What::Set { key, value } => ("set", [Some(("key", key)), Some(("value", value))]),
        What::SetUntil { key, value, .. } => ("set-until", [Some(("key", key)), Some(("value", value))]),
        What::Delete { key } => ("delete", [Some(("key", key)), None]),
        What::DeleteRange { start, end } => {
            ("delete-range", [Some(("start", start)), end.as_ref().map(|end| ("end", &end[..]))])
        }
        What::CreateKeyspace => ("create-keyspace", [None, None]),
        What::DropKeyspace => ("drop-keyspace", [None, None]),
        What::Ingest { first, last } => ("ingest", [Some(("first", first)), Some(("last", last))]),
        _ => ("unknown", [None, None]),
    };
    // A vector takes all that is written to it.
    let _ = write!(
        out,
        "{{\"sequence\": {}, \"ends_batch\": {}, \"what\": \"{what}\", ",
        change.sequence, change.ends_batch
    );
    write_json_field("keyspace", change.keyspace.as_bytes(), out);
    for (name, bytes) in fields.into_iter().flatten() {
        out.extend_from_slice(b", ");
        write_json_field(name, bytes, out);
    }
    if let What::SetUntil { expires_ms, .. } = &change.what {
        let _ = write!(out, ", \"expires_ms\": {expires_ms}");
    }
    out.extend_from_slice(b"}\n");
}
