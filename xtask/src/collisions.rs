//! The step `collisions`: the models of the index and of the store on disk in a build whose tags have one bit.
//!
//! A lookup compares a tag of the key first. So a comparison of keys that is wrong gives a wrong result once in 256
//! lookups, or in 65,536, and a model with a few thousand keys may never see it. With one bit it is each second one.

use crate::required;
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, SIZE_VARIABLE, UNOPTIMIZED, Workspace};

pub(crate) const NAME: &str = "collisions";
pub(crate) const DOES: &str = "models in a build whose tags hide no wrong comparison";

/// What `forrest_base::tag` looks at.
const FLAGS: &str = "--cfg forrest_collisions";

/// What runs: a package, and cargo's arguments. Tests that count what tags save are not among them.
const SUBJECTS: &[(&str, &[&str])] = &[
    ("forrest-index", &["--test", "model"]),
    (
        "remixdb",
        &[
            "--lib",
            "--",
            "tables_of_every_shape",
            "remix::tests::reads::",
            "tests::conformance::it_conforms_in_a_directory",
            "::random_work_is_right",
            "tests::snapshot::",
        ],
    ),
];

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    for file in required::MODELS {
        required::demand(workspace, file)?;
    }
    for (package, arguments) in SUBJECTS {
        let mut command = workspace.cargo_apart(NAME, &["test", "--locked"]);
        command.args(UNOPTIMIZED).args(["--package", package]).args(*arguments);
        command.env(SIZE_VARIABLE, "quick").env("RUSTFLAGS", FLAGS);
        workspace::run(&mut command)?;
    }
    Ok(Outcome::Passed)
}
