# shellcheck shell=bash
# Sourced by ./run and ./tests/run: what both ask of the machine before they build.

die() {
    printf '%s\n' "$*" >&2
    exit 1
}

# quietly CMD…: says nothing when it ends well; else everything that it said, and its exit code.
quietly() {
    local log status=0
    log=$(mktemp)
    "$@" >"$log" 2>&1 || status=$?
    [ "$status" -eq 0 ] || cat "$log" >&2
    rm -f "$log"
    return "$status"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

apt_get() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"
}

# need_packages PACKAGE…: installs them, or says what is missing where that is not possible.
need_packages() {
    [ $# -gt 0 ] || return 0
    command -v apt-get >/dev/null || die "These are needed, and there is no apt-get here to install them: $*. Install them and try again."
    [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
        die "These packages are needed, and neither root nor sudo is at hand to install them: $*. As root: apt-get install $*"
    echo "Installing $* …" >&2
    quietly apt_get update || die "apt-get update failed."
    quietly apt_get install -y --no-install-recommends "$@" || die "apt-get could not install: $*"
}

# Rust's own folder may not be on the PATH of a shell that is older than it.
need_rust() {
    command -v cargo >/dev/null || PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    command -v cargo >/dev/null || die "Rust is needed: install it with rustup, then try again."
}

# What a build needs beside Rust: a linker, and for the C and C++ inside some crates their compilers, make and cmake.
need_build() {
    local missing=()
    need_rust
    command -v cc >/dev/null || missing+=(gcc libc6-dev)
    command -v c++ >/dev/null || missing+=(g++)
    command -v make >/dev/null || missing+=(make)
    command -v cmake >/dev/null || missing+=(cmake)
    need_packages "${missing[@]}"
}

# target_dir MANIFEST: where cargo puts what it builds, whoever decides it.
target_dir() {
    cargo metadata --quiet --format-version 1 --no-deps --manifest-path "$1" | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}
