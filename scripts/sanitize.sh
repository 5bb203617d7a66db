#!/usr/bin/env bash
# Run the tests of the compiled kernels in libraries that watch themselves:
#   scripts/sanitize.sh address   reads and writes out of bounds, leaks of the kernels, undefined behaviour
#   scripts/sanitize.sh thread    races between the kernels' threads
# PYTHON names the interpreter that has the tests' packages.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-address}
python=$(command -v "${PYTHON:-python}")
python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")
case $kind in
    address) flags="-fsanitize=address,undefined -fno-sanitize-recover=undefined" runtime=libasan.so ;;
    thread) flags="-fsanitize=thread" runtime=libtsan.so ;;
    *) echo "address or thread, not $kind" >&2; exit 2 ;;
esac
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r src tests pyproject.toml conftest.py "$copy"
folder=$copy/src/calibrant/kernels/cpp
rm -f "$folder"/*.kernels
build() {
    g++ -shared -fPIC -std=c++17 -O1 -g -ffp-contract=off -fno-math-errno -Wall -Wextra -Werror -Wno-psabi -pthread $flags "${@:2}" \
        "$folder/$1.cpp" -o "$folder/$1.kernels"
}
build plain
# Some lines are for large registers alone, the others are the same at every level. GCC's own instructions of theirs
# begin with values that are not set.
[ "$(uname -m)" != x86_64 ] || build avx512 -mfma -mavx512f -mavx512dq -mavx512bw -mavx512vl -Wno-maybe-uninitialized
cd "$copy"
# Python's own memory is not looked at, and its interpreter was not built to be watched.
LD_PRELOAD="$(g++ -print-file-name=$runtime) $(g++ -print-file-name=libstdc++.so.6)" \
    ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS="halt_on_error=1 report_signal_unsafe=0" OMP_NUM_THREADS=2 \
    OPENBLAS_NUM_THREADS=1 PYTHONPATH=src "$python" -m pytest -q -p no:cacheprovider -n 0 -x -s -m "not slow" \
    tests/test_native.py tests/test_kernels.py -k "numpy or counted or threads or floats or (plain_loops and native)"
