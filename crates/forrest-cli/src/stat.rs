//! `stat`: the store's content, memory and capabilities.

use crate::args::StatArgs;
use crate::codec::{Format, text};
use crate::failure::Failure;
use crate::session::{Answer, Session};
use crate::term::{self, Style};
use forrest::Capability;

/// Rows that mean something only for a store on disk.
const DISK_ROWS: [&str; 11] = [
    "tables on disk",
    "in tables",
    "live in tables",
    "cached",
    "cache, explicit huge pages",
    "cache, transparent ones",
    "indexes of tables",
    "open files",
    "logs of large values",
    "of these, live values",
    "values that expire",
];

/// Prints all statistics of the store.
pub(crate) fn run(session: &mut Session, args: &StatArgs) -> Result<Answer, Failure> {
    if args.prometheus {
        let text = session.db.metrics()?.prometheus(&session.db.stats()?);
        session.line(format_args!("{}", text.trim_end()))?;
        return Ok(Answer::Done);
    }
    if session.format == Format::Jsonl {
        return json(session);
    }
    let stats = session.db.stats()?;
    let capabilities = session.db.capabilities();
    let files = session.home.files()?;
    let term = session.term;
    let url = text::escape(session.home.url.as_bytes());
    let url = term.fit(&url, term.columns.saturating_sub(6));
    session.line(format_args!("{}", term.paint(Style::Bold, format_args!("store {url}"))))?;
    for (name, value, unit) in stats.rows() {
        let name = match (name, files) {
            (name, None) if DISK_ROWS.contains(&name) => continue,
            ("keys", Some(_)) => "keys, about",
            (name, _) => name,
        };
        row(session, name, value, unit)?;
    }
    let per_key = match files {
        Some((bytes, count)) => {
            row(session, "files", count, "")?;
            row(session, "in files, logs included", bytes, "bytes")?;
            ("on disk per key", if stats.keys == 0 { 0.0 } else { bytes as f64 / stats.keys as f64 })
        }
        None => ("in use per key", stats.bytes_per_key()),
    };
    session.line(format_args!("  {:<28}{:>18} bytes", per_key.0, format!("{:.1}", per_key.1)))?;
    if capabilities.has(Capability::Metrics) {
        let metrics = session.db.metrics()?;
        session.line(format_args!("{}", term.paint(Style::Bold, "since it was opened")))?;
        for (_, name, value, unit) in metrics.rows().into_iter().filter(|row| row.2 > 0) {
            row(session, name, value, unit)?;
        }
        for (name, amplification) in [
            ("bytes written a byte", metrics.write_amplification()),
            ("bytes on disk a live byte", stats.space_amplification()),
        ] {
            session.line(format_args!("  {name:<28}{:>18}", format!("{amplification:.2}")))?;
        }
    }
    session.line(format_args!("{}", term.paint(Style::Bold, "what it can do")))?;
    for (capability, has) in capabilities.iter() {
        let answer = if has { term.paint(Style::Green, "yes") } else { term.paint(Style::Dim, "no") };
        session.line(format_args!("  {:<43}{answer}", capability.as_str()))?;
    }
    Ok(Answer::Done)
}

fn row(session: &mut Session, name: &str, value: u64, unit: &str) -> Result<(), Failure> {
    let rounded = if unit == "bytes" && value >= 1024 { term::size(value) } else { String::new() };
    let number = term::grouped(value);
    session.line(format_args!("  {}", format!("{name:<28}{number:>18} {unit:<6} {rounded:>10}").trim_end()))
}

fn json(session: &mut Session) -> Result<Answer, Failure> {
    let stats = session.db.stats()?;
    let capabilities = session.db.capabilities();
    let can = capabilities.iter().map(|(capability, has)| (capability.as_str().to_owned(), has.into()));
    let mut json = serde_json::json!({
        "home": capabilities.home(),
        "store": session.home.url,
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
    if let Some((bytes, count)) = session.home.files()? {
        json["tables"] = stats.tables.into();
        json["table_bytes"] = stats.table_bytes.into();
        json["table_plain_bytes"] = stats.table_plain_bytes.into();
        json["table_live_bytes"] = stats.table_live_bytes.into();
        json["space_amplification"] = stats.space_amplification().into();
        json["cache_bytes"] = stats.cache_bytes.into();
        json["cache_explicit_huge_bytes"] = stats.cache_explicit_huge_bytes.into();
        json["cache_transparent_huge_bytes"] = stats.cache_transparent_huge_bytes.into();
        json["index_bytes"] = stats.index_bytes.into();
        json["open_files"] = stats.open_files.into();
        json["held_bytes"] = stats.held_bytes.into();
        json["value_log_bytes"] = stats.value_log_bytes.into();
        json["value_log_live_bytes"] = stats.value_log_live_bytes.into();
        json["expiring"] = stats.expiring.into();
        json["files"] = count.into();
        json["file_bytes"] = bytes.into();
    }
    if capabilities.has(Capability::Metrics) {
        let metrics = session.db.metrics()?;
        let figures = metrics.rows().into_iter().map(|(name, _, value, _)| (name.to_owned(), value.into()));
        json["write_amplification"] = metrics.write_amplification().into();
        json["since_opened"] = figures.collect::<serde_json::Map<_, _>>().into();
    }
    session.line(format_args!("{json}"))?;
    Ok(Answer::Done)
}
