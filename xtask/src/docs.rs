//! `cargo xtask docs`: the documentation builds without a warning, and the Markdown files do not lie about files
//! and commands.

use std::path::{Path, PathBuf};

use crate::steps::{self, Outcome, Step, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, no_arguments, required};

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    no_arguments(arguments)?;
    let step = Step { name: "docs", does: "documentation, and what the Markdown files mention", run: step };
    steps::run(workspace, &[&step])
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    required::demand(workspace, required::README)?;
    let mut wrong = Vec::new();
    for path in markdown_files(&workspace.root) {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let told = path.strip_prefix(&workspace.root).unwrap_or(&path).display().to_string();
        let directory = path.parent().unwrap_or(&workspace.root);
        wrong.extend(
            problems(&text, directory, &workspace.commands)
                .into_iter()
                .map(|problem| format!("{told}: {problem}")),
        );
    }
    if !wrong.is_empty() {
        return Err(wrong.join("; "));
    }
    // The command line's program and the library share a name, and so a page. The library's is the one to keep.
    let arguments = ["doc", "--locked", "--no-deps"];
    let program = ["--package", "forrest-cli", "--bins"];
    let others = ["--workspace", "--exclude", "forrest-cli"];
    for which in [&program[..], &others[..]] {
        let mut command = workspace.cargo(&arguments);
        command.args(which).env("RUSTDOCFLAGS", "-D warnings");
        workspace::run(&mut command)?;
    }
    Ok(Outcome::Passed)
}

/// The Markdown files at the root and anywhere under its visible directories but `target`.
fn markdown_files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() && !path.is_symlink() && !name.starts_with('.') && name != "target" {
                directories.push(path);
            } else if name.ends_with(".md") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Links to files that are not there, and commands of `cargo xtask` that do not exist.
fn problems(text: &str, directory: &Path, commands: &[&str]) -> Vec<String> {
    let mut problems = Vec::new();
    for link in links(text) {
        let path = link.split('#').next().unwrap_or_default();
        let elsewhere = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
        if !elsewhere && !directory.join(path).exists() {
            problems.push(format!("links to {path}, which is not there"));
        }
    }
    for (_, rest) in text.match_indices("cargo xtask ").map(|(at, found)| text.split_at(at + found.len())) {
        let name: String = rest.chars().take_while(|letter| letter.is_ascii_lowercase()).collect();
        if !name.is_empty() && !commands.contains(&name.as_str()) {
            problems.push(format!("mentions 'cargo xtask {name}', which does not exist"));
        }
    }
    problems
}

/// The targets of Markdown links, code blocks left out.
fn links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let after = line.match_indices("](").map(|(at, found)| &line[at + found.len()..]);
            links.extend(after.filter_map(|rest| Some(rest.split_once(')')?.0)));
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_outside_code_are_found() {
        let text = "See [a](b.md#c) and [d](https://e).\n```text\n[no](link)\n```\n[f](g/h)\n";
        assert_eq!(links(text), ["b.md#c", "https://e", "g/h"]);
    }

    #[test]
    fn dead_links_and_unknown_commands_are_problems() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let problems = |text| problems(text, here, &["test"]);
        assert_eq!(problems("[x](Cargo.toml) [y](#there) `cargo xtask test`"), Vec::<String>::new());
        assert_eq!(problems("[x](no.md)"), ["links to no.md, which is not there"]);
        assert_eq!(
            problems("run `cargo xtask dance`"),
            ["mentions 'cargo xtask dance', which does not exist"]
        );
    }
}
