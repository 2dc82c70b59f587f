//! Many commands on one store: from a prompt, a file or a pipe.
//!
//! A line is split into words as the library's [`forrest::line`] module has it, so every operation in that form is
//! a line of the shell; everything else is parsed as the command line is. `@NAME` as the first word means
//! another keyspace for this line, which is made if it is missing and the line changes it. With a prompt an error is
//! shown and the shell goes on; in a script the first error ends it.

use crate::args::{Line, LineCommand};
use crate::codec::{Format, START_BYTES, Shown, text, write_json_field};
use crate::commands;
use crate::diff::{Change, Diff, Kind};
use crate::editor::Editor;
use crate::failure::{Failure, Place};
use crate::interrupt::{self, Patient};
use crate::load;
use crate::session::{Answer, Session, no_keyspace};
use crate::term::{self, Style};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use forrest::{Keyspace, Op, WriteBatch, Written, line};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// The operation that is no command under the same name.
const OP_ONLY: &str = "compare-and-swap";

/// Runs the shell on a script, or on standard input for `-` or nothing.
pub(crate) fn run(session: &mut Session, script: Option<&Path>) -> Result<Answer, Failure> {
    let outer = std::mem::replace(&mut session.in_shell, true);
    let mut shell = Shell { session, parser: Line::command(), answer: Answer::Done };
    let result = match script.filter(|path| *path != Path::new("-")) {
        Some(path) => {
            let name = path.display().to_string();
            let file = interrupt::open(path).map_err(|e| Failure::io(format!("cannot read {name}"), e))?;
            shell.run_script(&name, BufReader::new(Patient(file)))
        }
        None if io::stdin().is_terminal() && io::stdout().is_terminal() => {
            shell.session.at_prompt = true;
            let result = shell.run_prompt();
            shell.session.at_prompt = false;
            result
        }
        None => {
            let stdin = shell.session.take_stdin()?;
            shell.run_script("standard input", stdin)
        }
    };
    let answer = shell.answer;
    session.in_shell = outer;
    if session.batch.take().is_some_and(|batch| !batch.is_empty()) && result.is_ok() {
        session.note(format_args!("the changes since begin were not committed, and are forgotten"));
    }
    result.map(|()| answer)
}

/// What a line asks for.
enum Parsed {
    Op(Op),
    Command(LineCommand),
    /// The help of a command.
    Help(String),
}

impl Parsed {
    /// True if it changes no keyspace, alone or at the end of a batch.
    fn only_reads(&self, is_in_batch: bool) -> bool {
        match self {
            Parsed::Op(op) => matches!(op, Op::CompareRange { .. }) && !is_in_batch,
            Parsed::Command(LineCommand::Store(command)) => command.only_reads(),
            Parsed::Command(_) | Parsed::Help(_) => true,
        }
    }
}

struct Shell<'s> {
    session: &'s mut Session,
    /// Built once; building it takes longer than parsing a line.
    parser: clap::Command,
    /// Of the last command.
    answer: Answer,
}

