//! Words that the project's text avoids: they are counted, and the count may only fall.
//!
//! `docs/words.txt` lists them with what to write instead, and records the count. Text is what people read: comments
//! and strings of Rust, C and Python, and Markdown; not names in the code, code in backquotes, or blocks of code. Words
//! are whole, small and capital letters alike; several that follow each other may have a line's end between them.

use std::collections::HashMap;
use std::path::Path;

use super::sources::Source;
use super::tokens::{Kind, with_comments};
use crate::workspace::{self, Workspace};

/// Where they are listed.
const FILE: &str = "docs/words.txt";
/// What stands before the recorded count.
const RECORD: &str = "count ";
/// Its tests have them in strings.
const NOT_COUNTED: &str = "xtask/src/tidy/words.rs";
/// Most new places that are named.
const NAMED_MAX: usize = 40;

/// The list.
#[derive(Debug)]
pub(crate) struct Avoided {
    count: usize,
    words: Vec<AvoidedWord>,
}

#[derive(Debug)]
struct AvoidedWord {
    /// In small letters, with a space between them.
    words: String,
    instead: String,
}

/// A word of the list in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    path: String,
    line: usize,
    /// Which of the list.
    entry: usize,
}

impl Avoided {
    /// Reads the list of a workspace.
    pub(crate) fn read(root: &Path) -> Result<Avoided, String> {
        let text = std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
        Avoided::parse(&text)
    }

    fn parse(text: &str) -> Result<Avoided, String> {
        let mut avoided = Avoided { count: 0, words: Vec::new() };
        for (at, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(count) = line.strip_prefix(RECORD) {
                avoided.count = count.parse().map_err(|_| format!("{FILE}:{}: no number", at + 1))?;
                continue;
            }
            let (words, instead) =
                line.split_once(':').ok_or_else(|| format!("{FILE}:{}: no colon after the word", at + 1))?;
            let words = words.trim().to_lowercase();
            avoided.words.push(AvoidedWord { words, instead: instead.trim().to_owned() });
        }
        Ok(avoided)
    }

    /// Where they stand.
    pub(crate) fn places(&self, sources: &[Source]) -> Vec<Place> {
        let counted = sources.iter().filter(|source| source.path != Path::new(NOT_COUNTED));
        let mut firsts: HashMap<&str, Vec<usize>> = HashMap::new();
        for (entry, avoided) in self.words.iter().enumerate() {
            let first = avoided.words.split(' ').next().unwrap_or_default();
            firsts.entry(first).or_default().push(entry);
        }
        counted.flat_map(|source| self.places_in(source, &firsts)).collect()
    }

    fn places_in(&self, source: &Source, firsts: &HashMap<&str, Vec<usize>>) -> Vec<Place> {
        let text = text_of(source);
        let mut places = Vec::new();
        for (at, (line, word)) in text.iter().enumerate() {
            for &entry in firsts.get(word.as_str()).into_iter().flatten() {
                let mut here = text[at..].iter().map(|(_, word)| word);
                if self.words[entry].words.split(' ').all(|word| here.next().is_some_and(|next| next == word))
                {
                    places.push(Place { path: source.path.display().to_string(), line: *line, entry });
                }
            }
        }
        places
    }

    /// The breach, if there are more than recorded, and then the new places. Prints if there are fewer.
    pub(crate) fn breaches(&self, workspace: &Workspace, places: &[Place]) -> Vec<String> {
        if places.len() <= self.count {
            if places.len() < self.count {
                println!(
                    "{FILE} records {} words to avoid, and there are {}: lower it by `cargo xtask tidy --record`",
                    self.count,
                    places.len()
                );
            }
            return Vec::new();
        }
        let added = added_since_recorded(workspace);
        let is_new =
            |place: &&Place| added.iter().any(|(path, line)| *path == place.path && *line == place.line);
        let mut breaches: Vec<String> =
            places.iter().filter(is_new).take(NAMED_MAX).map(|place| self.show(place)).collect();
        breaches.push(format!(
            "{FILE}: {} words to avoid, and {} are recorded; the count may only fall",
            places.len(),
            self.count
        ));
        breaches
    }

