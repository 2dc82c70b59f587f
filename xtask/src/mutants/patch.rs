//! Mutants as patches, and how many of them fit into one source.
//!
//! A patch begins with what the mistake is, in a line or more, and with lines `fails: GATE`, each a call of one of the
//! gates that must then fail. The rest is an ordinary unified diff, with paths below the engine's sources: `patch -p1`
//! applies it there. The line numbers in it count for nothing here. What a hunk takes out, with the lines around it,
//! must occur in the file exactly once.
//!
//! A mutant changes functions. The copy of the source has all bodies of such a function, one for each mutant that
//! changes it and the one that is right, and chooses when it is called:
//!
//! ```text
//! fn next(&self) -> u64 {
//!     if crate::mutant::is(3) {
//!         0
//!     } else {
//!         self.last + 1
//!     }
//! }
//! ```
//!
//! Where a function begins and ends is seen by how rustfmt indents it. What cannot be changed so: a `const fn`,
//! anything outside of functions, and the type that `impl Trait` stands for, which must be the same in all bodies.

use std::collections::BTreeMap;
use std::ops::Range;

/// A mistake.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mutant {
    /// The name of its file, without the extension.
    pub(super) name: String,
    /// What the mistake is, in lines.
    pub(super) what: Vec<String>,
    /// The calls that must fail.
    pub(super) gates: Vec<String>,
    pub(super) hunks: Vec<Hunk>,
}

/// Lines of a file, and what they become.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The file's path below the engine's sources.
    pub(super) file: String,
    old: Vec<String>,
    new: Vec<String>,
}

/// Reads a patch.
pub(super) fn read(name: &str, text: &str) -> Result<Mutant, String> {
    let mut mutant = Mutant { name: name.to_owned(), what: Vec::new(), gates: Vec::new(), hunks: Vec::new() };
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    // The name becomes that of a test.
    if !name.starts_with(|letter: char| letter.is_ascii_lowercase()) || !name.chars().all(is_plain) {
        return Err(format!("{name}: a mutant's name is of lower-case letters, digits and dashes"));
    }
    let mut file = None;
    for line in text.lines() {
        // What git writes before each file.
        if line.starts_with("diff --git ") || line.starts_with("index ") {
            continue;
        }
        if line.starts_with("--- ") {
            file = Some("");
        } else if let Some(path) = line.strip_prefix("+++ b/") {
            file = Some(path);
        } else if line.starts_with("@@ ") {
            let file =
                file.filter(|file| !file.is_empty()).ok_or(format!("{name}: a hunk without a file"))?;
            mutant.hunks.push(Hunk { file: file.to_owned(), ..Hunk::default() });
        } else if file.is_none() {
            match line.strip_prefix("fails: ") {
                Some(gate) => mutant.gates.push(gate.to_owned()),
                None if line.is_empty() => {}
                None => mutant.what.push(line.to_owned()),
            }
        } else if let Some(hunk) = mutant.hunks.last_mut() {
            let (sign, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
            match sign {
                "-" => hunk.old.push(rest.to_owned()),
                "+" => hunk.new.push(rest.to_owned()),
                " " => {
                    hunk.old.push(rest.to_owned());
                    hunk.new.push(rest.to_owned());
                }
                _ => return Err(format!("{name}: no line of a hunk: {line:?}")),
            }
        }
    }
    let parts = [
        (mutant.what.is_empty(), "does not say what the mistake is"),
        (mutant.gates.is_empty(), "names no gate that must fail"),
        (mutant.hunks.is_empty(), "changes nothing"),
    ];
    match parts.into_iter().find(|(is_missing, _)| *is_missing) {
        Some((_, what)) => Err(format!("{name} {what}")),
        None => Ok(mutant),
    }
}

/// The first line of a function's body, and the one after its last.
type Lines = (usize, usize);
/// Lines that change, and what they become.
type Edit<'m> = (Range<usize>, &'m [String]);

