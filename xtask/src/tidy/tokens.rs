//! The tokens of a Rust source, as far as the rules need them: words, punctuation, and the text of strings and
//! comments.
//!
//! Numbers are words; nothing here asks for more. A raw identifier loses its `r#`. C is read well enough, too.

/// A token and the line that it begins on, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    pub(crate) line: usize,
    pub(crate) kind: Kind<'t>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind<'t> {
    Word(&'t str),
    /// What stands between the quotes of a string, escapes as they are written.
    Text(&'t str),
    /// `::`
    Path,
    Mark(char),
    /// A character, a byte or a lifetime.
    Quoted,
    /// A comment, with what marks it.
    Comment(&'t str),
}

impl<'t> Token<'t> {
    pub(crate) fn word(self) -> Option<&'t str> {
        match self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(crate) fn is(self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }

    pub(crate) fn is_word(self, word: &str) -> bool {
        self.kind == Kind::Word(word)
    }
}

/// The tokens of a source without its comments.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = with_comments(text);
    tokens.retain(|token| !matches!(token.kind, Kind::Comment(_)));
    tokens
}

/// The tokens of a source. A source that does not compile gives tokens too, but which ones is not specified.
pub(crate) fn with_comments(text: &str) -> Vec<Token<'_>> {
    let mut scan = Scan { text, at: 0, line: 1, tokens: Vec::new() };
    while scan.at < text.len() {
        scan.one();
    }
    scan.tokens
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    tokens: Vec<Token<'t>>,
}

impl<'t> Scan<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Skips this many bytes, and counts lines.
    fn skip(&mut self, bytes: usize) -> &'t str {
        let skipped = &self.text[self.at..self.at + bytes];
        self.line += skipped.matches('\n').count();
        self.at += bytes;
        skipped
    }

    fn push(&mut self, line: usize, kind: Kind<'t>) {
        self.tokens.push(Token { line, kind });
    }

    fn one(&mut self) {
        let rest = self.rest();
        let first = rest.chars().next().expect("called with text left");
        if rest.starts_with("//") {
            let comment = self.skip(rest.find('\n').unwrap_or(rest.len()));
            self.push(self.line, Kind::Comment(comment));
        } else if rest.starts_with("/*") {
            self.block_comment();
        } else if let Some(hashes) = raw_string(rest) {
            self.raw(hashes);
        } else if first == '"' || rest.starts_with("b\"") || rest.starts_with("c\"") {
            self.string();
        } else if let Some(word) = rest.strip_prefix("r#").filter(|rest| rest.starts_with(is_letter)) {
            self.skip(2);
            self.word_of(word);
        } else if rest.starts_with("b'") {
            self.skip(1);
            self.quoted();
        } else if is_letter(first) {
            self.word_of(rest);
        } else if first == '\'' {
            self.quoted();
        } else if rest.starts_with("::") {
            self.push(self.line, Kind::Path);
            self.skip(2);
        } else {
            if !first.is_whitespace() {
                self.push(self.line, Kind::Mark(first));
            }
            self.skip(first.len_utf8());
        }
    }

    fn word_of(&mut self, rest: &'t str) {
        let length = rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len());
        let line = self.line;
        let word = self.skip(length);
        self.push(line, Kind::Word(word));
    }

    /// Block comments may hold others.
    fn block_comment(&mut self) {
        let (line, from) = (self.line, self.at);
        let mut depth = 0;
        loop {
            let rest = self.rest();
            if rest.starts_with("/*") {
                depth += 1;
                self.skip(2);
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.skip(2);
            } else {
                self.skip(rest.chars().next().map_or(0, char::len_utf8));
            }
            if depth == 0 || self.rest().is_empty() {
                self.push(line, Kind::Comment(&self.text[from..self.at]));
                return;
            }
        }
    }

    fn raw(&mut self, hashes: usize) {
        let line = self.line;
        let opening = self.rest().find('"').unwrap_or(0) + 1;
        self.skip(opening);
        let closing = format!("\"{}", "#".repeat(hashes));
        let length = self.rest().find(&closing).unwrap_or(self.rest().len());
        let text = self.skip(length);
        self.push(line, Kind::Text(text));
        self.skip(closing.len().min(self.rest().len()));
    }

    fn string(&mut self) {
        let line = self.line;
        self.skip(self.rest().find('"').unwrap_or(0) + 1);
        let mut escaped = false;
        let end = self.rest().find(|letter| {
            let ends = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            ends
        });
        let text = self.skip(end.unwrap_or(self.rest().len()));
        self.push(line, Kind::Text(text));
        self.skip(usize::from(end.is_some()));
    }

    /// A character or a lifetime: the former ends with a quote after one letter or an escape.
    fn quoted(&mut self) {
        self.push(self.line, Kind::Quoted);
        self.skip(1);
        let mut letters = self.rest().char_indices();
        match (letters.next(), letters.next()) {
            (Some((_, '\\')), Some((second, letter))) => {
                self.skip(second + letter.len_utf8());
                self.skip(self.rest().find('\'').map_or(0, |end| end + 1));
            }
            (_, Some((second, '\''))) => {
                self.skip(second + 1);
            }
            _ => {
                let rest = self.rest();
                self.skip(rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len()));
            }
        }
    }
}

fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The number of `#` of a raw string that begins here.
fn raw_string(rest: &str) -> Option<usize> {
    let rest = rest.strip_prefix(['b', 'c']).unwrap_or(rest).strip_prefix('r')?;
    let hashes = rest.find(|letter| letter != '#')?;
    rest[hashes..].starts_with('"').then_some(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text).into_iter().filter_map(Token::word).collect()
    }

    #[test]
    fn comments_and_strings_hold_no_words() {
        assert_eq!(words("a // b\nc /* d /* e */ f */ g"), ["a", "c", "g"]);
        assert_eq!(words(r#"a "b \" c" d b"e" f c"g" h"#), ["a", "d", "f", "h"]);
        assert_eq!(words("a r\"b\\\" c r#\"d \" e\"# f br##\"g\"# h\"## i"), ["a", "c", "f", "i"]);
    }

    #[test]
    fn characters_differ_from_lifetimes() {
        assert_eq!(
            words(r"a '\'' b '\u{1f}' c 'd' e b'f' g '\\' h '⟶' i"),
            ["a", "b", "c", "e", "g", "h", "i"]
        );
        assert_eq!(words("fn f<'a>(x: &'a str, y: &'static u8)"), ["fn", "f", "x", "str", "y", "u8"]);
    }

    #[test]
    fn raw_identifiers_are_words() {
        assert_eq!(words("r#type::x brr"), ["type", "x", "brr"]);
    }

    #[test]
    fn lines_are_counted_through_everything() {
        let text = "a\n/* \n */ \"\n\" b\nr\"\n\" c";
        let lines: Vec<usize> =
            tokens(text).into_iter().filter(|token| token.word().is_some()).map(|token| token.line).collect();
        assert_eq!(lines, [1, 4, 6]);
    }
}
