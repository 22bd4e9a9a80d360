#!/usr/bin/env bash
# aarch64 under an emulator, on a Debian machine of another kind: builds for it, runs the laws of the code generator (kernels
# are compiled, loaded and run; their bits are those of the interpreter), then compares what programs print with the build for
# this machine. Takes about half an hour; what it installs and makes lies in target/aarch64 but for the tools.
#
#   tests/aarch64.sh [PROGRAM.tsr …]    without programs: the examples that need no data, and every program of tests/golden/run
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
here=$PWD/target/aarch64
root=$here/root

sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)
missing=()
for p in qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
    echo "installing ${missing[*]}" >&2
    "${sudo[@]}" apt-get update -qq
    "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
rustup target add "$target" >/dev/null 2>&1 || true

# The libraries of such a machine, in a folder of their own: this machine's list of packages is not touched.
if [ ! -e "$root/usr/lib/aarch64-linux-gnu/libLLVM.so.22.1" ]; then
    mkdir -p "$here"/apt/{lists,archives}/partial "$root"
    : >"$here/apt/status"
    arm64=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root
        -o Dir::State::lists="$here/apt/lists" -o Dir::State::status="$here/apt/status"
        -o Dir::Cache::archives="$here/apt/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
        -o Debug::NoLocking=1)
    "${arm64[@]}" update
    "${arm64[@]}" install --download-only -y --no-install-recommends libllvm22 libgcc-s1 >/dev/null
    for deb in "$here"/apt/archives/*.deb; do dpkg-deb -x "$deb" "$root"; done
    rm -r "$here/apt"
fi

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $root"
cargo build --release --quiet --package tessera
cargo build --release --quiet --package tessera --target "$target"
if [ $# -eq 0 ]; then
    cargo test --release --package tessera-llvm --target "$target"
    # A block of a golden file is a program.
    rm -rf "$here/programs" && mkdir "$here/programs"
    for f in tests/golden/run/*.md; do
        awk -v to="$here/programs/$(basename "$f" .md)" \
            '/^```tessera$/ { n++; on = 1; next } /^```/ { on = 0 } on { print > (to "-" n ".tsr") }' "$f"
    done
    set -- examples/{gpt,fno,kmeans,pca,precision,moe,recursive}.tsr "$here"/programs/*.tsr
fi
mapfile -t programs < <(realpath "$@")

export TESSERA_CACHE=$here/cache NO_COLOR=1
native=$PWD/target/release/tessera
emulated=(qemu-aarch64 -L "$root" "$PWD/target/$target/release/tessera")
# Programs write files.
rm -rf "$here/run" && mkdir "$here/run" && cd "$here/run"
different=0
for f in "${programs[@]}"; do
    status=0
    "$native" run "$f" >"$here/native" 2>&1 </dev/null || status=$?
    echo "exit $status" >>"$here/native"
    status=0
    "${emulated[@]}" run "$f" >"$here/emulated" 2>&1 </dev/null || status=$?
    echo "exit $status" >>"$here/emulated"
    if ! cmp -s "$here/native" "$here/emulated"; then
        different=$((different + 1))
        echo "$f: aarch64 (>) prints something else"
        diff "$here/native" "$here/emulated" | head -n 6 || true
    fi
done
echo "$((${#programs[@]} - different)) passed, $different failed"
[ "$different" -eq 0 ]
