#!/usr/bin/env bash
# Compiles judge-models for ARM (aarch64) and runs its unit tests, parity with transformers among them, on an emulated processor.
#
#     scripts/arm/test.sh ROOT [ARGUMENTS OF THE TEST PROGRAM]
#
# ROOT is a folder outside of the repository for a small Debian system with a compiler, the target's library and QEMU. The first run
# makes it, with debootstrap and the network; later ones use it. It grows to some 4 GB. Needs root, for chroot; Linux on x86-64.
# The folder's compiler is Debian's, not the one of this checkout: what is tested is the code, not the toolchain.
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
root=$(cd "$1" && pwd)
shift
checkout=$(cd "$(dirname "$0")/../.." && pwd)

if [ ! -e "$root/made" ]; then
    debootstrap --variant=minbase sid "$root"
    # A mirror that is some days behind is good enough here.
    echo 'Acquire::Check-Valid-Until "false";' > "$root/etc/apt/apt.conf.d/99mirror"
    cp /etc/resolv.conf "$root/etc/"
    chroot "$root" dpkg --add-architecture arm64
    chroot "$root" apt-get update -q
    DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install -y -q --no-install-recommends \
        ca-certificates cargo rustc libstd-rust-dev:arm64 gcc g++ gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user
    # What this machine trusts, where registries are behind a proxy of its own.
    [ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    mkdir -p "$root/checkout"
    touch "$root/made"
fi

# Mounts of this process alone: they end with it.
export root checkout
exec unshare --mount bash -euc '
    mount --bind "$checkout" "$root/checkout"
    mount -t proc proc "$root/proc"
    exec chroot "$root" env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 CARGO_TARGET_DIR=/target CARGO_INCREMENTAL=0 \
        CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0 \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
        cargo test --locked --manifest-path /checkout/Cargo.toml --target aarch64-unknown-linux-gnu -p judge-models --lib -- "$@"
' bash "$@"
