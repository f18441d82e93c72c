#!/usr/bin/env bash
# Brings the programs that the tests start, from Debian's packages, or names those that are missing (exit status 1).
# Usage: running/equip.sh [docker]    (docker: also what the test of compose.yaml needs)
set -euo pipefail
cd "$(dirname "$0")/.."

# Debian packages by the program that tells whether they are there.
declare -A package_of=(
    [make]=make
    [gcc]=build-essential       # tests and drills of GPUs compile a fake driver
    [chromium]=chromium         # tests of pages in a real browser
    [ip]=iproute2               # tests that start the product in a network of its own
    [python3]=python3
)
if [[ ${1:-} == docker ]]; then
    package_of+=([dockerd]=docker.io [docker-compose]=docker-compose [debootstrap]=debootstrap [busybox]=busybox-static)
fi

missing=()
for program in "${!package_of[@]}"; do
    command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
done
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)

((${#missing[@]})) || exit 0
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "missing for the tests: ${missing[*]} (Debian's names); install them, or run this as root on Debian" >&2
    exit 1
fi
echo "installing Debian's ${missing[*]} for the tests"
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
