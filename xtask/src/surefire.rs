//! What Maven's surefire ran: its reports, an XML file for each class of tests.
//!
//! Maven succeeds if a name matches no class, or if a class has no test that runs. So the reports are removed before
//! the tests, and each class must have one afterwards. The reports also say which tests failed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files;

/// Where the reports of a package go.
fn directory(package: &Path) -> PathBuf {
    package.join("target/surefire-reports")
}

/// Removes the reports of earlier runs.
pub(crate) fn forget(package: &Path) -> Result<(), String> {
    files::empty(&directory(package))
}

/// Demands that tests of each of these classes ran. Returns how many in all. A class is named with or without its
/// package, and a name with `#` is of one of its tests.
pub(crate) fn demand<S: AsRef<str>>(
    package: &Path,
    classes: impl IntoIterator<Item = S>,
) -> Result<u64, String> {
    let reports = reports(package, ran)?;
    let (mut all, mut missing) = (0, Vec::new());
    for class in classes {
        match tests_of(class.as_ref(), &reports) {
            0 => missing.push(class.as_ref().to_owned()),
            tests => all += tests,
        }
    }
    if missing.is_empty() { Ok(all) } else { Err(format!("no test ran of {}", missing.join(", "))) }
}

/// A test that failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// Its class without the package, a `#`, and its name.
    pub(crate) name: String,
    /// What the report says about it, but for what the test printed.
    pub(crate) why: String,
}

/// The tests that failed, by the reports.
pub(crate) fn failed(package: &Path) -> Result<Vec<Failed>, String> {
    Ok(reports(package, failures)?.into_iter().flat_map(|(_, failures)| failures).collect())
}

/// The class of each report, and what it says.
fn reports<T>(package: &Path, read: impl Fn(&str) -> Option<T>) -> Result<Vec<(String, T)>, String> {
    let mut reports = Vec::new();
    for path in files::entries(&directory(package))? {
        if let Some(class) = reported(&path) {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            reports
                .push((class, read(&text).ok_or_else(|| format!("{}: no report of tests", path.display()))?));
        }
    }
    Ok(reports)
}

/// The classes of tests among a package's sources.
pub(crate) fn classes(package: &Path) -> Result<Vec<String>, String> {
    let (mut classes, mut open) = (Vec::new(), vec![package.join("src/test/java")]);
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(files::entries(&path)?);
        } else if let Some(class) = path.file_name().and_then(|name| name.to_str()?.strip_suffix("Test.java"))
        {
            classes.push(format!("{class}Test"));
        }
    }
    classes.sort();
    Ok(classes)
}

/// The class that a file is the report of.
fn reported(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.strip_prefix("TEST-")?.strip_suffix(".xml")?.to_owned())
}

/// How many tests of a class ran, by the reports.
fn tests_of(named: &str, reports: &[(String, u64)]) -> u64 {
    let class = named.split('#').next().unwrap_or(named);
    let is_of =
        |full: &str| full == class || full.strip_suffix(class).is_some_and(|rest| rest.ends_with('.'));
    reports.iter().filter(|(full, _)| is_of(full)).map(|(_, tests)| tests).sum()
}

/// How many tests ran, by the text of a report: those that there are, without those that were skipped.
fn ran(report: &str) -> Option<u64> {
    let suite = report.split_once("<testsuite ")?.1.split_once('>')?.0;
    let count = |name: &str| attribute(suite, name)?.parse::<u64>().ok();
    Some(count("tests")?.saturating_sub(count("skipped")?))
}

/// The tests of a report that failed: the element `testcase` then has another one, before what the test printed.
fn failures(report: &str) -> Option<Vec<Failed>> {
    let mut failed = Vec::new();
    for case in report.split("<testcase").skip(1) {
        let why = case.split("<system-").next()?;
        if why.contains("<failure") || why.contains("<error") {
            let class = attribute(case, "classname")?.rsplit('.').next()?;
            let name = format!("{class}#{}", attribute(case, "name")?);
            failed.push(Failed { name, why: why.to_owned() });
        }
    }
    Some(failed)
}

