//! The step `page`: loads the page that `kvbench report` makes of all of the project's records in a headless browser.
//! The browser's document must have every chart, bar, point and cell of the page, its console must be empty, and its
//! picture must not be blank.

use crate::setup;
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};

/// The elements that are counted, in the page and in the browser's document.
const ELEMENTS: &[&str] = &["<svg ", "<rect ", "<circle ", "<path ", "<figcaption>", "<td", "<details>"];
/// Minimum size of the picture; that of a blank page is far smaller.
const PICTURE_BYTES_MIN: u64 = 30_000;

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("the browser is that of Debian".to_owned()));
    }
    if !setup::on_path("chromium")
        && let Err(why) = setup::packages(workspace, &["chromium"])
    {
        return Ok(Outcome::Skipped(why));
    }
    let message = |error: std::io::Error| error.to_string();
    let directory = workspace.target.join("page");
    // Files of an earlier run would be mistaken for those of this one.
    drop(std::fs::remove_dir_all(&directory));
    std::fs::create_dir_all(&directory).map_err(message)?;
    let page = directory.join("report.html");
    let mut records: Vec<_> = std::fs::read_dir(workspace.root.join("bench/record"))
        .map_err(message)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    records.sort();
    let mut report = workspace.cargo(&["run", "--quiet", "--locked", "--package", "forrest-kvbench", "--"]);
    workspace::run(report.arg("report").args(&records).arg("--html").arg(&page))?;

    let browser = |what: &str| {
        let mut command = workspace.command("chromium");
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]);
        command.args(["--window-size=1280,4000", what]);
        command.arg(format!("--user-data-dir={}", directory.join("profile").display()));
        command.arg(format!("file://{}", page.display()));
        command
    };
    let (built, status) = workspace::capture(&mut browser("--dump-dom"))?;
    if !status.success() {
        return Err(format!("{status} of the browser: {built}"));
    }
    if let Some(line) = built.lines().find(|line| line.contains(":CONSOLE:")) {
        return Err(format!("the browser logged: {line}"));
    }
    let written = std::fs::read_to_string(&page).map_err(message)?;
    for element in ELEMENTS {
        let (wanted, found) = (written.matches(element).count(), built.matches(element).count());
        if wanted == 0 || found != wanted {
            return Err(format!("of {wanted} {element} in the page, the browser has {found}"));
        }
    }
    let picture = directory.join("report.png");
    workspace::capture(&mut browser(&format!("--screenshot={}", picture.display())))?;
    let bytes = std::fs::metadata(&picture).map_err(|error| format!("no picture: {error}"))?.len();
    if bytes < PICTURE_BYTES_MIN {
        return Err(format!("the picture of the page has {bytes} bytes: it is blank"));
    }
    println!(
        "{} records, {} charts; drawn in {}",
        records.len(),
        written.matches("<svg ").count(),
        picture.display()
    );
    Ok(Outcome::Passed)
}
