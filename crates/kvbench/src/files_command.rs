//! `kvbench gen`, `kvbench convert` and `kvbench inspect`: data sets as files.

use crate::files::{self, Format, Generator, Inspected, Pair, Reader, Values};
use crate::live;
use crate::options::{Convert, ConvertMode, Gen, Inspect};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

/// Pairs between two looks at the clock.
const LOOK_PAIRS: u64 = 1 << 12;

/// A progress line on a terminal; nothing elsewhere.
struct Progress {
    terminal: bool,
    seen: u64,
    last: Instant,
}

impl Progress {
    fn new() -> Self {
        Progress { terminal: live::is_drawable(), seen: 0, last: Instant::now() }
    }

    fn at(&mut self, what: &Path, percent: u64) {
        self.seen += 1;
        if self.terminal && self.seen.is_multiple_of(LOOK_PAIRS) && self.last.elapsed().as_millis() > 200 {
            self.last = Instant::now();
            eprint!("\r\x1b[K{}: {percent}%", what.display());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// The format of a file to write: the given one, or that of its name.
fn format_to_write(path: &Path, given: Option<Format>, option: &str) -> io::Result<Format> {
    let what =
        || invalid(format!("{}: the name implies no format; select one with {option}", path.display()));
    given.or_else(|| Format::of_name(path)).ok_or_else(what)
}

/// Makes a data set.
pub(crate) fn generate(options: &Gen) -> io::Result<bool> {
    let path = &options.output;
    let format = format_to_write(path, options.format, "-F")?;
    if options.values != Values::None && !format.holds_values() {
        return Err(invalid(format!("{} has no place for values", format.name())));
    }
    let of = |pairs| {
        let lengths = options.key_lengths.clone();
        Generator::new(options.keys, lengths, options.values, options.ratio, pairs, options.seed)
    };
    let mut generator = of(options.pairs);
    if let Some(size) = options.size {
        // Some keys are the longer the more there are: what was found once is asked again.
        for _ in 0..2 {
            generator = of(((size as f64 / generator.mean_bytes().max(1.0)) as u64).max(1));
        }
    }
    let mut sink = files::create(path, format, false, Some(generator.len()))?;
    let mut progress = Progress::new();
    files::generate(&generator, sink.as_mut(), &mut |percent| progress.at(path, percent))?;
    drop(progress);
    sink.finish()?;
    writeln!(
        io::stdout(),
        "{} ({}): {} pairs, seed {}",
        path.display(),
        format.name(),
        generator.len(),
        options.seed
    )?;
    Ok(true)
}

/// Converts a file.
pub(crate) fn convert(options: &Convert) -> io::Result<bool> {
    let input = options.input.as_ref().or(options.input_named.as_ref());
    let output = options.output.as_ref().or(options.output_named.as_ref());
    let (Some(input), Some(output)) = (input, output) else {
        return Err(invalid("a file to read and a file to make are needed".to_owned()));
    };
    let (from, to) = match options.mode {
        Some(ConvertMode::ConvertText) => (Some(Format::Text), Some(Format::BinText)),
        Some(ConvertMode::ConvertText1) => (Some(Format::Text), Some(Format::BinText1)),
        None => (options.from, options.to),
    };
    let to = format_to_write(output, to, "--to")?;
    if options.terminated && to.layout().is_none() {
        return Err(invalid(format!("-t is for the ancestor's formats, not for {}", to.name())));
    }
    let mut reader = Reader::open(input, from, options.strip_nul)?;
    if options.strip_nul && reader.format.layout().is_none() {
        return Err(invalid(format!(
            "--strip-nul is for the ancestor's formats, not for {}",
            reader.format.name()
        )));
    }
    let mut sink = files::create(output, to, options.terminated, reader.claimed())?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if options.mode.is_some() {
        writeln!(out, "reading '{}' ...", input.display())?;
    }
    let mut progress = Progress::new();
    let done = files::convert(&mut reader, sink.as_mut(), options.unique, &mut |pair: &Pair, percent| {
        progress.at(input, percent);
        if options.verbose {
            out.write_all(&pair.key)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })?;
    drop(progress);
    if options.mode.is_some() {
        writeln!(out, "{:09} bytes left\nwriting '{}' ...", 0, output.display())?;
    }
    sink.finish()?;
    if options.mode.is_some() {
        writeln!(out, "wrote {:09} words", done.written)?;
        return out.flush().map(|()| true);
    }
    let (from, to) = (reader.format, to);
    writeln!(out, "{} ({}) to {} ({})", input.display(), from.name(), output.display(), to.name())?;
    write!(out, "{} pairs read", done.read)?;
    match done.duplicates {
        Some(0) => write!(out, ", no key twice")?,
        Some(twice) if options.unique => write!(out, ", {twice} of a key that was there already: left out")?,
        Some(twice) => {
            write!(out, ", {twice} of a key that was there already: kept, --unique leaves them out")?
        }
        None => write!(out, "; memory was too short to tell whether a key is there twice")?,
    }
    writeln!(out, "; {} written", done.written)?;
    if done.valued && !to.holds_values() {
        writeln!(out, "the values are left out: {} has no place for them", to.name())?;
    }
    if let Some(remark) = reader.remark() {
        writeln!(out, "{remark}")?;
    }
    out.flush().map(|()| true)
}

/// Prints the content of a file.
pub(crate) fn inspect(options: &Inspect) -> io::Result<bool> {
    let path = &options.file;
    let mut reader = Reader::open(path, options.format, false)?;
    let mut progress = Progress::new();
    let mut out = io::stdout().lock();
    if options.verify {
        let mut pair = Pair::default();
        while reader.next(&mut pair)? {
            progress.at(path, reader.percent());
        }
        drop(progress);
        let unchecked = || format!("the lengths are right; {} has no checksums", reader.format.name());
        let what = reader.remark().filter(|_| reader.format.is_checked()).unwrap_or_else(unchecked);
        if options.json {
            let checked = serde_json::json!({
                "file": path, "format": reader.format.name(), "pairs": reader.pairs(), "sound": true,
                "checksums": reader.format.is_checked(), "remark": what,
            });
            writeln!(out, "{checked}")?;
        } else {
            writeln!(out, "{}: {} pairs; {what}", path.display(), reader.pairs())?;
        }
        return Ok(true);
    }
    let inspected = files::inspect(&mut reader, &mut |percent| progress.at(path, percent))?;
    drop(progress);
    if options.json {
        let mut told = serde_json::to_value(&inspected).map_err(io::Error::other)?;
        told["file"] = serde_json::json!(path);
        told["sorted"] = serde_json::json!(inspected.order.name());
        writeln!(out, "{told}")?;
    } else {
        print_inspected(&mut out, path, &inspected)?;
    }
    Ok(true)
}

fn print_inspected(out: &mut impl Write, path: &Path, inspected: &Inspected) -> io::Result<()> {
    writeln!(
        out,
        "{}: {}, {} bytes, {} pairs",
        path.display(),
        inspected.format,
        inspected.file_bytes,
        inspected.pairs
    )?;
    let columns = ["bytes", "min", "mean", "p50", "p90", "p99", "max", "entropy", "lz4"];
    write!(out, "{:8}", "")?;
    columns.iter().try_for_each(|column| write!(out, "{column:>12}"))?;
    writeln!(out)?;
    let parts = [("keys", Some(&inspected.keys)), ("values", inspected.values.as_ref())];
    for (name, parts) in parts {
        let Some(parts) = parts else {
            writeln!(out, "{name:8}{:>12}", "none")?;
            continue;
        };
        let l = &parts.lengths;
        write!(
            out,
            "{name:8}{:>12}{:>12}{:>12.1}{:>12}{:>12}{:>12}{:>12}",
            parts.bytes, l.min, l.mean, l.p50, l.p90, l.p99, l.max
        )?;
        writeln!(out, "{:>12.2}{:>12}", parts.entropy_bits, format!("{:.2}x", parts.lz4_ratio))?;
    }
    writeln!(
        out,
        "lengths in bytes; entropy in bits a byte and compressibility by LZ4 of the first {} bytes of keys",
        inspected.keys.sample_bytes
    )?;
    let order = &inspected.order;
    let (up, same, down) = (order.ascending, order.equal, order.descending);
    writeln!(out, "order: {} ({up} greater than the key before, {same} equal, {down} less)", order.name())?;
    match inspected.duplicates {
        Some(0) => writeln!(out, "duplicates: no key twice")?,
        Some(twice) => writeln!(out, "duplicates: {twice} pairs have the key of an earlier one")?,
        None => writeln!(out, "duplicates: not known, memory was too short")?,
    }
    if inspected.keys_with_nul > 0 {
        writeln!(out, "keys with a zero byte: {}", inspected.keys_with_nul)?;
    }
    if let Some(remark) = &inspected.remark {
        writeln!(out, "{remark}")?;
    }
    writeln!(out, "the first pairs:")?;
    for pair in &inspected.first {
        match &pair.value {
            Some(value) => writeln!(out, "  {} = {value}", pair.key)?,
            None => writeln!(out, "  {}", pair.key)?,
        }
    }
    Ok(())
}