    fn show(&self, place: &Place) -> String {
        let AvoidedWord { words, instead } = &self.words[place.entry];
        format!("{}:{}: \"{words}\"; write {instead}", place.path, place.line)
    }

    /// How often the most frequent ones stand there, and all; or the places of those named.
    pub(crate) fn table(&self, places: &[Place], named: &[String]) -> String {
        let mut text = String::new();
        if !named.is_empty() {
            let is_named = |place: &&Place| named.contains(&self.words[place.entry].words);
            text.extend(places.iter().filter(is_named).map(|place| self.show(place) + "\n"));
            return text;
        }
        let count = |entry| places.iter().filter(|place| place.entry == entry).count();
        let mut counts: Vec<(usize, &AvoidedWord)> =
            self.words.iter().enumerate().map(|(entry, avoided)| (count(entry), avoided)).collect();
        counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        for (count, AvoidedWord { words, instead }) in counts.into_iter().take(20) {
            text += &format!("{count:>5}  {words:<16}  write {instead}\n");
        }
        text + &format!("{:>5}  in all, and {} are recorded\n", places.len(), self.count)
    }

    /// Writes a lower count to the file.
    pub(crate) fn record(&self, root: &Path, places: &[Place]) -> Result<(), String> {
        let count = places.len();
        if count > self.count {
            return Err(format!("{count} are more than the {} that are recorded", self.count));
        }
        let path = root.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{FILE}: {error}"))?;
        let text = text.replace(&format!("\n{RECORD}{}\n", self.count), &format!("\n{RECORD}{count}\n"));
        std::fs::write(&path, text).map_err(|error| format!("{FILE}: {error}"))?;
        println!("{FILE} records {count}");
        Ok(())
    }
}

/// The lines that were added since the count was recorded, as git tells; none without git.
fn added_since_recorded(workspace: &Workspace) -> Vec<(String, usize)> {
    let git = |arguments: &[&str]| {
        let (text, status) = workspace::capture(workspace.command("git").args(arguments)).ok()?;
        status.success().then_some(text)
    };
    let Some(recorded) = git(&["log", "-1", "--format=%H", "--", FILE]) else { return Vec::new() };
    let diff = git(&["diff", "-U0", "--no-color", "--no-ext-diff", recorded.trim()]);
    added(&diff.unwrap_or_default())
}

/// Paths and lines that a diff without context adds.
fn added(diff: &str) -> Vec<(String, usize)> {
    let mut added = Vec::new();
    let mut path = String::new();
    for line in diff.lines() {
        if let Some(new) = line.strip_prefix("+++ b/") {
            path = new.to_owned();
        } else if let Some(hunk) = line.strip_prefix("@@ ") {
            let new = hunk.split(' ').find_map(|part| part.strip_prefix('+')).unwrap_or_default();
            let (from, count) = new.split_once(',').unwrap_or((new, "1"));
            if let (Ok(from), Ok(count)) = (from.parse::<usize>(), count.parse::<usize>()) {
                added.extend((from..from + count).map(|line| (path.clone(), line)));
            }
        }
    }
    added
}

/// The words that people read in a file, with their lines, in small letters.
fn text_of(source: &Source) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    if source.ends_with("md") {
        push(1, &source.text, &mut words);
    } else if source.ends_with("py") || source.ends_with("pyi") {
        for (line, text) in python(&source.text) {
            push(line, text, &mut words);
        }
    } else {
        // Comments on lines that follow each other are one text, because code in it goes on from line to line.
        let mut comment = String::new();
        let (mut first, mut next) = (0, 0);
        for token in with_comments(&source.text) {
            match token.kind {
                Kind::Comment(text) => {
                    if token.line != next {
                        push(first, &comment, &mut words);
                        comment.clear();
                        first = token.line;
                    }
                    comment += text.trim_start_matches(['/', '!']);
                    comment.push('\n');
                    next = token.line + 1 + text.matches('\n').count();
                }
                Kind::Text(text) => push(token.line, text, &mut words),
                _ => {}
            }
        }
        push(first, &comment, &mut words);
        words.sort_by_key(|(line, _)| *line);
    }
    words
}