impl Shell<'_> {
    fn run_script(&mut self, name: &str, mut input: impl BufRead) -> Result<(), Failure> {
        let (mut text, mut number) = (Vec::new(), 0);
        loop {
            interrupt::check()?;
            text.clear();
            let read = read_line(&mut input, &mut text);
            let too_long = read.map_err(|e| Failure::io(format!("cannot read {name}"), e))?;
            if text.is_empty() {
                return Ok(());
            }
            number += 1;
            let place = |column| Place { input: name.to_owned(), line: number, column };
            if let Some(why) = too_long {
                return Err(Failure::usage(why).at(place(0)));
            }
            let line = std::str::from_utf8(&text).map_err(|e| {
                let column = load::column(&text, e.valid_up_to());
                Failure::usage(r"not UTF-8; write \xNN for other bytes").at(place(column))
            })?;
            match self.run_line(line) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(()),
                Err(Stop { failure, column }) => return Err(failure.at(place(column))),
            }
        }
    }

    fn run_prompt(&mut self) -> Result<(), Failure> {
        drop(self.session.take_stdin()?);
        let mut editor = Editor::new(self.session)?;
        self.greet()?;
        loop {
            interrupt::forget();
            let name = self.session.space.name();
            let space = if name == forrest::DEFAULT_KEYSPACE {
                ""
            } else {
                &format!(":{}", text::escape(name.as_bytes()))
            };
            let mark = if self.session.batch.is_some() { "+" } else { ">" };
            let prompt = format!("forrest{space}{mark} ");
            let Some(line) = editor.line(self.session, &prompt)? else { return Ok(()) };
            // Pasted text comes as one line, even if it has line feeds.
            let flow = line.lines().try_fold(ControlFlow::Continue(()), |flow, line| match flow {
                ControlFlow::Continue(()) => self.run_line(line),
                ControlFlow::Break(()) => Ok(flow),
            });
            match flow {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(()),
                Err(Stop { failure: failure @ Failure::BrokenPipe, .. }) => return Err(failure),
                Err(Stop { failure, .. }) => {
                    interrupt::forget();
                    self.session.flush()?;
                    failure.report_at_prompt();
                }
            }
        }
    }

    fn greet(&mut self) -> Result<(), Failure> {
        if self.session.quiet {
            return Ok(());
        }
        let keys = self.session.db.stats()?.keys;
        // On disk a key that is in memory and in a table counts twice.
        let about = if keys > 0 && self.session.home.directory().is_some() { "about " } else { "" };
        let keys = term::plural(keys, "key", "keys");
        let url = text::escape(self.session.home.url.as_bytes());
        let hint = self.session.term.paint(Style::Dim, "help lists the commands, Ctrl-D leaves");
        let start = format!("forrest {}, ", env!("CARGO_PKG_VERSION"));
        let rest = format!(" with {about}{keys}; {hint}");
        let room = self.session.term.columns.saturating_sub(term::width(&start) + term::width(&rest));
        let url = self.session.term.fit(&url, room);
        self.session.line(format_args!("{start}{url}{rest}"))?;
        self.session.flush()
    }

    /// Runs one line and flushes its output.
    fn run_line(&mut self, text: &str) -> Result<ControlFlow<()>, Stop> {
        if line::is_blank(text) {
            return Ok(ControlFlow::Continue(()));
        }
        let mut words = Vec::new();
        let mut reader = line::Words::new(text);
        while let Some(word) = reader.word()? {
            words.push(word);
        }
        let Some(name) = words.first().and_then(|w| w.bytes.strip_prefix(b"@")) else {
            let parsed = self.parse(text, words)?;
            return Ok(self.run_parsed(parsed)?);
        };
        let name = String::from_utf8(name.to_vec());
        let name = name.map_err(|_| Failure::usage("a keyspace's name must be UTF-8"))?;
        words.remove(0);
        let parsed = self.parse(text, words)?;
        let space = self.keyspace(&name, parsed.only_reads(self.session.batch.is_some()))?;
        let outer = std::mem::replace(&mut self.session.space, space);
        let result = self.run_parsed(parsed);
        self.session.space = outer;
        Ok(result?)
    }

    /// The keyspace that a line names. A line that changes nothing makes none.
    fn keyspace(&self, name: &str, only_reads: bool) -> Result<Keyspace, Failure> {
        let Session { db, home, .. } = &*self.session;
        if only_reads && !name.is_empty() && !db.keyspaces()?.iter().any(|there| there == name) {
            return Err(no_keyspace(name, home));
        }
        Ok(db.keyspace(name)?)
    }

    /// Parses a line, of which `words` are those after the keyspace.
    fn parse(&mut self, text: &str, words: Vec<line::Word>) -> Result<Parsed, Stop> {
        if let Some(op) = op(text, &words)? {
            let format = self.session.format;
            return Ok(Parsed::Op(if format.is_hex() { from_hex(format, &op)? } else { op }));
        }
        let words = words.into_iter().map(|word| OsString::from_vec(word.bytes));
        match self.parser.try_get_matches_from_mut(words).and_then(|m| Line::from_arg_matches(&m)) {
            Ok(Line { command }) => Ok(Parsed::Command(command)),
            Err(e) if e.kind() == ErrorKind::DisplayHelp => Ok(Parsed::Help(e.render().to_string())),
            Err(e) => Err(Failure::Arguments(e).into()),
        }
    }

    fn run_parsed(&mut self, parsed: Parsed) -> Result<ControlFlow<()>, Failure> {
        let mut flow = ControlFlow::Continue(());
        match parsed {
            Parsed::Op(op) => self.answer = commands::perform(self.session, op.borrowed())?,
            Parsed::Command(command) => flow = self.run_command(command)?,
            Parsed::Help(text) => self.session.write(text.as_bytes())?,
        }
        // A line is done only after this.
        self.session.sync_changes()?;
        self.session.flush()?;
        Ok(flow)
    }

    fn run_command(&mut self, command: LineCommand) -> Result<ControlFlow<()>, Failure> {
        self.answer = match command {
            LineCommand::Store(command) => commands::run_on_store(self.session, command)?.0,
            LineCommand::Use { name } => {
                let name = name.as_deref().unwrap_or(forrest::DEFAULT_KEYSPACE);
                self.session.space = self.session.db.keyspace(name)?;
                Answer::Done
            }
            LineCommand::Format { format } => {
                self.session.format = format;
                Answer::Done
            }
            LineCommand::Begin => match self.session.batch {
                Some(_) => return Err(Failure::usage("a batch has begun already; commit or abort ends it")),
                None => {
                    self.session.batch = Some(WriteBatch::new());
                    Answer::Done
                }
            },
            LineCommand::Commit => self.commit()?,
            LineCommand::Abort => {
                let batch = self.take_batch()?;
                self.session.note(format_args!(
                    "{} forgotten",
                    term::plural(batch.len() as u64, "change", "changes")
                ));
                Answer::Done
            }
            LineCommand::Snapshot => {
                self.session.snapshot = Some(self.session.db.snapshot()?);
                Answer::Done
            }
            LineCommand::Diff => self.diff()?,
            LineCommand::Refresh => {
                self.session.db.refresh()?;
                Answer::Done
            }
            LineCommand::Help { command } => self.help(command.as_deref())?,
            LineCommand::Quit => return Ok(ControlFlow::Break(())),
        };
        Ok(ControlFlow::Continue(()))
    }

    fn take_batch(&mut self) -> Result<WriteBatch, Failure> {
        self.session.batch.take().ok_or_else(|| Failure::usage("no batch has begun; begin does that"))
    }

    fn commit(&mut self) -> Result<Answer, Failure> {
        let batch = self.take_batch()?;
        if let Written::Mismatch { op, .. } = self.session.db.try_write(&batch)? {
            let op = op + 1;
            self.session.note(format_args!("change {op} of the batch did not match; nothing was changed"));
            return Ok(Answer::NotFound);
        }
        self.session.changed();
        self.session.note(format_args!("{} made", term::plural(batch.len() as u64, "change", "changes")));
        Ok(Answer::Done)
    }

    /// Prints how the store differs from the snapshot, keyspace by keyspace.
    fn diff(&mut self) -> Result<Answer, Failure> {
        let Some(snapshot) = self.session.snapshot.clone() else {
            return Err(Failure::usage("nothing to compare with; snapshot remembers the state of the store"));
        };
        let names: BTreeSet<String> =
            snapshot.keyspaces()?.into_iter().chain(self.session.db.keyspaces()?).collect();
        let live = self.session.db.snapshot()?;
        let mut out = Vec::new();
        for name in names {
            let (old, new) = (snapshot.keyspace(&name)?, live.keyspace(&name)?);
            for change in Diff::of(&old, &new) {
                interrupt::check()?;
                let named = (name != forrest::DEFAULT_KEYSPACE).then_some(&name[..]);
                write_change(self.session.format, named, &change?, &mut out);
                self.session.write(&out)?;
            }
        }
        Ok(Answer::Done)
    }

    fn help(&mut self, command: Option<&str>) -> Result<Answer, Failure> {
        let text = match command {
            None => self.parser.render_help(),
            Some(name) => match self.parser.find_subcommand_mut(name) {
                Some(command) => command.render_help(),
                None => {
                    return Err(Failure::usage(format!(
                        "there is no command {}",
                        text::escape(name.as_bytes())
                    )));
                }
            },
        };
        let text = if self.session.term.colour() { text.ansi().to_string() } else { text.to_string() };
        self.session.line(format_args!("{}", text.trim_end()))?;
        Ok(Answer::Done)
    }
}

