//! Reads the test machine's serial console and decides whether its run succeeded.
//!
//! The machine prints the number of its checks (`1..N`), a line for each check (`ok NAME`, `not ok NAME: why`,
//! `skip NAME: why`), and the counts (`llds: N passed, N failed, N skipped`). A run succeeds if all of this is printed
//! once, agrees, and has no failure. All other lines, such as those of the kernel, are ignored: the checks read the
//! kernel's log themselves.

/// The result of a machine that ran all its checks without a failure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) passed: usize,
    /// Names and reasons.
    pub(crate) skipped: Vec<String>,
}

/// Number of last lines in the error about a machine that stopped early.
const LAST_LINES: usize = 30;

/// The first line of init.
pub(crate) const UP: &str = "llds machine: up, ";
/// The line before a check.
const BEGINS: &str = "# begins ";
/// The last line of init.
const ENDED: &str = "llds machine: the checks ended with status ";

/// Reads a console. The error says what failed.
pub(crate) fn read(console: &str) -> Result<Report, String> {
    let lines: Vec<&str> = console.lines().map(|line| line.trim_end_matches('\r')).collect();
    if !lines.iter().any(|line| line.starts_with(UP)) {
        return Err(format!("the machine did not boot:\n{}", last(&lines)));
    }
    let failed = beginning_with(&lines, "not ok ");
    let Some(counts) = only(&lines, summary)? else {
        // The usual reason is a panic, which is among the last lines.
        let at = beginning_with(&lines, BEGINS).pop().unwrap_or("none of its checks");
        return Err(format!("the machine stopped in {at}:\n{}", last(&lines)));
    };
    if !failed.is_empty() {
        return Err(failed.join("; "));
    }
    let passed = beginning_with(&lines, "ok ");
    let skipped = beginning_with(&lines, "skip ");
    let planned = only(&lines, plan)?.ok_or("the machine did not print the number of its checks")?;
    let reported = [passed.len(), failed.len(), skipped.len()];
    if counts != reported || reported.iter().sum::<usize>() != planned || passed.is_empty() {
        return Err(format!(
            "the counts disagree: {planned} planned, {counts:?} counted, {reported:?} reported"
        ));
    }
    let mut names = passed.clone();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("{} was reported twice", twice[0]));
    }
    match only(&lines, |line| line.strip_prefix(ENDED))? {
        Some("0") => {
            Ok(Report { passed: passed.len(), skipped: skipped.into_iter().map(str::to_owned).collect() })
        }
        status => Err(format!("the checks ended with {status:?}")),
    }
}

/// The checks that failed, including the one in which the machine stopped.
pub(crate) fn failures(console: &str) -> Vec<&str> {
    let lines: Vec<&str> = console.lines().map(|line| line.trim_end_matches('\r')).collect();
    let named = beginning_with(&lines, "not ok ").into_iter();
    let mut failed: Vec<&str> = named.map(|line| line.split(':').next().unwrap_or(line)).collect();
    if !lines.iter().any(|line| summary(line).is_some()) {
        failed.extend(beginning_with(&lines, BEGINS).pop());
    }
    failed
}

/// Marks of kernel errors on a console. They count even if all checks pass.
const COMPLAINTS: &[&str] = &[
    "BUG:",
    "kernel BUG",
    "KASAN",
    "UBSAN",
    "WARNING:",
    "INFO: task",
    "INFO: trying",
    "INFO: rcu",
    "sleeping function called",
    "refcount_t",
    "Oops",
    "Kernel panic",
    "Kernel mode fault",
];

/// The first line with a kernel error.
pub(crate) fn complaint(console: &str) -> Option<&str> {
    let mut lines = console.lines().map(|line| line.trim_end_matches('\r'));
    lines.find(|line| COMPLAINTS.iter().any(|mark| line.contains(mark)))
}

/// Lines with a beginning, without it.
fn beginning_with<'a>(lines: &[&'a str], beginning: &str) -> Vec<&'a str> {
    lines.iter().filter_map(|line| line.strip_prefix(beginning)).collect()
}

/// The value of the only line that `understand` accepts. Two such lines are an error.
fn only<'a, T>(lines: &[&'a str], understand: impl Fn(&'a str) -> Option<T>) -> Result<Option<T>, String> {
    let mut found = lines.iter().filter_map(|line| understand(line));
    let first = found.next();
    if found.next().is_some() { Err("the machine ran its checks twice".to_owned()) } else { Ok(first) }
}

/// `1..N`.
fn plan(line: &str) -> Option<usize> {
    line.strip_prefix("1..")?.parse().ok()
}