/// A source with the bodies of these mutants, which are given with their numbers. Those that do not change this file
/// leave it as it is.
pub(super) fn plant<'m>(
    source: &str,
    file: &str,
    mutants: impl Iterator<Item = (usize, &'m Mutant)>,
) -> Result<String, String> {
    let lines: Vec<&str> = source.lines().collect();
    let mut functions: BTreeMap<Lines, Vec<(usize, Vec<&str>)>> = BTreeMap::new();
    for (number, mutant) in mutants {
        let refuse = |why: String| format!("{} does not fit {file}: {why}", mutant.name);
        let mut edits: BTreeMap<Lines, Vec<Edit<'_>>> = BTreeMap::new();
        for hunk in mutant.hunks.iter().filter(|hunk| hunk.file == file) {
            let (range, new) = place(&lines, hunk).map_err(refuse)?;
            let body = body_around(&lines, &range).map_err(refuse)?;
            edits.entry((body.start, body.end)).or_default().push((range, new));
        }
        for ((start, end), mut edits) in edits {
            edits.sort_by_key(|(range, _)| range.start);
            let (mut body, mut at) = (Vec::new(), start);
            for (range, new) in edits {
                if range.start < at {
                    return Err(refuse("two hunks change the same line".to_owned()));
                }
                body.extend_from_slice(&lines[at..range.start]);
                body.extend(new.iter().map(String::as_str));
                at = range.end;
            }
            body.extend_from_slice(&lines[at..end]);
            functions.entry((start, end)).or_default().push((number, body));
        }
    }
    let (mut text, mut at) = (String::new(), 0);
    let put = |text: &mut String, lines: &[&str]| lines.iter().for_each(|line| *text += &format!("{line}\n"));
    for ((start, end), bodies) in functions {
        if start < at {
            return Err(format!("{file}: mutants change a function and another one inside of it"));
        }
        put(&mut text, &lines[at..start]);
        for (number, body) in bodies {
            text += &format!("if crate::mutant::is({number}) {{\n");
            put(&mut text, &body);
            text += "} else ";
        }
        text += "{\n";
        put(&mut text, &lines[start..end]);
        text += "}\n";
        at = end;
    }
    put(&mut text, &lines[at..]);
    Ok(text)
}

/// What a hunk changes.
fn place<'h>(lines: &[&str], hunk: &'h Hunk) -> Result<Edit<'h>, String> {
    let Hunk { old, new, .. } = hunk;
    if old.is_empty() {
        return Err("a hunk has no line that is there".to_owned());
    }
    let mut places = lines.windows(old.len()).enumerate().filter(|(_, window)| *window == *old);
    let (start, more) = (places.next().map(|(at, _)| at), places.count());
    let start = match (start, more) {
        (Some(start), 0) => start,
        (None, _) => return Err(format!("these lines are not in it:\n{}", old.join("\n"))),
        _ => return Err(format!("these lines are in it {} times:\n{}", more + 1, old.join("\n"))),
    };
    let before = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[before..], &new[before..]);
    let after = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    if old.is_empty() && new.is_empty() {
        return Err("a hunk changes nothing".to_owned());
    }
    Ok((start + before..start + before + old.len() - after, &new[..new.len() - after]))
}