/// An attribute of the element that a text begins in.
fn attribute<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    Some(text.split_once(&format!(" {name}=\""))?.1.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package for a test, empty.
    fn package(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("surefire-{}-{name}", std::process::id()));
        files::empty(&path).unwrap();
        path
    }

    /// What surefire 3.5.4 writes.
    fn report(class: &str, tests: u64, skipped: u64) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:noNamespaceSchemaLocation=\"https://maven.apache.org/x.xsd\" version=\"3.0.2\" name=\"{class}\" \
             time=\"2.473\" tests=\"{tests}\" errors=\"0\" skipped=\"{skipped}\" failures=\"0\">\n  <properties>\n \
             <property name=\"x\" value=\"a>b\"/>\n</properties>\n<testcase name=\"a\"/></testsuite>\n"
        )
    }

    #[test]
    fn each_class_must_have_tests_that_ran() {
        let package = &package("reports");
        let write = |class: &str, tests, skipped| {
            let name = format!("target/surefire-reports/TEST-{class}.xml");
            files::write(&package.join(name), report(class, tests, skipped).as_bytes()).unwrap();
        };
        write("org.apache.EosIntegrationTest", 38, 0);
        write("org.apache.RestoreIntegrationTest", 18, 2);
        write("org.apache.SkippedTest", 3, 3);
        files::write(&package.join("target/surefire-reports/EosIntegrationTest.txt"), b"x").unwrap();
        assert_eq!(demand(package, ["EosIntegrationTest", "org.apache.RestoreIntegrationTest"]), Ok(54));
        assert_eq!(demand(package, ["EosIntegrationTest#one"]), Ok(38));
        for class in ["WrongName", "IntegrationTest", "SkippedTest", "WrongName#one"] {
            assert_eq!(
                demand(package, ["EosIntegrationTest", class]),
                Err(format!("no test ran of {class}"))
            );
        }
        files::write(&package.join("target/surefire-reports/TEST-a.B.xml"), b"<x/>").unwrap();
        assert!(demand(package, ["EosIntegrationTest"]).unwrap_err().contains("TEST-a.B.xml: no report"));
        // What an earlier run left does not count.
        forget(package).unwrap();
        assert!(demand(package, ["EosIntegrationTest"]).is_err());
        fs::remove_dir_all(package).unwrap();
    }

    #[test]
    fn tests_that_failed_are_found() {
        let package = &package("failed");
        let report = "<testsuite name=\"a.B\" tests=\"4\" skipped=\"0\">\n  <testcase name=\"one[1]\" classname=\"a.B\" \
                      time=\"0.1\">\n    <system-out><![CDATA[<error type]]></system-out>\n  </testcase>\n  <testcase \
                      name=\"one[2]\" classname=\"a.B\">\n    <failure message=\"x\">y</failure>\n  </testcase>\n  <testcase \
                      name=\"two\" classname=\"a.B\"><error type=\"z\"/></testcase><testcase name=\"three\" \
                      classname=\"a.B\" time=\"1\"/></testsuite>";
        files::write(&package.join("target/surefire-reports/TEST-a.B.xml"), report.as_bytes()).unwrap();
        let found = failed(package).unwrap();
        let names: Vec<_> = found.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names, ["B#one[2]", "B#two"]);
        assert!(found[0].why.contains("message=\"x\"") && found[1].why.contains("type=\"z\""));
        fs::remove_dir_all(package).unwrap();
    }

    #[test]
    fn classes_are_found_among_sources() {
        let package = &package("sources");
        for file in ["a/b/TwoTest.java", "OneTest.java", "a/Helper.java", "a/TestOf.java"] {
            files::write(&package.join("src/test/java").join(file), b"").unwrap();
        }
        assert_eq!(classes(package).unwrap(), ["OneTest", "TwoTest"]);
        fs::remove_dir_all(package).unwrap();
    }
}
