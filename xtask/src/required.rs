//! Which tests and documents must exist.
//!
//! A gate that silently runs nothing is worse than none, so each step asks here for the files that it depends
//! on. What the project has not reached yet is marked [`Presence::Later`]: its absence is printed and skipped.
//! **When it arrives, change its mark to [`Presence::Now`]**, and from then on its absence is a failure.

use crate::workspace::Workspace;

/// Whether a file must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// It must.
    Now,
    /// It will; until then its absence is told.
    Later,
}

/// Models of the lock-free protocols, with their weakened twins named at the head.
pub(crate) const LOOM: &str = "crates/forrest-index/tests/loom.rs";
/// Threads against each other on the index.
pub(crate) const STRESS_INDEX: &str = "crates/forrest-index/tests/stress.rs";
/// Random operations on the index against a model.
const MODEL_INDEX: &str = "crates/forrest-index/tests/model.rs";
/// Random operations on the library against a model.
const MODEL_FORREST: &str = "crates/forrest/tests/it/model.rs";
/// Threads against each other on the library.
pub(crate) const CONCURRENCY_FORREST: &str = "crates/forrest/tests/it/concurrency.rs";
/// What `portable` runs beside unit tests.
pub(crate) const MODELS: &[&str] = &[MODEL_INDEX, MODEL_FORREST];
/// The front page.
pub(crate) const README: &str = "README.md";

/// The one list.
const FILES: &[(&str, Presence)] = &[
    (LOOM, Presence::Later),
    (STRESS_INDEX, Presence::Later),
    (MODEL_INDEX, Presence::Now),
    (MODEL_FORREST, Presence::Now),
    (CONCURRENCY_FORREST, Presence::Now),
    (README, Presence::Now),
];

/// What asking for a file gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is there.
    There,
    /// It is not, and need not be yet; the text says so.
    NotYet(String),
}

/// Looks for a file of the list. The error says that it is missing although it must be there.
pub(crate) fn look_for(workspace: &Workspace, path: &str) -> Result<Found, String> {
    let there = workspace.root.join(path).exists();
    let presence = FILES.iter().find(|(listed, _)| *listed == path).map(|(_, presence)| *presence);
    match (there, presence) {
        (true, _) => Ok(Found::There),
        (false, Some(Presence::Later)) => Ok(Found::NotYet(format!("{path} is not there yet"))),
        (false, _) => Err(format!("{path} is missing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_no_list_must_exist() {
        let workspace = Workspace::find().expect("this test runs in it");
        assert_eq!(look_for(&workspace, "Cargo.toml"), Ok(Found::There));
        assert_eq!(look_for(&workspace, "no/such/file"), Err("no/such/file is missing".to_owned()));
    }

    #[test]
    fn what_is_there_is_marked_so() {
        let workspace = Workspace::find().expect("this test runs in it");
        for (path, presence) in FILES {
            if workspace.root.join(path).exists() && *presence == Presence::Later {
                println!("{path} is there: mark it Presence::Now in xtask/src/required.rs");
            }
        }
    }
}