/// Reads the next line; nothing at the end. Of one that is too long only the beginning, and says why: it is no longer
/// than an operation may be.
fn read_line(input: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<Option<String>> {
    if load::read_line(input, START_BYTES, text)? {
        return Ok(None);
    }
    if let Some(why) = Format::Ops.refuses(text) {
        return Ok(Some(why));
    }
    let most = Format::Ops.line_bytes_max();
    Ok((!load::read_line(input, most, text)?).then(|| format!("longer than {most} bytes, as no command is")))
}

/// A line that failed, and at which column if that is known.
struct Stop {
    failure: Failure,
    column: u64,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop { failure, column: 0 }
    }
}

impl From<line::ParseError> for Stop {
    fn from(error: line::ParseError) -> Self {
        let line::ParseError { column, expected, found } = error;
        Stop { failure: Failure::usage(format!("expected {expected}, found {found}")), column: column as u64 }
    }
}

/// The line as an operation, if it is one: `None` leaves it to the commands, which have the same verbs with
/// options and several keys. A word that looks like an option leaves it to them too, so that
/// `delete-range -p a` never means the range from `-p` to `a`.
fn op(text: &str, words: &[line::Word]) -> Result<Option<Op>, line::ParseError> {
    let Some((verb, rest)) = words.split_first() else { return Ok(None) };
    let is_option =
        |word: &line::Word| matches!(word.bytes[..], [b'-', b'-' | b'a'..=b'z' | b'A'..=b'Z', ..]);
    match text.parse::<line::Line>() {
        parsed if verb.bytes == OP_ONLY.as_bytes() => Ok(Some(parsed?.op)),
        Ok(line) if !rest.iter().any(is_option) => Ok(Some(line.op)),
        _ => Ok(None),
    }
}

