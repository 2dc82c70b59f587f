//! Reads the test machine's serial console and decides whether its run succeeded.
//!
//! The machine prints KTAP, as the kernel's own tests do: the number of its checks (`1..N`), a line for each check (`ok
//! N NAME`, `not ok N NAME # why`, `ok N NAME # SKIP why`), and the counts (`# Totals: ...`). A run succeeds if all of
//! this is printed once, agrees, and has no failure. All other lines, such as those of the kernel, are ignored: the
//! checks read the kernel's log themselves.

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
    let results: Vec<(usize, Found<'_>)> = lines.iter().filter_map(|line| result(line)).collect();
    let failed: Vec<String> = results.iter().filter_map(|(_, found)| found.failure()).collect();
    let Some(counts) = only(&lines, summary)? else {
        // The usual reason is a panic, which is among the last lines.
        let at = beginning_with(&lines, BEGINS).pop().unwrap_or("none of its checks");
        return Err(format!("the machine stopped in {at}:\n{}", last(&lines)));
    };
    if !failed.is_empty() {
        return Err(failed.join("; "));
    }
    let of = |wanted: fn(&Found<'_>) -> bool| results.iter().filter(|(_, found)| wanted(found)).count();
    let passed = of(|found| matches!(found, Found::Passed(_)));
    let skipped: Vec<String> = results
        .iter()
        .filter_map(|(_, found)| match found {
            Found::Skipped(name, why) => Some(format!("{name}: {why}")),
            _ => None,
        })
        .collect();
    let planned = only(&lines, plan)?.ok_or("the machine did not print the number of its checks")?;
    let reported = [passed, failed.len(), skipped.len()];
    if counts != reported || results.len() != planned || passed == 0 {
        return Err(format!(
            "the counts disagree: {planned} planned, {counts:?} counted, {reported:?} reported"
        ));
    }
    if let Some((at, (number, _))) = (1..).zip(&results).find(|(at, (number, _))| at != number) {
        return Err(format!("the check {number} was reported in place of the check {at}"));
    }
    match only(&lines, |line| line.strip_prefix(ENDED))? {
        Some("0") => Ok(Report { passed, skipped }),
        status => Err(format!("the checks ended with {status:?}")),
    }
}

/// The checks that failed, including the one in which the machine stopped.
pub(crate) fn failures(console: &str) -> Vec<&str> {
    let lines: Vec<&str> = console.lines().map(|line| line.trim_end_matches('\r')).collect();
    let named = lines.iter().filter_map(|line| match result(line) {
        Some((_, Found::Failed(name, _))) => Some(name),
        _ => None,
    });
    let mut failed: Vec<&str> = named.collect();
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

/// What a check found.
#[derive(Debug, PartialEq, Eq)]
enum Found<'a> {
    Passed(&'a str),
    /// Its name, and the reason.
    Failed(&'a str, &'a str),
    Skipped(&'a str, &'a str),
}

impl Found<'_> {
    fn failure(&self) -> Option<String> {
        match self {
            Found::Failed(name, why) => Some(format!("{name}: {why}")),
            _ => None,
        }
    }
}

/// The line of a check, with its number.
fn result(line: &str) -> Option<(usize, Found<'_>)> {
    let (is_ok, rest) = match line.strip_prefix("not ") {
        Some(rest) => (false, rest),
        None => (true, line),
    };
    let (number, rest) = rest.strip_prefix("ok ")?.split_once(' ')?;
    let (name, why) = rest.split_once(" # ").unwrap_or((rest, ""));
    let found = match (is_ok, why.strip_prefix("SKIP ")) {
        (false, _) => Found::Failed(name, why),
        (true, Some(why)) => Found::Skipped(name, why),
        (true, None) => Found::Passed(name),
    };
    Some((number.parse().ok()?, found))
}

/// `1..N`.
fn plan(line: &str) -> Option<usize> {
    line.strip_prefix("1..")?.parse().ok()
}

/// Those that passed, failed and were skipped, by the totals.
fn summary(line: &str) -> Option<[usize; 3]> {
    let mut parts = line.strip_prefix("# Totals: ")?.split(' ');
    let mut count = |what: &str| parts.next()?.strip_prefix(what)?.parse::<usize>().ok();
    let (passed, failed) = (count("pass:")?, count("fail:")?);
    let (xfail, xpass) = (count("xfail:")?, count("xpass:")?);
    let (skipped, error) = (count("skip:")?, count("error:")?);
    let is_all = parts.next().is_none() && [xfail, xpass, error] == [0; 3];
    is_all.then_some([passed, failed, skipped])
}

fn last(lines: &[&str]) -> String {
    let lines = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if lines.is_empty() { "(no output)".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[    0.1] hello\r\nllds machine: up, 6.1.0\r\nTAP version 13\r\n1..3\r\n# begins a\r\nok 1 a\r\n\
        # took 7 ms\r\n[    1.0] llds: `0' invalid\r\n# begins b\r\nok 2 b\r\nok 3 c # SKIP no such processor\r\n\
        # Totals: pass:2 fail:0 xfail:0 xpass:0 skip:1 error:0\r\nllds machine: the checks ended with status 0\r\n";

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
        let end = GOOD.find("# Totals").expect("it is there");
        refused(&GOOD[..end], "stopped in b");
        assert_eq!(failures(&GOOD[..end]), ["b"]);
        refused(
            &(GOOD[..end].to_owned() + "Kernel panic - not syncing: Fatal exception\r\n"),
            "Fatal exception",
        );
        // A line that the kernel wrote into is none.
        refused(&GOOD.replace("pass:2", "pas[    9.9] oops"), "stopped in b");
        let end = GOOD.find("llds machine: the").expect("it is there");
        refused(&GOOD[..end], "ended with None");
        refused(&GOOD.replace("status 0", "status 139"), "139");
    }

    #[test]
    fn a_failure_is_told_by_name() {
        let bad = GOOD.replace("ok 2 b", "not ok 2 b # it broke").replace("pass:2 fail:0", "pass:1 fail:1");
        refused(&bad, "b: it broke");
        assert_eq!(failures(&bad), ["b"]);
        // Whatever the summary claims.
        refused(&GOOD.replace("ok 2 b", "not ok 2 b # it broke"), "b: it broke");
    }

    #[test]
    fn counts_must_agree() {
        refused(&GOOD.replace("ok 2 b\r\n", ""), "disagree");
        refused(&GOOD.replace("1..3", "1..4"), "disagree");
        refused(&GOOD.replace("pass:2", "pass:3"), "disagree");
        refused(&GOOD.replace("1..3\r\n", ""), "did not print");
        refused(&GOOD.replace("ok 2 b", "ok 1 b"), "in place of the check 2");
        refused(&GOOD.replace("1..3\r\n", "1..3\r\n1..3\r\n"), "twice");
        let none = "llds machine: up, 6\n1..0\n\
            # Totals: pass:0 fail:0 xfail:0 xpass:0 skip:0 error:0\nllds machine: the checks ended with status 0\n";
        refused(none, "disagree");
    }

    #[test]
    fn summaries_are_read_to_the_letter() {
        let totals = "# Totals: pass:12 fail:0 xfail:0 xpass:0 skip:1 error:0";
        assert_eq!(summary(totals), Some([12, 0, 1]));
        for line in [
            "# Totals: pass:12 fail:0",
            "# Totals: pass:x fail:0 xfail:0 xpass:0 skip:1 error:0",
            "# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:1 error:0 more:2",
            "# Totals: pass:1 fail:0 xfail:0 xpass:0 skip:1 error:2",
        ] {
            assert_eq!(summary(line), None, "{line}");
        }
        let check = |line| result(line);
        assert_eq!(check("ok 7 a"), Some((7, Found::Passed("a"))));
        assert_eq!(check("not ok 8 b # no: it # broke"), Some((8, Found::Failed("b", "no: it # broke"))));
        assert_eq!(check("ok 9 c # SKIP nowhere"), Some((9, Found::Skipped("c", "nowhere"))));
        for line in ["ok", "ok a", "ok 7", "is ok 7 a", "# ok 7 a"] {
            assert_eq!(check(line), None, "{line}");
        }
    }
}
