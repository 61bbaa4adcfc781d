#!/bin/sh
# fetch_sysroot.sh MACHINE: the libraries that mlacheck and the unit tests
# need, for another machine, from Debian's archive into build/sysroot/MACHINE.
# Nothing is installed and apt's own state is not touched. MACHINE is aarch64,
# s390x or ppc64le. Done before: done.
set -eu
cd "$(dirname "$0")/../.."
case ${1-} in
  aarch64) arch=arm64 ;;
  s390x) arch=s390x ;;
  ppc64le) arch=ppc64el ;;
  *) echo "usage: fetch_sysroot.sh aarch64|s390x|ppc64le" >&2 && exit 2 ;;
esac
packages='libcjson-dev libcjson1 libxxhash-dev libxxhash0 check
  libsubunit-dev libsubunit0'
root=$PWD/build/sysroot/$1
[ ! -e "$root/complete" ] || exit 0

work=$PWD/build/sysroot/apt-$1
rm -rf "$root" "$work"
mkdir -p "$root" "$work/lists/partial" "$work/cache/archives/partial"
apt() {
  apt-get -qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" \
    -o APT::Sandbox::User=root -o Dir::State::status=/dev/null \
    -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" "$@"
}
# Sources that lack this machine are no matter; a package that is not to be
# had is.
apt update || true
cd "$work"
# shellcheck disable=SC2086
apt download $packages
for package in *.deb; do
  dpkg-deb -x "$package" "$root"
done
rm -rf "$work"
touch "$root/complete"
