//! The line editor of the shell's prompt: the arrow keys recall earlier lines, also of former sessions, and Tab
//! completes commands, options, keyspaces, formats, files, and keys of the store.
//!
//! The history is a file that its user alone may read: the one that `FORREST_HISTORY` names, or none if that is empty;
//! else `forrest/history` where the system has such files (`$XDG_STATE_HOME`, `~/.local/state`). A line that begins
//! with a space is not kept.
//!
//! The completion of a word follows from args.rs: the name of an argument's value there gives its kind.

use crate::args::Line;
use crate::codec::Format;
use crate::failure::Failure;
use crate::session::Session;
use clap::{Arg, CommandFactory, ValueEnum};
use forrest::{Db, Keyspace, line};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::Bound;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The environment variable that names the file of the history.
const HISTORY: &str = "FORREST_HISTORY";
/// Most lines that it keeps.
const HISTORY_LINES: usize = 1000;
/// Most keys that are listed.
const KEYS_MAX: usize = 100;

/// An editor of lines.
pub(crate) struct Editor {
    inner: rustyline::Editor<Helper, FileHistory>,
    /// The history file, if there is one.
    history: Option<PathBuf>,
}

impl Editor {
    /// Opens the terminal, and reads the history.
    pub(crate) fn new(session: &Session) -> Result<Self, Failure> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .max_history_size(HISTORY_LINES)
            .map_err(cannot)?
            .history_ignore_space(true)
            .build();
        let history = FileHistory::with_config(&config);
        let mut inner = rustyline::Editor::with_history(config, history).map_err(cannot)?;
        inner.set_helper(Some(Helper { words: Words::new(session) }));
        let mut editor = Editor { inner, history: history_file() };
        if let Some(path) = &editor.history
            && let Err(e) = editor.inner.load_history(path)
            && !matches!(&e, ReadlineError::Io(e) if e.kind() == io::ErrorKind::NotFound)
        {
            editor.give_up_history(session, &e);
        }
        Ok(editor)
    }

    /// Reads a line; `None` is the end.
    pub(crate) fn line(&mut self, session: &Session, prompt: &str) -> Result<Option<String>, Failure> {
        loop {
            if let Some(helper) = self.inner.helper_mut() {
                helper.words = Words::new(session);
            }
            match self.inner.readline(prompt) {
                Ok(line) => {
                    self.keep(session, &line)?;
                    return Ok(Some(line));
                }
                // Ctrl-C takes back the line, Ctrl-D leaves.
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(None),
                Err(e) => return Err(cannot(e)),
            }
        }
    }

    /// Writes a line to the history at once, because the shell may be killed.
    fn keep(&mut self, session: &Session, line: &str) -> Result<(), Failure> {
        if line.trim().is_empty() || !self.inner.add_history_entry(line).map_err(cannot)? {
            return Ok(());
        }
        let Some(path) = &self.history else { return Ok(()) };
        let made = path.parent().map_or(Ok(()), fs::create_dir_all).map_err(ReadlineError::from);
        if let Err(e) = made.and_then(|()| self.inner.append_history(path)) {
            self.give_up_history(session, &e);
        }
        Ok(())
    }

    fn give_up_history(&mut self, session: &Session, error: &ReadlineError) {
        if let Some(path) = self.history.take() {
            session.note(format_args!("the history in {} is not kept: {error}", path.display()));
        }
    }
}

fn cannot(error: ReadlineError) -> Failure {
    Failure::io("cannot use the terminal", io::Error::other(error))
}

/// Where lines are kept, if anywhere.
fn history_file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from);
    match set(HISTORY) {
        Some(path) => (!path.as_os_str().is_empty()).then_some(path),
        None => {
            let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
            state.filter(|path| path.is_absolute()).map(|path| path.join("forrest/history"))
        }
    }
}

/// What rustyline asks.
struct Helper {
    words: Words,
}

impl rustyline::Helper for Helper {}
impl Highlighter for Helper {}
impl Validator for Helper {}
impl Hinter for Helper {
    type Hint = String;
}

