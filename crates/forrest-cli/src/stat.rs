//! `stat`: what the store holds, what it costs, what it can do.

use crate::codec::Format;
use crate::failure::Failure;
use crate::session::{Answer, Session};
use crate::term::{self, Style};

/// Prints everything that the library tells of the store.
pub(crate) fn run(session: &mut Session) -> Result<Answer, Failure> {
    let stats = session.db.stats()?;
    let capabilities = session.db.capabilities();
    if session.format == Format::Jsonl {
        let can = capabilities.iter().map(|(capability, has)| (capability.as_str().to_owned(), has.into()));
        let json = serde_json::json!({
            "home": capabilities.home(),
            "keys": stats.keys,
            "keyspaces": stats.keyspaces,
            "snapshots": stats.snapshots,
            "node_bytes": stats.node_bytes,
            "value_bytes_outside": stats.value_bytes_outside,
            "reserved_bytes": stats.reserved_bytes,
            "explicit_huge_bytes": stats.explicit_huge_bytes,
            "transparent_huge_bytes": stats.transparent_huge_bytes,
            "plain_bytes": stats.plain_bytes(),
            "bytes_per_key": stats.bytes_per_key(),
            "can": can.collect::<serde_json::Map<_, _>>(),
        });
        session.line(format_args!("{json}"))?;
        return Ok(Answer::Done);
    }
    let term = session.term;
    session
        .line(format_args!("{}", term.paint(Style::Bold, format_args!("store {}", capabilities.home()))))?;
    for (name, value, unit) in stats.rows() {
        let rounded = if unit == "bytes" && value >= 1024 { term::size(value) } else { String::new() };
        let number = term::grouped(value);
        session.line(format_args!(
            "  {}",
            format!("{name:<28}{number:>18} {unit:<6} {rounded:>10}").trim_end()
        ))?;
    }
    let per_key = format!("{:.1}", stats.bytes_per_key());
    session.line(format_args!("  {:<28}{per_key:>18} bytes", "in use per key"))?;
    session.line(format_args!("{}", term.paint(Style::Bold, "what it can do")))?;
    for (capability, has) in capabilities.iter() {
        let answer = if has { term.paint(Style::Green, "yes") } else { term.paint(Style::Dim, "no") };
        session.line(format_args!("  {:<43}{answer}", capability.as_str()))?;
    }
    Ok(Answer::Done)
}
