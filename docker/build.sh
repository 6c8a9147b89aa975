#!/usr/bin/env bash
# Builds the images railyard/TARGET on the base image that is named. `make docker` calls it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() {
    printf 'docker: %s\n' "$1" >&2
    exit 2
}

BASE=${1:?usage: docker/build.sh BASE TARGET...}
shift
[ $# -gt 0 ] || die "IMAGE names no image; give client, server, tool or interop."
command -v docker >/dev/null || die "the program 'docker' is not there; install the Debian package docker.io."
docker info >/dev/null 2>&1 ||
    die "no Docker engine answers this user (group docker, or root); start one (dockerd), or name its socket with DOCKER_HOST."
# The engine's own builder is enough, and is there without a plugin.
docker buildx version >/dev/null 2>&1 || export DOCKER_BUILDKIT=0
command -v python3 >/dev/null || die "the program 'python3' is not there; install the Debian package python3."
revision=$(python3 -c 'from railyard.base.provenance import git_state
state = git_state()
print(*filter(None, (state["revision"], state["dirty"] and "with changes")))')
id=$(docker image inspect --format '{{.Id}}' "$BASE" 2>/dev/null || true)
log=$(mktemp -t railyard-docker.XXXXXX)
trap 'rm -f "$log"' EXIT
for image; do
    # A folder here with a Dockerfile of its own, or a target of the one for all.
    recipe=(--file docker/Dockerfile --target "$image" --build-arg "PACKAGES=${PACKAGES:-}")
    [ ! -d "docker/$image" ] || recipe=(--file "docker/$image/Dockerfile" --build-arg "BUILD=$BASE")
    if ! docker build "${recipe[@]}" --network "${RAILYARD_BUILD_NETWORK:-default}" --build-arg "BASE=$BASE" \
        --label "railyard.base=$BASE${id:+ $id}" --label "railyard.revision=$revision" --tag "railyard/$image" . >"$log" 2>&1; then
        tail -n 25 "$log" >&2
        die "the image railyard/$image could not be built; see above."
    fi
    echo "docker: railyard/$image is $(docker image inspect --format '{{.Id}} ({{.Size}} bytes)' "railyard/$image")"
done
