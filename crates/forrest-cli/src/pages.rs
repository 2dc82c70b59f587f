//! `pages`: manual pages and completions of shells, made of what args.rs and help.rs say, for whoever installs the command.

use crate::args::Cli;
use crate::failure::Failure;
use crate::session::Answer;
use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use std::fs;
use std::io;
use std::path::Path;

/// The shells that completions are written for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes all of them into a directory, which is made.
pub(crate) fn run(directory: &Path) -> Result<Answer, Failure> {
    let cannot = |e| Failure::io(format!("cannot write to {}", directory.display()), e);
    fs::create_dir_all(directory).map_err(cannot)?;
    let mut command = Cli::command();
    command.build();
    manual(&command, directory).map_err(cannot)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut Cli::command(), "forrest", directory).map_err(cannot)?;
    }
    Ok(Answer::Done)
}

/// Writes the page of a command and those of its commands.
fn manual(command: &clap::Command, directory: &Path) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        manual(inner, directory)?;
    }
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(directory.join(page.get_filename()), as_it_stands(&String::from_utf8_lossy(&text)))
}

/// The page with the lines of help.rs as they stand there, from the left edge on: there are tables in them.
fn as_it_stands(page: &str) -> String {
    let Some((start, rest)) = page.split_once("\n.SH EXTRA\n") else { return page.to_owned() };
    let (lines, end) = rest.split_at(rest.find("\n.SH ").unwrap_or(rest.len()));
    format!("{start}\n.SH NOTES\n.nf\n.in 0\n{lines}\n.in\n.fi{end}")
}