/// The lines of the body of the innermost function in which these lines are.
fn body_around(lines: &[&str], range: &Range<usize>) -> Result<Range<usize>, String> {
    for first in (0..range.start).rev() {
        let line = lines[first];
        let code = line.trim_start();
        let Some((qualifiers, _)) = code.split_once("fn ") else { continue };
        let is_qualifier = |word: &str| matches!(word, "const" | "async") || word.starts_with("pub");
        if !qualifiers.split_ascii_whitespace().all(is_qualifier) {
            continue;
        }
        let indent = &line[..line.len() - code.len()];
        // The signature may take several lines; the last one is indented as the first one is.
        let ends = |line: &str| {
            let rest = line.strip_prefix(indent);
            rest.is_some_and(|rest| !rest.starts_with(' ')) && (line.ends_with('{') || line.ends_with(';'))
        };
        let Some(open) = (first..lines.len()).find(|&at| ends(lines[at])) else { continue };
        let Some(close) = (open..lines.len()).find(|&at| lines[at].strip_prefix(indent) == Some("}")) else {
            continue;
        };
        if lines[open].ends_with('{') && open < range.start && range.end <= close {
            if qualifiers.contains("const") {
                return Err(format!("line {} begins a const fn, which cannot choose a body", first + 1));
            }
            return Ok(open + 1..close);
        }
    }
    Err(format!("line {} is in no function", range.start + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
/// Two functions.
impl A {
    fn one(
        &self,
    ) -> u64 {
        let a = 1;
        a
    }

    pub(crate) fn two(&self) -> u64 {
        let b = 2;
        b
    }
}
";

    fn mutant(name: &str, hunks: &str) -> Mutant {
        let text = format!("It is wrong.\nfails: a::b(0..1)\n\n--- a/x.rs\n+++ b/x.rs\n{hunks}");
        read(name, &text).expect("it is a patch")
    }

    fn planted(mutants: &[Mutant]) -> Result<String, String> {
        plant(SOURCE, "x.rs", (1..).zip(mutants))
    }

    #[test]
    fn a_patch_says_what_it_is() {
        let found = mutant("some-name", "@@ -1,2 +1,1 @@ fn x\n a\n-b\n+c\n");
        assert_eq!(
            (found.what, found.gates),
            (vec!["It is wrong.".to_owned()], vec!["a::b(0..1)".to_owned()])
        );
        assert_eq!((&found.hunks[0].old.join("|")[..], &found.hunks[0].new.join("|")[..]), ("a|b", "a|c"));
        let hunk = "diff --git a/x b/x\nindex 0..1\n--- a/x\n+++ b/x\n@@ @@\n-a\n";
        assert!(read("x", &format!("It.\nfails: a\n{hunk}{hunk}")).is_ok_and(|found| found.what == ["It."]));
        for text in [
            format!("It.\n{hunk}"),
            format!("fails: a\n{hunk}"),
            "It.\nfails: a\n".to_owned(),
            "It.\nfails: a\n@@ @@\n-a\n".to_owned(),
            format!("It.\nfails: a\n{hunk}\\ No newline\n"),
        ] {
            assert!(read("x", &text).is_err(), "{text}");
        }
        assert!(read("no_name", &format!("It.\nfails: a\n{hunk}")).is_err());
    }

    #[test]
    fn several_mutants_share_a_source() {
        let mutants = [
            mutant("a", "@@ @@\n         let a = 1;\n-        a\n+        a + 1\n"),
            mutant("b", "@@ @@\n-        let a = 1;\n+        let a = 3;\n         a\n"),
            mutant("c", "@@ @@\n         let b = 2;\n+        let b = b + 1;\n"),
        ];
        let expected = "\
/// Two functions.
impl A {
    fn one(
        &self,
    ) -> u64 {
if crate::mutant::is(1) {
        let a = 1;
        a + 1
} else if crate::mutant::is(2) {
        let a = 3;
        a
} else {
        let a = 1;
        a
}
    }

    pub(crate) fn two(&self) -> u64 {
if crate::mutant::is(3) {
        let b = 2;
        let b = b + 1;
        b
} else {
        let b = 2;
        b
}
    }
}
";
        assert_eq!(planted(&mutants).as_deref(), Ok(expected));
        assert_eq!(plant(SOURCE, "y.rs", (1..).zip(&mutants)).as_deref(), Ok(SOURCE));
    }

    #[test]
    fn a_mutant_may_change_several_places() {
        let hunks =
            "@@ @@\n-        a\n+        a + 1\n@@ @@\n-        let a = 1;\n@@ @@\n-        b\n+        0\n";
        let found = planted(&[mutant("a", hunks)]).expect("it fits");
        assert!(found.contains("if crate::mutant::is(1) {\n        a + 1\n} else {\n        let a = 1;\n"));
        assert!(found.contains("if crate::mutant::is(1) {\n        let b = 2;\n        0\n} else"));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (hunk, why) in [
            ("@@ @@\n-        let c = 1;\n", "a does not fit x.rs: these lines are not in it"),
            ("@@ @@\n-    }\n", "these lines are in it 2 times"),
            ("@@ @@\n impl A {\n+    const A: u32 = 1;\n", "is in no function"),
            (
                "@@ @@\n-    pub(crate) fn two(&self) -> u64 {\n+    fn two(&self) -> u64 {\n",
                "is in no function",
            ),
            ("@@ @@\n         let a = 1;\n", "changes nothing"),
            ("@@ @@\n-        a\n+        b\n@@ @@\n-        a\n+        c\n", "the same line"),
        ] {
            let error = planted(&[mutant("a", hunk)]).expect_err("it does not fit");
            assert!(error.contains(why), "{error}");
        }
        let source = SOURCE.replace("fn one", "const fn one");
        let error =
            plant(&source, "x.rs", [(1, &mutant("a", "@@ @@\n-        a\n+        b\n"))].into_iter());
        assert!(error.is_err_and(|error| error.contains("const fn")));
    }
}
