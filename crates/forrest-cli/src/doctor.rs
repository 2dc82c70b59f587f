//! `doctor`: what this machine offers the store, with advice.

use crate::codec::{Format, write_json_field};
use crate::failure::Failure;
use crate::session::{Answer, Session};
use crate::term::{self, Style, Term};
use ::llds::doctor;
use forrest_machine::doctor::{Finding, Verdict};

/// Where the findings begin, in columns: after state and topic.
const WHAT_COLUMN: usize = 21;
/// Where advice begins. Commands for `/sys` are long, and fit from here.
const ADVICE_COLUMN: usize = 8;

/// Checks the machine and prints the findings.
pub(crate) fn run(session: &mut Session) -> Result<Answer, Failure> {
    let findings = doctor::examine();
    let term = session.term;
    for finding in &findings {
        if session.format == Format::Jsonl {
            session.write(&json(finding))?;
            continue;
        }
        for line in lines(finding, &term) {
            session.line(format_args!("{line}"))?;
        }
    }
    if session.format != Format::Jsonl {
        session.line(format_args!(""))?;
        session.line(format_args!("{}", term.paint(Style::Dim, verdict(&findings))))?;
    }
    Ok(Answer::Done)
}

fn verdict(findings: &[Finding]) -> String {
    let advised = findings.iter().filter(|f| f.advice.is_some()).count() as u64;
    match advised {
        0 => String::from("Nothing to do: the machine offers all that Forrest can use."),
        n => format!("Forrest works here as it is; {} could be better.", term::plural(n, "thing", "things")),
    }
}

fn json(finding: &Finding) -> Vec<u8> {
    let mut out = vec![b'{'];
    let state = finding.state.to_string();
    let fields = [("topic", finding.topic), ("state", &state), ("what", &finding.what)];
    for (name, value) in fields.into_iter().chain(finding.advice.as_deref().map(|advice| ("advice", advice)))
    {
        if out.len() > 1 {
            out.extend_from_slice(b", ");
        }
        write_json_field(name, value.as_bytes(), &mut out);
    }
    out.extend_from_slice(b"}\n");
    out
}

fn lines(finding: &Finding, term: &Term) -> Vec<String> {
    let style = match finding.state {
        Verdict::Good => Style::Green,
        Verdict::Fair => Style::Yellow,
        Verdict::Poor => Style::Red,
        Verdict::Absent => Style::Dim,
    };
    let state = term.paint(style, term::pad(&finding.state.to_string(), 7));
    let topic = term.paint(Style::Bold, term::pad(finding.topic, 12));
    let mut lines = Vec::new();
    for (i, part) in term::wrap(&finding.what, term.columns.saturating_sub(WHAT_COLUMN)).iter().enumerate() {
        lines.push(match i {
            0 => format!("{state} {topic} {part}"),
            _ => format!("{:WHAT_COLUMN$}{part}", ""),
        });
    }
    let room = term.columns.saturating_sub(ADVICE_COLUMN + 2);
    let arrow = term.glyph("→", ">");
    for (i, part) in finding.advice.iter().flat_map(|advice| advice.lines()).enumerate() {
        // The first line is prose; after it come commands, which are only broken where a shell allows it.
        let (parts, mark) =
            if i == 0 { (term::wrap(part, room), arrow) } else { (break_command(part, room), " ") };
        for (j, part) in parts.iter().enumerate() {
            let mark = if j == 0 { mark } else { " " };
            lines.push(format!("{:ADVICE_COLUMN$}{} {part}", "", term.paint(Style::Blue, mark)));
        }
    }
    lines
}

/// A command in lines of at most `columns` as far as that can be had: a comment goes first, and a pipe may end
/// a line.
fn break_command(command: &str, columns: usize) -> Vec<String> {
    use unicode_width::UnicodeWidthStr;
    if command.width() <= columns {
        return vec![command.to_owned()];
    }
    let (command, comment) = command.split_once("  # ").map_or((command, None), |(c, text)| (c, Some(text)));
    let mut lines: Vec<String> = comment.map(|text| format!("# {text}")).into_iter().collect();
    match command.split_once(" | ") {
        Some((left, right)) if command.width() > columns => {
            lines.extend([format!("{left} |"), right.to_owned()])
        }
        _ => lines.push(command.to_owned()),
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_commands_are_broken_where_a_shell_allows_it() {
        assert_eq!(break_command("short  # why", 20), ["short  # why"]);
        assert_eq!(break_command("a longer command  # why", 20), ["# why", "a longer command"]);
        assert_eq!(
            break_command("echo 1 | sudo tee /sys/a/b  # why", 20),
            ["# why", "echo 1 |", "sudo tee /sys/a/b"]
        );
    }
}
