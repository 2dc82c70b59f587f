//! Follows a guide as its readers do: saves every program, runs every command, and compares the output with that in the
//! guide.
//!
//! Guides are the Markdown pages of `docs/guides` and a few READMEs. Their blocks, in order:
//!
//! | block | what happens |
//! |---|---|
//! | `c`, `cpp`, `go`, `java`, `js`, `rust`, `xml` | the program is saved under the file name with which its first line, a comment, begins (`/* trees.c: ...`, `// src/main.rs: ...`, `<!-- pom.xml: ...`) |
//! | `sh` | commands; all blocks of a page run in one shell |
//! | `text` | what the `sh` block before it prints |
//! | `cmake` | lines of the project that the step `install` builds |
//!
//! Other blocks are refused, so that none is left out. A page begins in a home directory of its own, in which
//! `crates` and `forrest` lead to the checkout. What `cargo xtask install --prefix ~/.local` puts in place is there
//! already; this command is only compared. New packages are in a workspace with the checkout's `Cargo.lock`, so that
//! they build with the same versions. Where `numactl` is missing or not permitted, its command runs without it. All
//! else is real.
//!
//! Not here: the guide of the Python package, which its own tests follow.

use std::fs;
use std::path::Path;

use crate::files::{empty, link, write};
use crate::required;
use crate::workspace::{self, UNOPTIMIZED, Workspace};

/// Where the guides are.
const DIRECTORY: &str = "docs/guides";
/// The guide that the step `go` follows, because not every machine has Go.
pub(crate) const GO: &str = "docs/guides/go.md";
/// The guide that the step `kafka` follows, because not every machine has Java and Maven.
pub(crate) const KAFKA: &str = "docs/guides/kafka.md";
/// The guide that the step `leveldb` follows.
pub(crate) const LEVELDB: &str = "docs/guides/leveldb.md";
/// The guide that the step `node` follows, because not every machine has Node.
pub(crate) const NODE: &str = "docs/guides/node.md";
/// That of the step `raft`, which builds the example.
pub(crate) const RAFT: &str = "docs/guides/raft.md";
/// That of the step `redis`, because not every machine has Redis's clients.
pub(crate) const REDIS: &str = "docs/guides/redis.md";
/// The guides that steps of their own follow.
const OF_OTHER_STEPS: [&str; 6] = [GO, KAFKA, LEVELDB, NODE, RAFT, REDIS];

/// A part of a guide that is in a block.
#[derive(Debug, PartialEq, Eq)]
enum Block<'a> {
    Program {
        file: &'a str,
        text: String,
    },
    Commands(String),
    Printed(String),
    /// Lines that are all in [`required::EXAMPLE_CMAKE`].
    Project(String),
}

/// The manifest of the workspace that `cargo new` adds packages to. Without it, that would be the checkout's own.
const PACKAGES: &str = "[workspace]\nresolver = \"3\"\nexclude = [\"crates\", \"forrest\"]\n";

/// The start of a shell script that follows a page. It calls cargo except for what is described above.
const PRELUDE: &str = r#"set -eu
trap 'echo "the command that failed: $BASH_COMMAND" >&2' ERR
cargo() {
    case "$1" in
    xtask) [[ "$*" == "xtask java --here" || "$*" == "xtask node --here $HOME/.local" || "$*" == "xtask install "?(--libraries\ )"--prefix $HOME/.local" ]] ;;
    *) command cargo $UNOPTIMIZED "$@" ;;
    esac
}
if ! command numactl --show >/dev/null 2>&1; then
    numactl() { while [[ $1 == -* ]]; do shift; done; "$@"; }
fi
save() {
    mkdir -p "$(dirname "$2")" && cp "$HOME/.guide/$1" "$2"
}
"#;

