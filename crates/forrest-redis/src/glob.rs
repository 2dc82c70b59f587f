//! Patterns of keys: `*`, `?`, `[a-z]`, `[^a]` and `\` before any of them.
//!
//! Matching goes back to the last star only, which is enough. The worst case is still the product of the lengths, so
//! a command has a budget of steps, and fails when it is used up.

/// The steps that one command may take: about 0.1 s.
pub(crate) const STEPS_MAX: u64 = 50_000_000;

/// A pattern, with the steps that its command has left.
pub(crate) struct Pattern<'p> {
    pattern: &'p [u8],
    left: u64,
}

/// The pattern took more than [`STEPS_MAX`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooComplex;

impl<'p> Pattern<'p> {
    pub(crate) fn new(pattern: &'p [u8]) -> Pattern<'p> {
        Pattern { pattern, left: STEPS_MAX }
    }

    /// Everything that matches begins with this.
    pub(crate) fn prefix(&self) -> &'p [u8] {
        let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        let end = self.pattern.iter().position(special).unwrap_or(self.pattern.len());
        &self.pattern[..end]
    }

    /// True if everything matches.
    pub(crate) fn is_all(&self) -> bool {
        self.pattern == b"*"
    }

    /// Whether the whole text matches.
    pub(crate) fn matches(&mut self, text: &[u8]) -> Result<bool, TooComplex> {
        if self.is_all() {
            return Ok(true);
        }
        let (mut at, mut seen) = (0, 0);
        // Where to go on after the last star, and with what it takes next.
        let mut star: Option<(usize, usize)> = None;
        loop {
            self.left = self.left.checked_sub(1).ok_or(TooComplex)?;
            if self.pattern.get(at) == Some(&b'*') {
                at += 1;
                star = Some((at, seen));
                continue;
            }
            if seen == text.len() {
                if at == self.pattern.len() {
                    return Ok(true);
                }
                // No longer text can be left for what the pattern still has.
                return Ok(false);
            }
            match self.step(at, text[seen]) {
                Some(next) => (at, seen) = (next, seen + 1),
                None => match &mut star {
                    Some((after, from)) => {
                        *from += 1;
                        (at, seen) = (*after, *from);
                    }
                    None => return Ok(false),
                },
            }
        }
    }

    /// The position after the element at `at`, if that takes the byte.
    fn step(&mut self, at: usize, byte: u8) -> Option<usize> {
        match *self.pattern.get(at)? {
            b'?' => Some(at + 1),
            b'[' => self.class(at + 1, byte),
            b'\\' if at + 1 < self.pattern.len() => (self.pattern[at + 1] == byte).then_some(at + 2),
            literal => (literal == byte).then_some(at + 1),
        }
    }

    /// A class, which begins after the bracket. One that does not end extends to the end of the pattern.
    fn class(&mut self, mut at: usize, byte: u8) -> Option<usize> {
        let pattern = self.pattern;
        let negated = pattern.get(at) == Some(&b'^');
        at += usize::from(negated);
        let mut found = false;
        loop {
            self.left = self.left.saturating_sub(1);
            match pattern.get(at) {
                None => break,
                Some(b']') => {
                    at += 1;
                    break;
                }
                Some(b'\\') if at + 1 < pattern.len() => {
                    found |= pattern[at + 1] == byte;
                    at += 2;
                }
                Some(&low) => {
                    if pattern.get(at + 1) == Some(&b'-') && at + 2 < pattern.len() {
                        let high = pattern[at + 2];
                        found |= (low.min(high)..=low.max(high)).contains(&byte);
                        at += 3;
                    } else {
                        found |= low == byte;
                        at += 1;
                    }
                }
            }
        }
        (found != negated).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern.as_bytes()).matches(text.as_bytes()).unwrap()
    }

    #[test]
    fn patterns_match_as_documented() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "a"),
            ("a*", "abc"),
            ("*c", "abc"),
            ("a*c", "abcabc"),
            ("?", "x"),
            ("h?llo", "hello"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hbllo"),
            ("h[a-b]llo", "hbllo"),
            ("h[b-a]llo", "hallo"),
            ("\\*", "*"),
            ("\\a", "a"),
            ("[\\]]", "]"),
            ("a**b", "ab"),
            ("", ""),
            ("[a", "a"),
            ("a\\", "a\\"),
            ("*a*b*", "xxaxxbxx"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("a", ""),
            ("?", ""),
            ("?", "ab"),
            ("a*c", "abcd"),
            ("h[^e]llo", "hello"),
            ("\\*", "a"),
            ("[a]", "b"),
            ("a*b", "a"),
            ("*ab", "aab "),
            ("[^a-c]", "b"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn the_prefix_ends_at_the_first_special_byte() {
        assert_eq!(Pattern::new(b"user:*").prefix(), b"user:");
        assert_eq!(Pattern::new(b"user").prefix(), b"user");
        assert_eq!(Pattern::new(b"a\\*").prefix(), b"a");
        assert_eq!(Pattern::new(b"*").prefix(), b"");
    }

    #[test]
    fn a_pattern_that_takes_too_long_fails() {
        let text = vec![b'a'; 60_000];
        let mut pattern = vec![b'a'; 30_000];
        pattern.insert(0, b'*');
        pattern.push(b'b');
        assert_eq!(Pattern::new(&pattern).matches(&text), Err(TooComplex));
        let many = "*?".repeat(50_000);
        assert_eq!(Pattern::new(many.as_bytes()).matches(&text[..50_000]), Ok(true));
    }
}
