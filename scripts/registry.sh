#!/usr/bin/env bash
# Writes a C file to stdout: the table of all that one folder registers. Registered is whatever a source file of the
# folder defines at the beginning of a line as `const TYPE PREFIXname`. FIRST comes first, the others follow in
# alphabetical order, so that the table does not depend on the machine.
set -euo pipefail
[ $# -eq 6 ] || { echo "usage: registry.sh FOLDER HEADER TYPE PREFIX TABLE FIRST" >&2; exit 2; }
folder=$1 header=$2 type=$3 prefix=$4 table=$5 first=$6
export LC_ALL=C
mapfile -t names < <(find "$folder" -maxdepth 1 -name '*.c' ! -name '*_test.c' \
    -exec sed -n "s/^const ${type} ${prefix}\([a-z0-9_]*\) *=.*/\1/p" {} + | sort)
twice=$(printf '%s\n' "${names[@]}" | uniq -d)
[ -z "$twice" ] || { echo "registry.sh: $folder defines $prefix$twice twice." >&2; exit 1; }
[[ " ${names[*]} " == *" $first "* ]] || { echo "registry.sh: $folder does not define $prefix$first." >&2; exit 1; }

echo "/* Made by scripts/registry.sh from the definitions in $folder. */"
echo "#include \"$header\""
echo
for name in "${names[@]}"; do echo "extern const $type $prefix$name;"; done
echo
echo "const $type *const $table[] = {"
echo "    &$prefix$first,"
for name in "${names[@]}"; do [ "$name" = "$first" ] || echo "    &$prefix$name,"; done
echo "    NULL,"
echo "};"
