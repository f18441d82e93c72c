#!/bin/sh
# Makes .venv and installs what pyproject.toml pins, or says what this machine lacks; the Makefile runs it when needed.
# Usage: running/setup.sh [dev]    (dev: also what tests and checks need)
set -eu
cd "$(dirname "$0")/.."

refuse() {
    printf '\n%s\n' "$*" >&2
    exit 1
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

choose_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if is_new_enough "$candidate"; then
            python=$candidate
            return
        fi
    done
    refuse "Servewatch needs Python 3.11 or newer; ${PYTHON:-python3} is $("${PYTHON:-python3}" --version 2>&1 || true)." \
        "Install one (Debian 12: apt-get install python3 python3-venv), or name it: make setup PYTHON=/path/to/python3.11"
}

choose_python
"$python" -c 'import ensurepip, venv' 2>/dev/null || refuse \
    "$python cannot make virtual environments: Debian keeps that in a package of its own." \
    "Install it: apt-get install python3-venv"

if ! .venv/bin/python -c '' 2>/dev/null; then
    echo "making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
fi
extra=${1:+[$1]}
echo "installing the Python packages that pyproject.toml and constraints.txt pin into .venv"
.venv/bin/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable ".$extra"
touch .venv/.ready ${1:+".venv/.ready-$1"}
