#!/bin/sh
# Uses an installed Forrest as its users do, in a system that has nothing else of it: the commands, the libraries, and
# with a C compiler also headers and pkg-config files. Run it in a clean root, as the workflow `packages` does.
set -eu

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

expect() {
    if [ "$1" != "$2" ]; then
        echo "error: expected '$1', got '$2'" >&2
        exit 1
    fi
}

forrest --version
forrest --quiet --db trees set oak 'Quercus robur' --sync
expect 'Quercus robur' "$(forrest --db trees get oak)"
expect 1 "$(forrest --db trees count)"
forrest --quiet verify trees
forrest --quiet --db memory: bench fillrandom,readrandom -n 1000 >figures
test -s figures
if command -v kvbench >/dev/null; then
    kvbench --version
fi

# The files beside the programs lie where their readers look.
prefix=$(dirname "$(dirname "$(command -v forrest)")")
ls "$prefix"/share/man/man1/forrest.1* >/dev/null # compressed by some
test -f "$prefix/share/bash-completion/completions/forrest"

if command -v cc >/dev/null && command -v pkg-config >/dev/null; then
    cat >trees.c <<'PROGRAM'
#include <forrest.h>
#include <stdio.h>

int main(void) {
    forrest_db *db;
    char value[100];
    size_t bytes;
    if (forrest_open("trees", &db) != FORREST_OK ||
        forrest_get_into(db, "oak", 3, value, sizeof value, &bytes) != FORREST_OK) {
        fprintf(stderr, "%s\n", forrest_error_message());
        return 1;
    }
    printf("%.*s\n", (int)bytes, value);
    return forrest_close(db);
}
PROGRAM
    # shellcheck disable=SC2046
    cc trees.c $(pkg-config --cflags --libs forrest) -o trees-in-c
    expect 'Quercus robur' "$(./trees-in-c)"
    echo "used from C"
else
    echo "no C compiler or pkg-config here: the libraries were not used"
fi
echo "all is well"
