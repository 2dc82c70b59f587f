//! `salvage`: what is intact of a damaged store on disk, as a new store, and a list of what is lost.

use crate::args::SalvageArgs;
use crate::codec::{Format, text, write_json_field};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress;
use crate::session::{Answer, Session};
use crate::term;
use forrest::{Loss, Salvaged, encrypted};
use std::ops::Bound;

/// Copies a store, and prints what is lost.
pub(crate) fn run(session: &mut Session, args: &SalvageArgs) -> Result<Answer, Failure> {
    let mut watch = progress::watching(&session.term, session.quiet);
    let key = session.home.key.as_ref();
    let salvaged =
        encrypted::salvage(&args.from, key, &args.to, |progress| watch(progress.done, progress.whole));
    drop(watch);
    let salvaged = match salvaged {
        Ok(salvaged) => salvaged,
        Err(error) => {
            interrupt::check()?;
            return Err(Failure::Opening(args.from.clone(), error));
        }
    };
    let is_json = session.format == Format::Jsonl;
    for loss in &salvaged.lost {
        if is_json {
            session.write(&json_of(loss))?;
        } else {
            session.line(format_args!("{}", line_of(loss)))?;
        }
    }
    let Salvaged { keyspaces, pairs, lost, .. } = &salvaged;
    if is_json {
        let mut out = vec![b'{'];
        write_json_field("store", args.to.as_os_str().as_encoded_bytes(), &mut out);
        let rest = format!(", \"keyspaces\": {keyspaces}, \"pairs\": {pairs}, \"lost\": {}}}\n", lost.len());
        out.extend_from_slice(rest.as_bytes());
        session.write(&out)?;
    } else {
        session.note(format_args!(
            "{} has {} in {}",
            args.to.display(),
            term::plural(*pairs, "pair", "pairs"),
            term::plural(*keyspaces, "keyspace", "keyspaces")
        ));
    }
    match lost.len() as u64 {
        0 => Ok(Answer::Done),
        count => Err(Failure::Wrong(format!(
            "{} is damaged: {} may lack pairs, or have old ones, in {}",
            args.from.display(),
            term::plural(count, "range of keys", "ranges of keys"),
            args.to.display()
        ))),
    }
}

/// A line of words with a tab between two: the keyspace, the range, the file, the reason.
fn line_of(Loss { keyspace, range: (from, to), file, reason, .. }: &Loss) -> String {
    let from = match from {
        Bound::Included(key) => format!("[{}", text::escape(key)),
        Bound::Excluded(key) => format!("({}", text::escape(key)),
        Bound::Unbounded => "(".to_string(),
    };
    let to = match to {
        Bound::Included(key) => format!("{}]", text::escape(key)),
        Bound::Excluded(key) => format!("{})", text::escape(key)),
        Bound::Unbounded => ")".to_string(),
    };
    format!("{}\t{from}\t{to}\t{file}\t{reason}", text::escape(keyspace.as_bytes()))
}

fn json_of(Loss { keyspace, range: (from, to), file, reason, .. }: &Loss) -> Vec<u8> {
    let mut out = vec![b'{'];
    write_json_field("keyspace", keyspace.as_bytes(), &mut out);
    for (name, bound) in [("from", from), ("to", to)] {
        let (Bound::Included(key) | Bound::Excluded(key)) = bound else { continue };
        out.extend_from_slice(b", ");
        write_json_field(name, key, &mut out);
        let is_included = matches!(bound, Bound::Included(_));
        out.extend_from_slice(format!(", \"{name}_included\": {is_included}").as_bytes());
    }
    for (name, words) in [("file", file), ("reason", reason)] {
        out.extend_from_slice(b", ");
        write_json_field(name, words.as_bytes(), &mut out);
    }
    out.extend_from_slice(b"}\n");
    out
}
