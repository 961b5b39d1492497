#!/usr/bin/env bash
# Build the core with the address and undefined-behaviour sanitizers, in an environment of its own, and run the tests
# that exercise it. Arguments go to pytest in place of the default choice of tests. Linux and GCC.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CC=${CC:-gcc} CXX=${CXX:-g++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
unset PYTHONPATH

# Debug keeps symbols and assertions; a build directory of its own leaves the usual one alone.
"$work/venv/bin/pip" install ".[test]" --config-settings=build-dir="$work/build" --config-settings=cmake.build-type=Debug \
  --config-settings=cmake.define.COORDWISE_SANITIZE=ON

if [ $# -eq 0 ]; then
  set -- -m "not slow" tests/test_{kernel_reference,rows,transpose,pick,threads,losses,logistic_terms,tables_of_terms,plane,sampling,blocks,group_steps,groups,certificates,svmlight,linalg_spd,sparse_models,mixtures,custom,minimize_compiled}.py
fi

# Python itself is not instrumented, so the runtime must come first; and with it libstdc++, where the runtime looks for
# the function that throws exceptions. Python never frees everything, hence no leak detection. With capture by file
# descriptor, pytest would swallow the report of a fault.
LD_PRELOAD="$("$CXX" -print-file-name=libasan.so) $("$CXX" -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
  "$work/venv/bin/pytest" -p no:cacheprovider --capture=sys "$@"