/// The operation with the words of `op` decoded from hexadecimal.
fn from_hex(format: Format, op: &Op) -> Result<Op, Failure> {
    let mut mistake = None;
    let op = op.map(|word| {
        let read = format.read_argument("word", word);
        read.unwrap_or_else(|e| {
            mistake = Some(e);
            Vec::new()
        })
    });
    mistake.map_or(Ok(op), Err)
}

fn write_change(format: Format, keyspace: Option<&str>, change: &Change, out: &mut Vec<u8>) {
    let Change { kind, key, value } = change;
    out.clear();
    match format {
        Format::Jsonl => {
            let what = match kind {
                Kind::Added => "added",
                Kind::Removed => "removed",
                Kind::Changed => "changed",
            };
            out.push(b'{');
            write_json_field("change", what.as_bytes(), out);
            out.extend_from_slice(b", ");
            if let Some(keyspace) = keyspace {
                write_json_field("keyspace", keyspace.as_bytes(), out);
                out.extend_from_slice(b", ");
            }
            write_json_field("key", key, out);
            out.extend_from_slice(b", ");
            write_json_field("value", value, out);
            out.extend_from_slice(b"}\n");
        }
        _ => {
            let mark = match kind {
                Kind::Added => "+ ",
                Kind::Removed => "- ",
                Kind::Changed => "~ ",
            };
            out.extend_from_slice(mark.as_bytes());
            if let Some(keyspace) = keyspace {
                out.extend_from_slice(format!("@{} ", text::escape(keyspace.as_bytes())).as_bytes());
            }
            format.write_pair(None, key, Shown::Bytes(value), out);
        }
    }
}
