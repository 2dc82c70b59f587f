//! House rules that no lint knows.
//!
//! | module | what it checks |
//! |---|---|
//! | order.rs | crates and modules use only those below them, in the order of `docs/layers.txt` |
//! | rules.rs | how files begin, where unsafe code may be, what stays out |
//!
//! Below them, `modules.rs` reads which module uses which, of the tokens of `tokens.rs`; `sources.rs` finds the files.

mod modules;
mod order;
mod rules;
mod sources;
mod tokens;

use crate::failure::Failure;
use crate::steps;
use crate::steps::{Outcome, Step, Verdict};
use crate::workspace::Workspace;
use order::Order;

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    match arguments {
        [] => steps::run(workspace, &[&Step { name: "tidy", does: "house rules", run: step }]),
        [option] if option == "--layers" => {
            print!("{}", order::proposals(&workspace.root).map_err(Failure::Broken)?);
            Ok(())
        }
        [other, ..] => Err(Failure::Usage(format!("unexpected argument {other:?}"))),
    }
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    let root = &workspace.root;
    let sources = sources::read(root)?;
    let mut wrong = rules::breaches(&sources);
    wrong.extend(Order::read(root)?.breaches(root)?);
    if wrong.is_empty() {
        println!("{} files follow the rules", sources.len());
        return Ok(Outcome::Passed);
    }
    for problem in &wrong {
        println!("{problem}");
    }
    Err(format!("{} breaches of the rules in CONTRIBUTING.md", wrong.len()))
}
