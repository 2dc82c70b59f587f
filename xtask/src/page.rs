//! The step `page`: loads the project's pages in a headless browser. Their console must be empty, and their picture
//! must not be blank.
//!
//! - The page that `kvbench report` makes of all of the project's records: the browser's document must have every
//!   chart, bar, point and cell of it.
//! - The page that `forrest web` serves of a store whose keys and values are markup: the document must have them, as
//!   text.

use crate::served::Served;
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{foreign, setup};
use std::path::Path;
use std::process::Command;

/// The elements that are counted, in the page and in the browser's document.
const ELEMENTS: &[&str] = &["<svg ", "<rect ", "<circle ", "<path ", "<figcaption>", "<td", "<details>"];
/// Pairs of a store, each in its keyspace.
const MARKUP: &[(&str, &str, &str)] = &[
    ("default", "<img src=x onerror=alert(1)>", "<script>alert(2)</script>"),
    ("default", "oak & \\xFF\\x01", "Quercus\\nrobur"),
    ("<b>bold</b>", "ash", "Fraxinus"),
];
/// What the page of that store must show.
const SHOWN: &[&str] = &[
    "&lt;img src=x onerror=alert(1)&gt;",
    "&lt;script&gt;alert(2)&lt;/script&gt;",
    "oak &amp; ",
    "\\xff\\x01",
    "Quercus",
    "&lt;b&gt;bold&lt;/b&gt;",
    "forrest_cache_hits_total",
];
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
    foreign::build(workspace, &["--bin", "kvbench", "--bin", "forrest"])?;
    let mut report = workspace.command(workspace.target.join("debug/kvbench"));
    workspace::run(report.arg("report").args(&records).arg("--html").arg(&page))?;

    let browser = Browser { workspace, directory: &directory };
    let (address, picture) = (format!("file://{}", page.display()), directory.join("report.png"));
    let built = browser.document(&address)?;
    let written = std::fs::read_to_string(&page).map_err(message)?;
    for element in ELEMENTS {
        let (wanted, found) = (written.matches(element).count(), built.matches(element).count());
        if wanted == 0 || found != wanted {
            return Err(format!("of {wanted} {element} in the page, the browser has {found}"));
        }
    }
    browser.picture(&address, &picture)?;
    println!(
        "{} records, {} charts; drawn in {}",
        records.len(),
        written.matches("<svg ").count(),
        picture.display()
    );
    served(&browser)?;
    Ok(Outcome::Passed)
}

/// A browser without a window.
struct Browser<'w> {
    workspace: &'w Workspace,
    /// Where its files are.
    directory: &'w Path,
}

impl Browser<'_> {
    fn command(&self, what: &str, address: &str) -> Command {
        let mut command = self.workspace.command("chromium");
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]);
        // The time of the page passes at once, so that it has asked for its figures a few times.
        command.args(["--virtual-time-budget=7000", "--window-size=1280,4000", what]);
        command.arg(format!("--user-data-dir={}", self.directory.join("profile").display()));
        command.arg(address);
        command
    }

    /// The document that the browser has of a page.
    fn document(&self, address: &str) -> Result<String, String> {
        let (built, status) = workspace::capture(&mut self.command("--dump-dom", address))?;
        if !status.success() {
            return Err(format!("{status} of the browser: {built}"));
        }
        if let Some(line) = built.lines().find(|line| line.contains(":CONSOLE:")) {
            return Err(format!("the browser logged: {line}"));
        }
        Ok(built)
    }

    fn picture(&self, address: &str, picture: &Path) -> Result<(), String> {
        workspace::capture(&mut self.command(&format!("--screenshot={}", picture.display()), address))?;
        let bytes = std::fs::metadata(picture).map_err(|error| format!("no picture: {error}"))?.len();
        if bytes < PICTURE_BYTES_MIN {
            return Err(format!("the picture of the page has {bytes} bytes: it is blank"));
        }
        Ok(())
    }
}

/// Looks at the page of a store.
fn served(browser: &Browser<'_>) -> Result<(), String> {
    let workspace = browser.workspace;
    let forrest = workspace.target.join("debug/forrest");
    let store = browser.directory.join("store");
    for (keyspace, key, value) in MARKUP {
        let mut set = Command::new(&forrest);
        set.arg("--db").arg(&store).args(["--keyspace", keyspace, "set", key, value]);
        workspace::run(&mut set)?;
    }
    let mut serve = Command::new(&forrest);
    let server = Served::start(serve.args(["--quiet", "web"]).arg(&store))?;
    let url = &*server.line;
    let built = browser.document(url)?;
    for needed in SHOWN {
        if !built.contains(needed) {
            return Err(format!("the page of a store does not show {needed:?}:\n{built}"));
        }
    }
    for markup in ["<img", "<b>bold", "<script>alert"] {
        if built.contains(markup) {
            return Err(format!("the page of a store has the markup {markup:?}, which is in keys or values"));
        }
    }
    let picture = browser.directory.join("store.png");
    browser.picture(url, &picture)?;
    // What the browser has must not be there without the token.
    let (without, _) = url.split_once("token=").ok_or("the URL has no token")?;
    let refused = browser.document(without)?;
    if !refused.contains("the token is missing or wrong") || refused.contains("keyspaces") {
        return Err(format!("the page is there without its token:\n{refused}"));
    }
    println!("a store whose keys are markup; drawn in {}", picture.display());
    Ok(())
}
