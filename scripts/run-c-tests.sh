#!/usr/bin/env bash
# Runs every C test program below the given build folder, one a core at a time; says which failed, with what they wrote,
# and how many tests there were.
set -u
dir=${1:?usage: run-c-tests.sh BUILD_DIR}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
programs=()
while read -r program; do
    [ -e "${program#"$dir"/}.c" ] && programs+=("$program") # else of a source that is gone
done < <(find "$dir" -name '*_test' -type f -perm -u+x | sort)
[ ${#programs[@]} -gt 0 ] || { echo "run-c-tests: there are no test programs in $dir; make VARIANT=asan c-test-programs builds them." >&2; exit 2; }

# What a program wrote is in NUMBER.log; that it failed, in NUMBER.failed.
run_one() {
    local number=$1 program=$2
    timeout 300 "$program" >"$logs/$number.log" 2>&1 || echo "$program" >"$logs/$number.failed"
}
export -f run_one
export logs
for number in "${!programs[@]}"; do
    printf '%s\0%s\0' "$number" "${programs[number]}"
done | xargs -0 -n 2 -P "$(nproc)" bash -c 'run_one "$@"' run_one

passed=0
failed=()
for number in "${!programs[@]}"; do
    passed=$((passed + $(grep -c '^\[       OK \]' "$logs/$number.log")))
    if [ -e "$logs/$number.failed" ]; then
        failed+=("${programs[number]}")
        cat "$logs/$number.log"
    fi
done
echo "C tests: $passed passed in ${#programs[@]} programs, ${#failed[@]} programs failed"
[ ${#failed[@]} -eq 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