/// Adds the words of a text that begins on a line. Code is left out: in backquotes, in blocks, and behind `{` in
/// strings.
fn push(first: usize, text: &str, words: &mut Vec<(usize, String)>) {
    let mut in_block = false;
    let mut in_code = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().trim_start_matches("* ").starts_with("```") {
            in_block = !in_block;
            continue;
        }
        if in_block {
            continue;
        }
        if line.trim().is_empty() {
            in_code = false;
        }
        let mut before = None;
        for piece in line.split_inclusive(|letter: char| !is_of_word(letter)) {
            let word = piece.trim_end_matches(|letter| !is_of_word(letter));
            if !word.is_empty() && !in_code && before != Some('{') {
                words.push((first + at, word.to_lowercase()));
            }
            before = piece.chars().last();
            if before == Some('`') {
                in_code = !in_code;
            }
        }
    }
}

/// Names with underscores are words of their own, which no list has.
fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Comments and strings of Python, with their lines.
fn python(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| rest.starts_with(quote));
        let length = match quote {
            _ if first == '#' => rest.find('\n').unwrap_or(rest.len()),
            Some(quote) => {
                let inside = &rest[quote.len()..];
                let mut from = 0;
                loop {
                    let Some(end) = inside[from..].find(quote) else { break rest.len() };
                    let backslashes =
                        inside[..from + end].bytes().rev().take_while(|byte| *byte == b'\\').count();
                    if backslashes % 2 == 0 {
                        break quote.len() + from + end + quote.len();
                    }
                    from += end + 1;
                }
            }
            None => first.len_utf8(),
        };
        if first == '#' || quote.is_some() {
            found.push((line, &rest[..length]));
        }
        line += rest[..length].matches('\n').count();
        at += length;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# head\ncount 3\n\ntold: reported\nso many: many\nbehind: after\n";

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.to_owned() }
    }

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let avoided = Avoided::parse(LIST).expect("it is a list");
        avoided.places(&[source(path, text)]).iter().map(|place| place.line).collect()
    }

    #[test]
    fn only_text_is_counted() {
        assert_eq!(lines("a.rs", "// told\nfn told() {}\n/// Told, as `told` is.\n"), [1, 3]);
        assert_eq!(lines("a.rs", "let told = \"was told {told}\\n\";\n//! ```\n//! told\n//! ```\n"), [1]);
        assert_eq!(lines("a.rs", "/* one\n told */ let x = r#\"told\"#;"), [2, 2]);
        assert_eq!(lines("a.h", "/* told\n * ```\n * told */\nint told;"), [1]);
        assert_eq!(lines("a.md", "Told. `told`\n```\ntold\n```\nretold was_told told\n"), [1, 5]);
        assert_eq!(
            lines("a.py", "told = 1 # told\nx = 'it\\'s told'\n\"\"\"\ntold \"x\"\n\"\"\"\n"),
            [1, 2, 4]
        );
    }

    #[test]
    fn several_words_may_have_a_line_between_them() {
        assert_eq!(lines("a.rs", "// is so\n// many\n"), [1]);
        assert_eq!(lines("a.md", "so many, so\nmany\n"), [1, 1]);
    }

    #[test]
    fn the_count_may_only_fall() {
        let workspace = Workspace::find().expect("this test runs in it");
        let avoided = Avoided::parse(LIST).expect("it is a list");
        let places = |text: &str| avoided.places(&[source("a.md", text)]);
        assert_eq!(avoided.breaches(&workspace, &places("told behind so many")), Vec::<String>::new());
        let breaches = avoided.breaches(&workspace, &places("told told told behind"));
        assert!(
            breaches.last().is_some_and(|last| last.contains("4 words") && last.contains("3 are")),
            "{breaches:?}"
        );
        assert!(avoided.table(&places("behind behind told"), &[]).starts_with("    2  behind"));
        assert!(Avoided::parse("told\n").is_err() && Avoided::parse("count x\n").is_err());
    }

    #[test]
    fn diffs_name_what_they_add() {
        let diff = "+++ b/x/y.rs\n@@ -1,0 +2,2 @@ fn\n+a\n+b\n@@ -9 +11 @@\n-c\n+d\n@@ -20,3 +22,0 @@\n";
        let added: Vec<usize> = added(diff).into_iter().map(|(_, line)| line).collect();
        assert_eq!(added, [2, 3, 11]);
    }
}
