/* The one file of this folder that touches the file system: reads traces for those who drive the links. */
#include "base/error.h"
#include "base/text_file.h"
#include "emulator/link/cross_profile.h"
#include "emulator/link/delay_trace.h"
#include "emulator/link/light.h"
#include "emulator/link/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool link_trace_read_file(const char *path, char **data, size_t *length, char *error, size_t error_size) {
    *data = file_read_at(path, SIZE_MAX, length);
    return *data || error_set(error, error_size, "%s: cannot read the trace: %s", path, strerror(errno));
}

typedef bool parse_fn(void *into, const char *name, const char *text, size_t length, char *error, size_t error_size);

static bool load(parse_fn *parse, void *into, const char *path, char *error, size_t error_size) {
    char *data;
    size_t length;
    if (!link_trace_read_file(path, &data, &length, error, error_size))
        return false;
    bool good = parse(into, path, data, length, error, error_size);
    free(data);
    return good;
}

static bool parse_delay(void *into, const char *name, const char *text, size_t length, char *error, size_t error_size) {
    return link_delay_trace_parse(into, name, text, length, error, error_size);
}

static bool parse_cross(void *into, const char *name, const char *text, size_t length, char *error, size_t error_size) {
    return link_cross_profile_parse(into, name, text, length, error, error_size);
}

static bool parse_light(void *into, const char *name, const char *text, size_t length, char *error, size_t error_size) {
    return link_light_trace_parse(into, name, text, length, error, error_size);
}

static bool parse_size(void *into, const char *name, const char *text, size_t length, char *error, size_t error_size) {
    return link_size_latency_parse(into, name, text, length, error, error_size);
}

bool link_delay_trace_load(link_delay_trace *trace, const char *path, char *error, size_t error_size) {
    return load(parse_delay, trace, path, error, error_size);
}

bool link_cross_profile_load(link_cross_profile *profile, const char *path, char *error, size_t error_size) {
    return load(parse_cross, profile, path, error, error_size);
}

bool link_light_trace_load(link_light_trace *trace, const char *path, char *error, size_t error_size) {
    return load(parse_light, trace, path, error, error_size);
}

bool link_size_latency_load(link_size_latency *latency, const char *path, char *error, size_t error_size) {
    return load(parse_size, latency, path, error, error_size);
}