/// Follows every page of `docs/guides` but those of other steps, each in an empty directory `home`.
pub(crate) fn follow_all(workspace: &Workspace, home: &Path, prefix: &Path) -> Result<(), String> {
    let told = |error: std::io::Error| format!("{DIRECTORY}: {error}");
    let mut pages = Vec::new();
    for entry in fs::read_dir(workspace.root.join(DIRECTORY)).map_err(told)? {
        let name = entry.map_err(told)?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            pages.push(format!("{DIRECTORY}/{name}"));
        }
    }
    pages.retain(|page| !OF_OTHER_STEPS.contains(&page.as_str()));
    pages.sort();
    for page in &pages {
        follow(workspace, page, home, prefix)?;
    }
    Ok(())
}

/// Follows one guide, in a directory `home` that is emptied. `prefix` is its `~/.local`.
pub(crate) fn follow(workspace: &Workspace, guide: &str, home: &Path, prefix: &Path) -> Result<(), String> {
    println!("following {guide}");
    let text = fs::read_to_string(workspace.root.join(guide)).map_err(|error| format!("{guide}: {error}"))?;
    let blocks = blocks(&text).map_err(|why| format!("{guide}: {why}"))?;
    let saved = home.join(".guide");
    empty(home)?;
    empty(&saved)?;
    link(&workspace.root, &home.join("forrest"))?;
    link(workspace.root.join("crates"), &home.join("crates"))?;
    write(&home.join("Cargo.toml"), PACKAGES.as_bytes())?;
    let lock = fs::read(workspace.root.join("Cargo.lock")).map_err(|error| format!("Cargo.lock: {error}"))?;
    write(&home.join("Cargo.lock"), &lock)?;
    let mut script = PRELUDE.to_owned();
    for (number, block) in blocks.iter().enumerate() {
        match block {
            Block::Program { file, text } => {
                write(&saved.join(number.to_string()), text.as_bytes())?;
                script += &format!("save {number} '{file}'\n");
            }
            Block::Commands(text) => script += &format!("exec >\"$HOME/.guide/{number}\"\n{text}"),
            Block::Printed(_) => {}
            Block::Project(text) => project(workspace, text).map_err(|why| format!("{guide}: {why}"))?,
        }
    }
    write(&saved.join("script"), script.as_bytes())?;
    let mut shell = workspace.command("bash");
    shell.arg(saved.join("script")).current_dir(home).env("HOME", home).env_remove("FORREST_URL");
    // These are where they were, although the home directory is another one.
    for (variable, directory) in [
        ("CARGO_HOME", ".cargo"),
        ("RUSTUP_HOME", ".rustup"),
        ("GOPATH", "go"),
        ("GOCACHE", ".cache/go-build"),
        ("npm_config_cache", ".npm"),
    ] {
        if let (None, Some(real)) = (std::env::var_os(variable), std::env::home_dir()) {
            shell.env(variable, real.join(directory));
        }
    }
    // The steps that build there, `install` and `raft`, do not run at once (`test.rs`).
    shell
        .env("CARGO_TARGET_DIR", workspace.target.join("guides"))
        .env("UNOPTIMIZED", UNOPTIMIZED.join(" "))
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    link(prefix, &home.join(".local"))?;
    workspace::run(&mut shell).map_err(|why| format!("{guide}: {why}"))?;
    for (number, pair) in blocks.windows(2).enumerate() {
        if let [Block::Commands(commands), Block::Printed(expected)] = pair {
            let path = saved.join(number.to_string());
            let printed =
                fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            if printed != *expected {
                return Err(format!("{guide}: expected\n{expected}\nbut got\n{printed}\nfrom\n{commands}"));
            }
        }
    }
    Ok(())
}

/// Demands that the project of CMake, which is built, has these lines.
fn project(workspace: &Workspace, text: &str) -> Result<(), String> {
    let path = workspace.root.join(required::EXAMPLE_CMAKE).join("CMakeLists.txt");
    let whole = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    match text.lines().find(|line| whole.lines().all(|other| other != *line)) {
        None => Ok(()),
        Some(line) => Err(format!("{} has no line {line:?}", path.display())),
    }
}

