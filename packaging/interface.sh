#!/bin/sh
# Compares the public interfaces of the published libraries with those of the last release, and fails if a program that
# uses them may no longer compile while the version says that it does. An argument is the revision to compare with
# instead. It needs rustup and git; the checker is compiled if it is not there in this version.
set -eu
cd "$(dirname "$0")/.."

# Together, because rustdoc's format changes with Rust, and the checker reads some versions of it.
rust=1.95.0
checker=0.51.0

# Before this commit: that of a release would be compared with itself.
last=${1:-$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || true)}
if [ -z "$last" ]; then
    # Tags do not come with every clone. The commits of releases do, and docs/releasing.md says what they are called.
    last=$(git log -1 --format=%H --extended-regexp --grep='^Release [0-9]+\.[0-9]+\.[0-9]+$' 'HEAD^@')
    [ -z "$last" ] || git log -1 --format='there is no tag v*: compared with "%s", %H' "$last"
fi
if [ -z "$last" ]; then
    why='there is neither a tag v* nor a commit "Release VERSION" before this one in this clone'
    if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
        why="$why, which is shallow (git fetch --unshallow --tags brings the rest)"
    fi
    echo "skipped: $why, so no release to compare with"
    exit 0
fi
# Below, a revision that is not there would look like one that has no library.
if ! git rev-parse -q --verify "$last^{commit}" >/dev/null; then
    echo "there is no revision $last to compare with" >&2
    exit 2
fi

libraries=
for manifest in $(grep -lx 'publish.workspace = true' crates/*/Cargo.toml); do
    name=$(sed -n 's/^name = "\(.*\)"$/\1/p' "$manifest" | head -n 1)
    # The harness of the models is for tests, and a command has no interface.
    if [ "$name" = forrest-models ] || [ ! -e "$(dirname "$manifest")/src/lib.rs" ]; then
        continue
    fi
    if git grep -q "^name = \"$name\"$" "$last" -- 'crates/*/Cargo.toml'; then
        libraries="$libraries --package $name"
    else
        echo "$name is new since $last"
    fi
done
if [ -z "$libraries" ]; then
    echo "skipped: $last has none of these libraries"
    exit 0
fi

export RUSTUP_TOOLCHAIN=$rust
rustup toolchain install --profile minimal "$rust"
if [ "$(cargo semver-checks --version 2>/dev/null)" != "cargo-semver-checks $checker" ]; then
    cargo install cargo-semver-checks --locked --version "=$checker"
fi
# shellcheck disable=SC2086 # each library is two words
cargo semver-checks --baseline-rev "$last" $libraries
