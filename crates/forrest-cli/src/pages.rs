//! `pages`: writes manual pages and shell completions, generated from a command's arguments, for an installation. The
//! module depends on no particular command; kvbench uses it too.

use clap_complete::Shell;
use clap_mangen::Man;
use std::fs;
use std::io;
use std::path::Path;

/// The shells that completions are written for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes all pages and completions of a command into a directory, which it creates.
pub(crate) fn write(command: &clap::Command, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut built = command.clone();
    built.build();
    manual(&built, directory)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut command.clone(), command.get_name(), directory)?;
    }
    Ok(())
}

/// Writes the page of a command and those of its commands.
fn manual(command: &clap::Command, directory: &Path) -> io::Result<()> {
    // The subcommands of `help` repeat these, so they get no pages.
    let is_told = |inner: &&clap::Command| !inner.is_hide_set() && inner.get_name() != "help";
    for inner in command.get_subcommands().filter(is_told) {
        manual(inner, directory)?;
    }
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(directory.join(page.get_filename()), as_it_stands(&String::from_utf8_lossy(&text)))
}

/// The page with the text after the options as preformatted lines from the left edge on, because it has tables.
fn as_it_stands(page: &str) -> String {
    let Some((start, rest)) = page.split_once("\n.SH EXTRA\n") else { return page.to_owned() };
    let (lines, end) = rest.split_at(rest.find("\n.SH ").unwrap_or(rest.len()));
    format!("{start}\n.SH NOTES\n.nf\n.in 0\n{lines}\n.in\n.fi{end}")
}
