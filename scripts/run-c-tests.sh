#!/usr/bin/env bash
# Runs every C test program below a build folder, and every fuzzing harness with its corpus of tests/fuzz/corpus, one a
# core at a time. Says which failed, with what they wrote, and how many tests and inputs there were. A harness without an
# input fails.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dir=${1:?usage: run-c-tests.sh BUILD_DIR}
dir=${dir#"$PWD"/}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
programs=()
while read -r program; do
    [ -e "${program#"$dir"/}.c" ] && programs+=("$program") # else of a source that is gone
done < <(find "$dir" \( -name '*_test' -o -name '*_fuzz' \) -type f -perm -u+x | sort)
[ ${#programs[@]} -gt 0 ] || { echo "run-c-tests: there are no test programs in $dir; make test PART=c builds them." >&2; exit 2; }

# What a program wrote is in NUMBER.log; that it failed, in NUMBER.failed.
run_one() {
    local number=$1 program=$2 name=${2##*/}
    [[ $name == *_test ]] || set -- "$@" "tests/fuzz/corpus/${name%_fuzz}"
    timeout 300 "$program" "${@:3}" >"$logs/$number.log" 2>&1 || echo "$program" >"$logs/$number.failed"
}
export -f run_one
export logs
for number in "${!programs[@]}"; do
    printf '%s\0%s\0' "$number" "${programs[number]}"
done | xargs -0 -n 2 -P "$(nproc)" bash -c 'run_one "$@"' run_one

passed=0 inputs=0 harnesses=0
failed=()
for number in "${!programs[@]}"; do
    log=$logs/$number.log
    passed=$((passed + $(grep -c '^\[       OK \]' "$log")))
    if [[ ${programs[number]} == *_fuzz ]]; then
        harnesses=$((harnesses + 1))
        inputs=$((inputs + $(tail -n 1 "$log" | grep -oE '^[0-9]+' || echo 0)))
    fi
    if [ -e "$logs/$number.failed" ]; then
        failed+=("${programs[number]}")
        if [[ ${programs[number]} == *_fuzz ]]; then tail -n 30 "$log"; else cat "$log"; fi
    fi
done
echo "C tests: $passed passed in $((${#programs[@]} - harnesses)) programs; $inputs inputs of $harnesses fuzzing harnesses; ${#failed[@]} programs failed"
[ ${#failed[@]} -eq 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
