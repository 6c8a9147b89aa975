#!/usr/bin/env bash
# What `make fuzz` does with the harnesses of tests/fuzz/: docs/howto/fuzz.md.
#   fuzz.sh run ONLY SECONDS RUNS   fuzzes each harness, or one, for so long or so many runs; -1: no limit
#   fuzz.sh merge ONLY              takes what was found into tests/fuzz/corpus, as few inputs as reach the same code
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
MOST_FILES=300

die() {
    printf 'fuzz: %s\n' "$1" >&2
    exit 2
}

# The harnesses by name: all, or the one that is asked for.
harnesses() {
    local source name found=0
    for source in tests/fuzz/*_fuzz.c; do
        name=$(basename "$source" _fuzz.c)
        [ -z "${1:-}" ] || [ "$1" = "$name" ] || continue
        printf '%s\n' "$name"
        found=1
    done
    [ $found = 1 ] || die "there is no harness '$1'; there are: $(basename -s _fuzz.c -a tests/fuzz/*_fuzz.c | tr '\n' ' ')"
}

# Less memory of what was freed, and shorter stacks of where: several times the speed.
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=16:malloc_context_size=5}

fuzzer_of() {
    local program=build/fuzz/tests/fuzz/${1}_fuzz
    [ -x "$program" ] || die "$program is missing; make VARIANT=fuzz fuzz-programs builds it."
    printf '%s' "$program"
}

run() {
    local only=$1 seconds=$2 runs=$3 failed=() name program place
    local names
    [[ $seconds =~ ^[0-9]+$ && $runs =~ ^(-1|[0-9]+)$ ]] || # libFuzzer reads 1h as 1, and abc as no limit
        die "SECONDS takes a number of seconds, RUNS a number or -1; not SECONDS='$seconds' RUNS='$runs'."
    names=$(harnesses "$only") || exit 2
    for name in $names; do
        program=$(fuzzer_of "$name") || exit 2
        place=build/fuzz/$name
        mkdir -p "$place/found" "$place/crashes" "tests/fuzz/corpus/$name"
        printf 'fuzz: %s\n' "$name"
        if ! nice -n 19 "$program" -max_total_time="$seconds" -runs="$runs" -timeout=20 -rss_limit_mb=2048 -max_len=4096 \
            -print_final_stats=1 -artifact_prefix="$place/crashes/" "$place/found" "tests/fuzz/corpus/$name" \
            >"$place/log" 2>&1; then
            failed+=("$name")
            tail -n 40 "$place/log"
        fi
        grep -E '^stat::number_of_executed_units|^#[0-9]+.*DONE' "$place/log"
    done
    for name in "${failed[@]}"; do
        for input in build/fuzz/"$name"/crashes/*; do
            [ -e "$input" ] && printf 'fuzz: to repeat it: %s %s\n' "build/fuzz/tests/fuzz/${name}_fuzz" "$input" | tee -a "build/fuzz/$name/repeat"
        done
    done
    [ ${#failed[@]} -eq 0 ] || exit 1
}

merge() {
    local name names program place
    names=$(harnesses "$1") || exit 2
    for name in $names; do
        program=$(fuzzer_of "$name") || exit 2
        place=build/fuzz/$name
        mkdir -p "$place/found" "tests/fuzz/corpus/$name"
        rm -rf "$place/merged"
        mkdir "$place/merged"
        "$program" -set_cover_merge=1 -use_counters=0 -timeout=20 -max_len=4096 "$place/merged" "tests/fuzz/corpus/$name" "$place/found" \
            >"$place/merge.log" 2>&1 || die "the merge of $name failed; see $place/merge.log."
        # Regression inputs have names; they stay, whatever else reaches the same code.
        find "tests/fuzz/corpus/$name" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete
        find "$place/merged" -type f -printf '%s %p\n' | sort -n | head -n "$MOST_FILES" | cut -d' ' -f2- |
            xargs -r cp -t "tests/fuzz/corpus/$name"
        printf 'fuzz: %s: %d files, %s\n' "$name" "$(find "tests/fuzz/corpus/$name" -type f | wc -l)" "$(du -sb "tests/fuzz/corpus/$name" | cut -f1) bytes"
    done
}

case ${1:-} in
run) run "${2:-}" "${3:-60}" "${4:--1}" ;;
merge) merge "${2:-}" ;;
*) die "it takes run or merge." ;;
esac
