#!/bin/sh
# Builds every package of this checkout, installs each in a clean Debian that has no Rust and nothing else of Forrest,
# and uses it there: the Debian package, the archive, the package for Arch, and the wheel. The crates are compiled from
# their own packages. The workflow `packages` does the same, and in Arch Linux and Ubuntu too; only there the PKGBUILD
# that builds from source is tried.
#
# As root on Debian, with debootstrap (which apt-get installs); the clean systems come from Debian's mirror. It builds
# for half an hour or more, most of it the wheels, which `cargo xtask wheels` tests on both processors.
set -eu
cd "$(dirname "$0")/.."

suite=bookworm
mirror=http://deb.debian.org/debian
target=${CARGO_TARGET_DIR:-target}
# Packages of other versions may be beside those that are made here.
version=$(sed -n '/^\[workspace.package\]$/,/^version = / s/^version = "\(.*\)"$/\1/p' Cargo.toml)
mkdir -p "$target/clean"
clean=$(cd "$target/clean" && pwd)
# What the packages are tried with, beside a system of the fewest packages.
tools=gcc,libc6-dev,pkg-config,python3,python3-venv,fakeroot,file,libarchive-tools,makepkg,pacman-package-manager,zstd

command -v debootstrap >/dev/null || apt-get install -y --no-install-recommends debootstrap

# system NAME [PACKAGES]: a clean system, kept for the next time.
system() {
    [ -e "$clean/$1/made" ] && return
    rm -rf "${clean:?}/$1"
    debootstrap --variant=minbase ${2:+"--include=$2"} "$suite" "$clean/$1" "$mirror"
    touch "$clean/$1/made"
}

# Fails if a command is there. A plain "! command" would not: set -e takes no notice of it.
absent='absent() { if command -v "$1"; then exit 1; fi; }'

# try SYSTEM COMMANDS FILES...: a copy of the system with the files, in which the commands run.
try() {
    root=$clean/tried
    rm -rf "${root:?}"
    cp -a "$clean/$1" "$root"
    commands=$2
    shift 2
    cp -r "$@" packaging/try.sh "$root/tmp/"
    ln -sfn /proc/self/fd "$root/dev/fd"
    # With a /proc of its own, which goes with the commands.
    unshare --fork --pid --mount-proc="$root/proc" chroot "$root" sh -euc "export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C; cd /tmp; $absent; absent cargo; $commands"
    rm -rf "${root:?}"
    tried="$tried
tried: $*"
}
tried=

cargo xtask package
cargo xtask wheels
cargo xtask test --full packages

system plain
system tools "$tools"
packages=$target/package
for in in plain tools; do
    try $in 'dpkg -i forrest_*.deb; ./try.sh; dpkg -r forrest; absent forrest' "$packages/forrest_${version}_"*.deb
    try $in 'tar -xzf forrest-*.tar.gz -C /; ldconfig; ./try.sh' "$packages/forrest-$version-"*.tar.gz
done
# makepkg refuses to run as root, and pacman finds no mounts here whose space it could check.
try tools 'useradd -m builder; chown -R builder arch; su builder -c "cd arch && makepkg --nodeps --noconfirm"
    sed -i "/^CheckSpace/d" /etc/pacman.conf
    pacman -U --noconfirm --nodeps --nodeps arch/*.pkg.tar.*; ./try.sh; pacman -R --noconfirm forrest
    absent forrest' "$packages/arch"
awk '/^```python$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md >"$clean/trees.py"
try tools 'python3 -m venv venv; venv/bin/pip install --no-index ./*.whl; venv/bin/python trees.py | grep ash' \
    "$target/python-wheels/forrest_db-$version-"*"$(uname -m).whl" "$clean/trees.py"
echo "$tried"
echo "and the crates, from their packages"