/// The blocks of a guide, in order.
fn blocks(text: &str) -> Result<Vec<Block<'_>>, String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let text: String = body.iter().flat_map(|line| [line, "\n"]).collect();
        let head = body.first().copied().unwrap_or_default();
        blocks.push(match language {
            "c" | "cpp" | "go" | "java" | "js" | "rust" | "xml" => match file_named(head) {
                Some(file) => Block::Program { file, text },
                None => return Err(format!("a program in {language} begins with {head:?}, not with a comment that has its file name")),
            },
            "sh" => Block::Commands(text),
            "cmake" => Block::Project(text),
            "text" if matches!(blocks.last(), Some(Block::Commands(_))) => Block::Printed(text),
            "text" => return Err("something is printed by no commands".to_owned()),
            other => return Err(format!("a block in {other:?} cannot be tried")),
        });
    }
    Ok(blocks)
}

/// The file name at the beginning of a comment, which a colon ends. It leads nowhere but below the current directory.
fn file_named(line: &str) -> Option<&str> {
    let comment = ["/* ", "// ", "<!-- "].iter().find_map(|mark| line.strip_prefix(mark))?;
    let (file, _) = comment.split_once(':')?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/".contains(letter);
    let is_inside = !file.starts_with('/') && file.split('/').all(|part| part != "..");
    (file.contains('.') && is_inside && file.chars().all(plain)).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_told_apart() {
        let text =
            "# A guide\n```c\n/* a.c: it */\nint x;\n```\nSo:\n```sh\ncc a.c\n```\n```text\nyes\n```\n";
        let program = Block::Program { file: "a.c", text: "/* a.c: it */\nint x;\n".to_owned() };
        let (commands, printed) =
            (Block::Commands("cc a.c\n".to_owned()), Block::Printed("yes\n".to_owned()));
        assert_eq!(blocks(text), Ok(vec![program, commands, printed]));
    }

    #[test]
    fn programs_name_their_files() {
        for (line, file) in [
            ("/* trees.c: stores trees */", Some("trees.c")),
            ("// src/main.rs: stores trees", Some("src/main.rs")),
            ("// a note: of no file", None),
            ("// ../up.rs: elsewhere", None),
            ("// /etc/x.rs: elsewhere", None),
            ("// it's.rs: quoted", None),
            ("int x;", None),
        ] {
            assert_eq!(file_named(line), file, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_tried_is_refused() {
        for text in
            ["```\nx\n```\n", "```c\nint x;\n```\n", "```text\nyes\n```\n", "```rust\nfn x() {}\n```\n"]
        {
            assert!(blocks(text).is_err(), "{text}");
        }
    }

    /// A page as its readers meet it: programs are saved where the commands before them have gone.
    #[test]
    fn a_page_is_followed() {
        let workspace = Workspace::find().expect("this test runs in it");
        let here = workspace.target.join("guide-test");
        let page = |text: &str| {
            let mut workspace = workspace.clone();
            workspace.root = here.clone();
            write(&here.join("Cargo.lock"), b"").expect("it is written");
            write(&here.join("page.md"), text.as_bytes()).expect("it is written");
            follow(&workspace, "page.md", &here.join("home"), &here)
        };
        let text = "```sh\nmkdir place\ncd place\n```\n```rust\n// in/a.rs: it\n```\n\
                    ```sh\ncat in/a.rs\ncargo xtask install --prefix ~/.local\n```\n```text\n// in/a.rs: it\n```\n";
        assert_eq!(page(text), Ok(()));
        let wrong = page("```sh\necho no\n```\n```text\nyes\n```\n").expect_err("it prints something else");
        assert!(wrong.contains("expected\nyes") && wrong.contains("got\nno"), "{wrong}");
        assert!(page("```sh\nfalse\n```\n").is_err());
        assert!(page("```sh\ncargo xtask install --perfix ~/.local\n```\n").is_err());
    }
}
