#!/usr/bin/env bash
# Runs the README's two commands and its `pip install .`, unchanged, on a fresh Debian 12 root: proof that nothing installed by hand is needed.
# By hand, as root, with debootstrap installed; takes up to an hour.
#
#   tests/fresh_root.sh [FOLDER]     the root is made in FOLDER (default: a temporary one, removed at the end)
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)
root=${1:-}
keep=true
[ -n "$root" ] || { root=$(mktemp -d); keep=false; }

# Folders of this machine that pip takes packages from.
packages=$(python3 -m pip config list | grep -oE "(file://)?/[^' ]+" | sed -E 's,^file://,,; s,/simple/?$,,' | sort -u)

leave() {
  for folder in $packages dev/shm dev/pts dev proc; do
    ! mountpoint -q "$root/$folder" || umount --lazy "$root/$folder"
  done
  $keep || rm -rf --one-file-system "$root"  # Should something still be mounted there.
}
trap leave EXIT

if [ ! -x "$root/bin/bash" ]; then
  debootstrap --variant=minbase bookworm "$root" http://deb.debian.org/debian
fi
mkdir -p "$root/dev" "$root/proc"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev"
mkdir -p "$root/dev/shm"

# How this machine reaches its package mirrors, and nothing else of it.
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
for file in /etc/ssl/certs/ca-certificates.crt /etc/pip.conf /etc/hosts; do
  [ -f "$file" ] && install -D "$file" "$root$file"
done
for folder in /etc/apt/apt.conf.d /etc/xdg/pip /root/.config/pip /root/.pip /usr/local/share/ca-certificates; do
  [ -d "$folder" ] && mkdir -p "$root$folder" && cp -rL "$folder/." "$root$folder/"
done
for folder in $packages; do
  [ -d "$folder" ] && mkdir -p "$root$folder" && mount --bind -o ro "$folder" "$root$folder"
done
grep -q updates "$root/etc/apt/sources.list" || cat >"$root/etc/apt/sources.list" <<LIST
deb http://deb.debian.org/debian bookworm main
deb http://deb.debian.org/debian bookworm-updates main
deb http://deb.debian.org/debian-security bookworm-security main
LIST

rm -rf "$root/mooncake" && mkdir "$root/mooncake"
git -C "$repository" archive HEAD | tar -x -C "$root/mooncake"

in_root() { env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 $(env | grep -iE '^(https?_proxy|no_proxy|pip_|ssl_cert)' || true) \
  chroot "$root" bash -c "cd /mooncake && $1"; }
in_root ./quickstart.sh
in_root ./test.sh
in_root ./quickstart.sh  # The second run is quick.
# Cold: from the sources alone, as whoever installs into an environment of theirs builds it.
in_root "rm -rf build .venv && python3 -m venv /root/cold && /root/cold/bin/pip install . &&
  cd / && /root/cold/bin/python -c 'import mooncake.engine, mooncake.store' && /root/cold/bin/mooncake_master --version"
echo "fresh root: both commands passed, and pip install . from the sources alone"