/// `llds: N passed, N failed, N skipped`.
fn summary(line: &str) -> Option<[usize; 3]> {
    let mut parts = line.strip_prefix("llds: ")?.split(", ");
    let mut count = |what: &str| parts.next()?.strip_suffix(what)?.parse().ok();
    let counts = [count(" passed")?, count(" failed")?, count(" skipped")?];
    parts.next().is_none().then_some(counts)
}

fn last(lines: &[&str]) -> String {
    let lines = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if lines.is_empty() { "(no output)".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[    0.1] hello\r\nllds machine: up, 6.1.0\r\n1..3\r\n# begins a\r\nok a\r\n# took 7 ms\r\n\
        [    1.0] llds: `0' invalid\r\n# begins b\r\nok b\r\nskip c: no such processor\r\n\
        llds: 2 passed, 0 failed, 1 skipped\r\nllds machine: the checks ended with status 0\r\n";

    fn refused(console: &str, reason: &str) {
        let why = read(console).expect_err("this is no success");
        assert!(why.contains(reason), "{why}");
    }

    #[test]
    fn a_success_is_told_with_what_was_skipped() {
        let report = Report { passed: 2, skipped: vec!["c: no such processor".to_owned()] };
        assert_eq!(read(GOOD), Ok(report));
        assert!(failures(GOOD).is_empty());
    }

    #[test]
    fn a_complaint_is_one_wherever_it_stands() {
        assert_eq!(complaint(GOOD), None);
        for line in [
            "BUG: KASAN: use-after-free in llds_open+0x1/0x2 [llds]",
            "UBSAN: shift-out-of-bounds in device.c:7:1",
            "WARNING: possible circular locking dependency detected",
            "BUG: sleeping function called from invalid context at mm/slab.h:1",
            "Kernel panic - not syncing: Kernel mode fault at addr 0x8",
        ] {
            let end = GOOD.find("llds machine: the").expect("it is there");
            let said = format!("{}[    2.0] {line}\r\n{}", &GOOD[..end], &GOOD[end..]);
            assert_eq!(complaint(&said), Some(format!("[    2.0] {line}").as_str()));
        }
    }

    #[test]
    fn a_machine_that_does_not_boot_has_failed() {
        refused("", "no output");
        refused("[    0.1] hello\r\nKernel panic - not syncing\r\n", "did not boot");
    }

    #[test]
    fn a_machine_without_a_summary_has_failed() {
        let end = GOOD.find("llds: 2").expect("it is there");
        refused(&GOOD[..end], "stopped in b");
        assert_eq!(failures(&GOOD[..end]), ["b"]);
        refused(
            &(GOOD[..end].to_owned() + "Kernel panic - not syncing: Fatal exception\r\n"),
            "Fatal exception",
        );
        // A line that the kernel wrote into is none.
        refused(&GOOD.replace("llds: 2 passed", "llds: 2 pas[    9.9] oops"), "stopped in b");
        let end = GOOD.find("llds machine: the").expect("it is there");
        refused(&GOOD[..end], "ended with None");
        refused(&GOOD.replace("status 0", "status 139"), "139");
    }

    #[test]
    fn a_failure_is_told_by_name() {
        let bad =
            GOOD.replace("ok b", "not ok b: it broke").replace("2 passed, 0 failed", "1 passed, 1 failed");
        refused(&bad, "b: it broke");
        assert_eq!(failures(&bad), ["b"]);
        // Whatever the summary claims.
        refused(&GOOD.replace("ok b", "not ok b: it broke"), "b: it broke");
    }

    #[test]
    fn counts_must_agree() {
        refused(&GOOD.replace("ok b\r\n", ""), "disagree");
        refused(&GOOD.replace("1..3", "1..4"), "disagree");
        refused(&GOOD.replace("2 passed", "3 passed"), "disagree");
        refused(&GOOD.replace("1..3\r\n", ""), "did not print");
        refused(&GOOD.replace("ok b", "ok a"), "twice");
        refused(&GOOD.replace("1..3\r\n", "1..3\r\n1..3\r\n"), "twice");
        let none = "llds machine: up, 6\n1..0\nllds: 0 passed, 0 failed, 0 skipped\n\
            llds machine: the checks ended with status 0\n";
        refused(none, "disagree");
    }

    #[test]
    fn summaries_are_read_to_the_letter() {
        assert_eq!(summary("llds: 12 passed, 0 failed, 1 skipped"), Some([12, 0, 1]));
        for line in [
            "llds: 12 passed, 0 failed",
            "llds: x passed, 0 failed, 1 skipped",
            "llds: 1 passed, 0 failed, 1 skipped, 2",
        ] {
            assert_eq!(summary(line), None, "{line}");
        }
    }
}