impl Completer for Helper {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = self.words.complete(&line[..pos]);
        let pair = |word: String| Pair { display: word.trim_end().to_owned(), replacement: word };
        Ok((start, words.into_iter().map(pair).collect()))
    }
}

/// What words there are: those of the commands, and those of a store.
struct Words {
    parser: clap::Command,
    db: Db,
    space: Keyspace,
    format: Format,
}

/// The kind of a word of a line.
enum Kind {
    Command,
    Keyspace,
    Format,
    Key,
    File,
}

impl Kind {
    /// By the name that an argument's value has in args.rs.
    fn of(argument: &Arg) -> Option<Kind> {
        match argument.get_value_names()?.first()?.as_str() {
            "COMMAND" => Some(Kind::Command),
            "KEYSPACE" => Some(Kind::Keyspace),
            "FORMAT" => Some(Kind::Format),
            "KEY" => Some(Kind::Key),
            "FILE" => Some(Kind::File),
            _ => None,
        }
    }
}

impl Words {
    fn new(session: &Session) -> Self {
        Words {
            parser: Line::command(),
            db: session.db.clone(),
            space: session.space.clone(),
            format: session.format,
        }
    }

    /// The candidates for the last word of `text`, and the position where that word begins. A complete word ends with a
    /// space.
    fn complete(&self, text: &str) -> (usize, Vec<String>) {
        let (start, raw) = last_word(text);
        let before = words(&text[..start]);
        // A quoted word that is still open is completed as if it were closed.
        let closed = if raw.starts_with('"') { format!("{raw}\"") } else { raw.to_owned() };
        let word = words(&closed).map(|words| words.into_iter().next().unwrap_or_default());
        match (before, word) {
            (Some(before), Some(word)) => (start, self.candidates(&before, raw, &word)),
            _ => (start, Vec::new()),
        }
    }

    fn candidates(&self, before: &[Vec<u8>], raw: &str, word: &[u8]) -> Vec<String> {
        let (space, before) = match before {
            [first, rest @ ..] if first.starts_with(b"@") => (self.named(&first[1..]), rest),
            _ => (Some(self.space.clone()), before),
        };
        let Some(name) = before.first() else {
            return match word {
                [b'@', name @ ..] => self.keyspaces(name, "@"),
                _ => self.commands(word),
            };
        };
        let command = std::str::from_utf8(name).ok().and_then(|name| self.parser.find_subcommand(name));
        if raw.starts_with('-')
            && let Some(command) = command
        {
            // The parser adds the last one itself, later.
            let options = command.get_arguments().filter_map(|argument| argument.get_long()).chain(["help"]);
            return whole(options.map(|name| format!("--{name}").into_bytes()), word);
        }
        let kind = match (command, name.as_slice()) {
            (_, b"compare-and-swap") if before.len() == 1 => Some(Kind::Key),
            (Some(command), _) => kind(command, &before[1..]),
            (None, _) => None,
        };
        match kind {
            Some(Kind::Command) => self.commands(word),
            Some(Kind::Keyspace) => self.keyspaces(word, ""),
            Some(Kind::Format) => {
                let names = Format::value_variants().iter().filter_map(|format| format.to_possible_value());
                whole(names.map(|value| value.get_name().as_bytes().to_vec()), word)
            }
            Some(Kind::Key) => space.and_then(|space| self.keys(&space, word)).unwrap_or_default(),
            Some(Kind::File) => files(word),
            None => Vec::new(),
        }
    }

    fn commands(&self, word: &[u8]) -> Vec<String> {
        let names = self.parser.get_subcommands().map(|command| command.get_name());
        let mut names: Vec<_> =
            names.chain(["compare-and-swap"]).map(|name| name.as_bytes().to_vec()).collect();
        names.sort_unstable();
        whole(names.into_iter(), word)
    }

