//! House rules that no lint knows.
//!
//! | module | what it checks |
//! |---|---|
//! | order.rs | crates and modules use only those below them, in the order of `docs/layers.txt` |
//! | width.rs | how long lines are, of comments and Markdown |
//! | words.rs | words to avoid, whose count may only fall |
//! | rules.rs | how files begin, where unsafe code may be, what stays out |
//!
//! Below them, `modules.rs` reads which module uses which, of the tokens of `tokens.rs`; `sources.rs` finds the files.

mod modules;
mod order;
mod rules;
mod sources;
mod tokens;
mod width;
mod words;

use crate::failure::Failure;
use crate::steps;
use crate::steps::{Outcome, Step, Verdict};
use crate::workspace::Workspace;
use order::Order;
use words::{Avoided, Place};

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    match arguments {
        [] => steps::run(workspace, &[&Step { name: "tidy", does: "house rules", run: step }]),
        [option] if option == "--layers" => {
            print!("{}", order::proposals(&workspace.root).map_err(Failure::Broken)?);
            Ok(())
        }
        [option, words @ ..] if option == "--words" => {
            let (avoided, places) = counted(workspace).map_err(Failure::Broken)?;
            print!("{}", avoided.table(&places, words));
            Ok(())
        }
        [option] if option == "--record" => {
            let (avoided, places) = counted(workspace).map_err(Failure::Broken)?;
            avoided.record(&workspace.root, &places).map_err(Failure::Broken)
        }
        [other, ..] => Err(Failure::Usage(format!("unexpected argument {other:?}"))),
    }
}

/// The words to avoid, and where they stand.
fn counted(workspace: &Workspace) -> Result<(Avoided, Vec<Place>), String> {
    let avoided = Avoided::read(&workspace.root)?;
    let places = avoided.places(&sources::read(&workspace.root)?);
    Ok((avoided, places))
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    let root = &workspace.root;
    let sources = sources::read(root)?;
    let mut wrong = rules::breaches(&sources);
    wrong.extend(Order::read(root)?.breaches(root)?);
    wrong.extend(width::breaches(&sources));
    let avoided = Avoided::read(root)?;
    wrong.extend(avoided.breaches(workspace, &avoided.places(&sources)));
    if wrong.is_empty() {
        println!("{} files follow the rules", sources.len());
        return Ok(Outcome::Passed);
    }
    for problem in &wrong {
        println!("{problem}");
    }
    Err(format!("{} breaches of the rules in CONTRIBUTING.md", wrong.len()))
}
