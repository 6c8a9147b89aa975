#!/usr/bin/env bash
# Writes a C file to stdout: the table of all that one folder registers, and the functions PREFIXfind() by name and
# PREFIXname() by number, which return NULL if there is none. Registered is whatever a source file of the folder defines
# at the beginning of a line as `const TYPE PREFIXname`; its .name is "name", in which `_` may be `-`. FIRST comes first,
# the others follow in alphabetical order, so that the table does not depend on the machine.
set -euo pipefail
[ $# -eq 6 ] || { echo "usage: registry.sh FOLDER HEADER TYPE PREFIX TABLE FIRST" >&2; exit 2; }
folder=$1 header=$2 type=$3 prefix=$4 table=$5 first=$6
export LC_ALL=C
mapfile -t files < <(find "$folder" -maxdepth 1 -name '*.c' ! -name '*_test.c' | sort)
names=$(awk -v type="$type" -v prefix="$prefix" '
    function refuse(line, words) {
        printf "%s:%d: %s\n", FILENAME, line, words > "/dev/stderr"
        is_wrong = 1
    }
    FNR == 1 { name = "" }
    $0 ~ "(^|[^A-Za-z0-9_])" type " +" prefix "[A-Za-z0-9_]+ *(=|$)" && !/^extern / {
        name = $0
        if ($0 ~ "^const " type " " prefix "[a-z0-9_]+ *=")
            sub(/ *=.*/, "", name)
        else {
            name = ""
            refuse(FNR, "begin the line with `const " type " " prefix "NAME =`, NAME of a-z 0-9 _; the build looks for it.")
        }
        sub(".*" prefix, "", name)
        line = FNR
        text = ""
    }
    name != "" {
        text = text $0
        if (!/;/)
            next
        written = match(text, /\.name *= *"[^"]*"/) ? substr(text, RSTART, RLENGTH) : "none"
        gsub(/.*= *"|"/, "", written)
        plain = written
        gsub(/-/, "_", plain)
        if (plain == name)
            print name
        else
            refuse(line, prefix name " takes .name = \"" name "\", and has " (written == "none" ? written : "\"" written "\"") ".")
        name = ""
    }
    END { exit is_wrong }' "${files[@]}") || exit 1
mapfile -t names < <(sort <<< "$names")
twice=$(printf '%s\n' "${names[@]}" | uniq -d)
[ -z "$twice" ] || { echo "registry.sh: $folder defines $prefix$twice twice." >&2; exit 1; }
[[ " ${names[*]} " == *" $first "* ]] || { echo "registry.sh: $folder does not define $prefix$first." >&2; exit 1; }

echo "/* Made by scripts/registry.sh from the definitions in $folder. */"
echo "#include \"$header\""
echo
echo "#include <string.h>"
echo
for name in "${names[@]}"; do echo "extern const $type $prefix$name;"; done
echo
echo "const $type *const $table[] = {"
echo "    &$prefix$first,"
for name in "${names[@]}"; do [ "$name" = "$first" ] || echo "    &$prefix$name,"; done
echo "    NULL,"
echo "};"
cat << END

const $type *${prefix}find(const char *name) {
    for (size_t i = 0; name && $table[i]; i++)
        if (strcmp($table[i]->name, name) == 0)
            return $table[i];
    return NULL;
}

const char *${prefix}name(size_t i) {
    for (size_t k = 0; $table[k]; k++)
        if (k == i)
            return $table[k]->name;
    return NULL;
}
END
