//! `kvbench chase`: what virtual memory costs one load, by the size of the memory and the kind of its pages.

use crate::bench::{self, Bench};
use crate::chase::LINE_BYTES;
use crate::data::Walk;
use crate::job::{Job, Task};
use crate::options::{Chase, MallocPages};
use crate::record::Figure;
use crate::sizes;
use crate::statistics::number;
use crate::subjects::Pages;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What the arms and the records are called.
const SUBJECT: &str = "chase";
/// The kind in a record.
const KIND: &str = "lines of 64 bytes";

/// Measures, prints, records; true if nothing went wrong.
pub(crate) fn run(options: &Chase) -> io::Result<bool> {
    let mut out = io::stdout();
    let mut sizes = options.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let kept = json!({
        "sizes_bytes": sizes, "loads": options.loads, "rounds": options.rounds, "seed": options.seed,
        "margin_bytes": options.margin,
    });
    let mut bench = Bench::begin(options.json.as_deref(), kept, MallocPages::System)?;
    bench.runner.expect(options.pages.len() * usize::from(options.rounds), options.loads);
    let what = "lines of 64 bytes in one cycle of random order";
    bench.record.print_head(&mut out, SUBJECT, options.seed, Some(what))?;
    let mut rows = Vec::new();
    for &pages in &options.pages {
        let job = Job {
            pages,
            seed: options.seed,
            probes: options.loads,
            margin_bytes: options.margin,
            pin: true,
            ..Job::of(Task::Chase(sizes.clone()), SUBJECT, options.loads)
        };
        let rounds = bench::rounds([()], options.rounds, |(), _| {
            let end = bench.runner.arm(&job, &Walk::default());
            let who = format!("{SUBJECT}, {}", pages.name());
            bench.leave(&mut out, &who, json!({ "subject": SUBJECT, "kind": KIND }), &end)?;
            Ok(end)
        })?;
        let figures = Figure::gather(rounds.into_iter().flat_map(|(_, rounds)| rounds).collect());
        if figures.is_empty() {
            continue;
        }
        let most = sizes.last().map_or(1, |bytes| lines(*bytes));
        let content = json!({
            "subject": SUBJECT, "kind": KIND, "keys": most, "pages": pages.name(), "figures": figures,
        });
        bench.record.append("figures", &content)?;
        rows.push((pages, figures));
    }
    print(&mut out, &sizes, &rows)?;
    Ok(bench.failures == 0)
}

fn lines(bytes: u64) -> u64 {
    (bytes / LINE_BYTES as u64).max(1)
}

fn print(out: &mut impl Write, sizes: &[u64], rows: &[(Pages, BTreeMap<String, Figure>)]) -> io::Result<()> {
    for (title, name) in [
        ("ns a load, each known only after the last", "chase_ns"),
        ("ns a load, eight chases at once", "chase_8_ns"),
        ("of the memory on huge pages, %", "resident_huge_percent"),
    ] {
        writeln!(out, "\n{title}")?;
        write!(out, "{:12}", "")?;
        rows.iter().try_for_each(|(pages, _)| write!(out, "{:>10}", pages.name()))?;
        writeln!(out)?;
        for &bytes in sizes {
            write!(out, "{:12}", sizes::text(bytes))?;
            for (_, figures) in rows {
                let figure = figures.get(&format!("{name}@{}", lines(bytes)));
                let text = figure.map_or_else(|| "-".to_owned(), |figure| number(figure.median));
                write!(out, "{text:>10}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
