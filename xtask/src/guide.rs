//! Follows a guide as its readers do: saves every program of a README, runs every command, and compares the output with
//! that in the README.
//!
//! Of the blocks in the Markdown, `c` and `cpp` are programs, whose first line is a comment that begins with its file
//! name; `sh` are commands, all in one shell, in a directory of their own that looks like a checkout; `text` is what
//! the commands before it print; `cmake` is a part of the project that the step `install` builds. Other blocks are
//! refused, so that none is left out. What `cargo xtask install --prefix ~/.local` puts in place is there already; this
//! command is only compared, with or without `--libraries`.

use std::fs;
use std::path::Path;

use crate::files::{empty, link, write};
use crate::required;
use crate::workspace::{self, Workspace};

/// A part of a guide that is in a block.
#[derive(Debug, PartialEq, Eq)]
enum Block<'a> {
    Program {
        file: &'a str,
        text: String,
    },
    Commands(String),
    Printed(String),
    /// Lines that are all in [`required::EXAMPLE_CMAKE`].
    Project(String),
}

/// Follows a guide in a home directory that is made, where `prefix` is `~/.local`.
pub(crate) fn follow(workspace: &Workspace, guide: &str, home: &Path, prefix: &Path) -> Result<(), String> {
    let text = fs::read_to_string(workspace.root.join(guide)).map_err(|error| format!("{guide}: {error}"))?;
    let blocks = blocks(&text).map_err(|why| format!("{guide}: {why}"))?;
    empty(home)?;
    link(prefix, &home.join(".local"))?;
    link(workspace.root.join("crates"), &home.join("crates"))?;
    let mut script =
        "set -eu\ncargo() { [[ \"$*\" == \"xtask install \"?(--libraries\\ )\"--prefix $HOME/.local\" ]]; }\n".to_owned();
    for (number, block) in blocks.iter().enumerate() {
        match block {
            Block::Program { file, text } => write(&home.join(file), text.as_bytes())?,
            Block::Commands(text) => script += &format!("exec >\"$HOME/printed.{number}\"\n{text}"),
            Block::Printed(_) => {}
            Block::Project(text) => project(workspace, text).map_err(|why| format!("{guide}: {why}"))?,
        }
    }
    write(&home.join("script"), script.as_bytes())?;
    let mut shell = workspace.command("bash");
    workspace::run(shell.arg("script").current_dir(home).env("HOME", home).env_remove("FORREST_URL"))
        .map_err(|why| format!("{guide}: {why}"))?;
    for (number, pair) in blocks.windows(2).enumerate() {
        if let [Block::Commands(commands), Block::Printed(expected)] = pair {
            let name = format!("printed.{number}");
            let printed = fs::read_to_string(home.join(&name)).map_err(|error| format!("{name}: {error}"))?;
            if printed != *expected {
                return Err(format!("{guide}: expected\n{expected}\nbut got\n{printed}\nfrom\n{commands}"));
            }
        }
    }
    Ok(())
}

/// Demands that the project of CMake, which is built, has these lines.
fn project(workspace: &Workspace, text: &str) -> Result<(), String> {
    let path = workspace.root.join(required::EXAMPLE_CMAKE).join("CMakeLists.txt");
    let whole = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    match text.lines().find(|line| whole.lines().all(|other| other != *line)) {
        None => Ok(()),
        Some(line) => Err(format!("{} has no line {line:?}", path.display())),
    }
}

/// The blocks of a guide, in order.
fn blocks(text: &str) -> Result<Vec<Block<'_>>, String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let text: String = body.iter().flat_map(|line| [line, "\n"]).collect();
        blocks.push(match language {
            "c" | "cpp" => {
                let head = body
                    .first()
                    .and_then(|line| line.strip_prefix(if language == "c" { "/* " } else { "// " }));
                let file = head.and_then(|head| head.split([':', ' ']).next());
                let file = file.ok_or("a program does not begin with a comment that has its file name")?;
                Block::Program { file, text }
            }
            "sh" => Block::Commands(text),
            "cmake" => Block::Project(text),
            "text" if matches!(blocks.last(), Some(Block::Commands(_))) => Block::Printed(text),
            "text" => return Err("something is printed by no commands".to_owned()),
            other => return Err(format!("a block in {other:?} cannot be tried")),
        });
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_told_apart() {
        let text =
            "# A guide\n```c\n/* a.c: it */\nint x;\n```\nSo:\n```sh\ncc a.c\n```\n```text\nyes\n```\n";
        let program = Block::Program { file: "a.c", text: "/* a.c: it */\nint x;\n".to_owned() };
        let (commands, printed) =
            (Block::Commands("cc a.c\n".to_owned()), Block::Printed("yes\n".to_owned()));
        assert_eq!(blocks(text), Ok(vec![program, commands, printed]));
    }

    #[test]
    fn what_cannot_be_tried_is_refused() {
        for text in
            ["```\nx\n```\n", "```c\nint x;\n```\n", "```text\nyes\n```\n", "```rust\nfn x() {}\n```\n"]
        {
            assert!(blocks(text).is_err(), "{text}");
        }
    }
}
