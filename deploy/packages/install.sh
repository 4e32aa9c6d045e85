#!/bin/sh
# Installs stafette @VERSION@ for one user: the program, its manual pages and completions.
#
#   sh install.sh [--prefix FOLDER] [--base ADDRESS] [--uninstall]
#
# --prefix     where to: FOLDER/bin and FOLDER/share; otherwise ~/.local
# --base       where from: a folder of archives by http, https or file; otherwise the release
# --uninstall  take away what was installed there
#
# What it downloads must have the checksum that is written here. It needs curl or wget, tar and
# sha256sum or shasum, asks for no rights, and changes no settings.
set -eu

version=@VERSION@
base=https://github.com/stafette/stafette/releases/download/v$version
# A checksum and an archive in each line.
archives='
@ARCHIVES@'

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

# The name of this system's archive.
system() {
    case "$(uname -s)/$(uname -m)" in
        Linux/x86_64 | Linux/amd64) cpu=x86_64 system=unknown-linux ;;
        Linux/aarch64 | Linux/arm64) cpu=aarch64 system=unknown-linux ;;
        Darwin/x86_64) cpu=x86_64 system=apple-darwin ;;
        Darwin/arm64) cpu=aarch64 system=apple-darwin ;;
        *) fail "there is no archive for $(uname -s) on $(uname -m)" ;;
    esac
    if [ "$system" = unknown-linux ]; then
        # musl's ldd says its name, and fails.
        case "$(ldd --version 2>&1 || true)" in
            *musl*) system=$system-musl ;;
            *) system=$system-gnu ;;
        esac
    fi
    echo "stafette-$version-$cpu-$system"
}

download() {
    if command -v curl >/dev/null; then
        curl --fail --silent --show-error --location --output "$2" "$1"
    elif command -v wget >/dev/null; then
        wget --quiet --output-document "$2" "$1"
    else
        fail "neither curl nor wget is here"
    fi || fail "$1 cannot be downloaded"
}

checksum() {
    if command -v sha256sum >/dev/null; then
        sha256sum "$1"
    elif command -v shasum >/dev/null; then
        shasum -a 256 "$1"
    else
        fail "neither sha256sum nor shasum is here"
    fi | cut -d ' ' -f 1
}

uninstall() {
    rm -f "$prefix/bin/stafette" "$prefix"/share/man/man1/stafette.1 \
        "$prefix"/share/man/man1/stafette-*.1 \
        "$prefix/share/bash-completion/completions/stafette" \
        "$prefix/share/fish/vendor_completions.d/stafette.fish" \
        "$prefix/share/zsh/site-functions/_stafette" \
        "$prefix/share/systemd/user/stafette@.service"
    rm -rf "$prefix/share/doc/stafette"
    echo "stafette is gone from $prefix; the state of your projects is still where it was"
}

install() {
    name=$(system)
    wanted=$(printf '%s\n' "$archives" | sed -n "s/^\([0-9a-f]*\)  $name\.tar\.gz\$/\1/p")
    [ -n "$wanted" ] || fail "there is no $name in this release"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    echo "downloading $base/$name.tar.gz"
    download "$base/$name.tar.gz" "$scratch/archive.tar.gz"
    got=$(checksum "$scratch/archive.tar.gz")
    [ "$got" = "$wanted" ] || fail "it has the checksum $got, not $wanted: nothing is installed"
    tar -xzf "$scratch/archive.tar.gz" -C "$scratch"
    "$scratch/$name/bin/stafette" --version >/dev/null || fail "it does not run on this machine"
    mkdir -p "$prefix/bin" "$prefix/share"
    cp -R "$scratch/$name/share/." "$prefix/share"
    # A program that runs cannot be written over, but its name can be given to another one.
    cp "$scratch/$name/bin/stafette" "$prefix/bin/.stafette.new"
    mv -f "$prefix/bin/.stafette.new" "$prefix/bin/stafette"
    echo "installed stafette $version in $prefix"
    case ":$PATH:" in
        *":$prefix/bin:"*) echo "try it: stafette demo" ;;
        *) echo "$prefix/bin is not in your PATH; try it: $prefix/bin/stafette demo" ;;
    esac
}

# Everything is in functions, so that half a script does nothing.
main() {
    prefix=${HOME:+$HOME/.local} act=install
    while [ $# -gt 0 ]; do
        case "$1" in
            --prefix | --base)
                [ $# -ge 2 ] || fail "$1 wants a value"
                [ "$1" = --base ] && base=${2%/} || prefix=$2
                shift
                ;;
            --uninstall) act=uninstall ;;
            *) fail "\`$1\` is unknown: sh install.sh [--prefix FOLDER] [--base ADDRESS] [--uninstall]" ;;
        esac
        shift
    done
    [ -n "$prefix" ] || fail "say where to: --prefix FOLDER"
    $act
}

main "$@"
