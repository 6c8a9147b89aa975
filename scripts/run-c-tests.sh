#!/usr/bin/env bash
# Runs every C test program below the given build folder; says which failed, and how many tests there were.
set -u
dir=${1:?usage: run-c-tests.sh BUILD_DIR}
passed=0
failed=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT
mapfile -t programs < <(find "$dir" -name '*_test' -type f -perm -u+x | sort)
[ ${#programs[@]} -gt 0 ] || { echo "run-c-tests: there are no test programs in $dir; make VARIANT=asan c-test-programs builds them." >&2; exit 2; }
for program in "${programs[@]}"; do
    [ -e "${program#"$dir"/}.c" ] || continue # of a source that is gone
    if ! timeout 300 "$program" >"$log" 2>&1; then
        failed+=("$program")
        cat "$log"
    fi
    passed=$((passed + $(grep -c '^\[       OK \]' "$log")))
done
echo "C tests: $passed passed in ${#programs[@]} programs, ${#failed[@]} programs failed"
[ ${#failed[@]} -eq 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