    fn keyspaces(&self, word: &[u8], mark: &str) -> Vec<String> {
        let names = self.db.keyspaces().unwrap_or_default();
        let names = names.into_iter().filter(|name| name.as_bytes().starts_with(word));
        names.map(|name| format!("{} ", line::quote(format!("{mark}{name}")))).collect()
    }

    /// A keyspace that is there.
    fn named(&self, name: &[u8]) -> Option<Keyspace> {
        let names = self.db.keyspaces().ok()?;
        self.db.keyspace(names.iter().find(|there| there.as_bytes() == name)?).ok()
    }

    /// The first keys with this prefix, and the last one, so that their common prefix is that of all such keys.
    fn keys(&self, space: &Keyspace, word: &[u8]) -> Option<Vec<String>> {
        if self.format.is_hex() {
            return None;
        }
        let end = forrest::prefix_end(word).map_or(Bound::Unbounded, Bound::Excluded);
        let mut range = space.range((Bound::Included(word.to_vec()), end));
        let mut keys = Vec::new();
        while keys.len() < KEYS_MAX
            && let Some(entry) = range.next()
        {
            keys.push(entry.ok()?.key().to_vec());
        }
        if let Some(entry) = range.next_back() {
            keys.push(entry.ok()?.key().to_vec());
        }
        Some(whole(keys.into_iter(), word))
    }
}

/// The words that begin with `word`, quoted as they are typed, each followed by a space.
fn whole(words: impl Iterator<Item = Vec<u8>>, word: &[u8]) -> Vec<String> {
    words.filter(|whole| whole.starts_with(word)).map(|whole| format!("{} ", line::quote(whole))).collect()
}

/// The kind of the next word of a command, after the words `before`.
fn kind(command: &clap::Command, before: &[Vec<u8>]) -> Option<Kind> {
    let option = |word: &[u8]| {
        let word = std::str::from_utf8(word).ok()?;
        command.get_arguments().find(|argument| {
            let long = argument.get_long().is_some_and(|name| word.strip_prefix("--") == Some(name));
            long || argument
                .get_short()
                .is_some_and(|name| word.strip_prefix('-') == Some(name.to_string().as_str()))
        })
    };
    let takes_value = |argument: &Arg| argument.get_action().takes_values();
    let (mut place, mut value_of) = (0, None);
    for word in before {
        value_of = match (value_of, option(word)) {
            (None, Some(argument)) => takes_value(argument).then_some(argument),
            (None, None) => {
                place += 1;
                None
            }
            (Some(_), _) => None,
        };
    }
    if let Some(argument) = value_of {
        return Kind::of(argument);
    }
    let is_many = |argument: &&Arg| argument.get_num_args().is_some_and(|count| count.max_values() > 1);
    let mut places = command.get_positionals();
    places.nth(place).or_else(|| command.get_positionals().last().filter(is_many)).and_then(Kind::of)
}

/// The words of a text; none if it is malformed.
fn words(text: &str) -> Option<Vec<Vec<u8>>> {
    let mut reader = line::Words::new(text);
    let mut words = Vec::new();
    while let Some(word) = reader.word().ok()? {
        words.push(word.bytes);
    }
    Some(words)
}

/// The word that `text` ends in, as it is typed, and where it begins: at its end, if it ends between words.
fn last_word(text: &str) -> (usize, &str) {
    let (mut start, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ' ' | '\t' if !is_quoted => start = at + 1,
            _ => {}
        }
    }
    (start, &text[start..])
}

/// The files whose paths begin so.
fn files(word: &[u8]) -> Vec<String> {
    let cut = word.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
    let (directory, start) = word.split_at(cut);
    let directory_path = PathBuf::from(OsString::from_vec(directory.to_vec()));
    let looked_at = if directory.is_empty() { Path::new(".") } else { &directory_path };
    let Ok(entries) = fs::read_dir(looked_at) else { return Vec::new() };
    let mut files: Vec<String> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            name.as_bytes().starts_with(start) && (!start.is_empty() || !name.as_bytes().starts_with(b"."))
        })
        .map(|entry| {
            let path = [directory, entry.file_name().as_bytes()].concat();
            // What lies in a directory comes next.
            match entry.path().is_dir() {
                true => line::quote([&path[..], b"/"].concat()).to_string(),
                false => format!("{} ", line::quote(path)),
            }
        })
        .collect();
    files.sort_unstable();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(pairs: &[(&str, &[&str])]) -> Words {
        let db = Db::open("memory:").unwrap();
        for (space, keys) in pairs {
            let space = db.keyspace(space).unwrap();
            keys.iter().for_each(|key| space.set(key, "").unwrap());
        }
        let space = db.keyspace(forrest::DEFAULT_KEYSPACE).unwrap();
        Words { parser: Line::command(), db, space, format: Format::Text }
    }

    #[track_caller]
    fn assert_completes(words: &Words, text: &str, wanted: &[&str]) {
        let (start, found) = words.complete(text);
        let found: Vec<_> = found.iter().map(|word| format!("{}{}", &text[..start], word)).collect();
        assert_eq!(found, wanted, "{text:?}");
    }

    #[test]
    fn words_are_completed_by_what_they_are() {
        let words =
            words_of(&[("default", &["apple", "apricot", "two words", "two \"x\""]), ("people", &["ada"])]);
        for (text, wanted) in [
            ("sca", &["scan "][..]),
            ("de", &["delete ", "delete-range "]),
            ("compare", &["compare-and-swap "]),
            ("help qu", &["help quit "]),
            ("nothing a", &[]),
            ("get ap", &["get apple ", "get apricot "]),
            ("get x ap", &["get x apple ", "get x apricot "]),
            ("set apr", &["set apricot "]),
            ("set apple ap", &[]),
            ("compare-and-swap ap", &["compare-and-swap apple ", "compare-and-swap apricot "]),
            ("@people get ", &["@people get ada "]),
            ("@none get ", &[]),
            ("@p", &["@people "]),
            ("use p", &["use people "]),
            ("format json", &["format jsonl "]),
            ("scan --pre", &["scan --prefix "]),
            ("scan -r --from apr", &["scan -r --from apricot "]),
            ("scan --limit a", &[]),
            ("cas apple --exp", &["cas apple --expect "]),
            // Quotes are put where they are needed, and taken where they are.
            ("get tw", &[r#"get "two \"x\"" "#, r#"get "two words" "#]),
            (r#"get "two w"#, &[r#"get "two words" "#]),
            (r#"get "ap"#, &["get apple ", "get apricot "]),
            (r"get \x61pp", &["get apple "]),
            // Malformed words have no completions.
            (r"get \x6", &[]),
            (r#"get "two" "a" "b\"#, &[]),
        ] {
            assert_completes(&words, text, wanted);
        }
    }

    #[test]
    fn of_many_keys_the_last_is_there() {
        let keys: Vec<String> = (0..2_000).map(|n| format!("key {n:04}")).collect();
        let words = words_of(&[("default", &keys.iter().map(|key| &key[..]).collect::<Vec<_>>())]);
        let (_, found) = words.complete("get key");
        assert_eq!(found.len(), KEYS_MAX + 1);
        assert_eq!(found.last().map(String::as_str), Some("\"key 1999\" "));
    }

    #[test]
    fn files_are_completed_by_their_paths() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("inner")).unwrap();
        fs::write(place.path().join("in.txt"), "").unwrap();
        fs::write(place.path().join(".hidden"), "").unwrap();
        let root = place.path().to_str().unwrap();
        let words = words_of(&[]);
        let wanted = [format!("load {root}/in.txt "), format!("load {root}/inner/")];
        let wanted: Vec<&str> = wanted.iter().map(|line| &line[..]).collect();
        for text in [format!("load {root}/"), format!("load {root}/in")] {
            assert_completes(&words, &text, &wanted);
        }
        assert_completes(&words, &format!("load {root}/none"), &[]);
    }
}
