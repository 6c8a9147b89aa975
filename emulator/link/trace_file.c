/* Reads traces for the drivers of links. The only file of this folder that uses the file system. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>

#include "base/error.h"
#include "base/numbers.h"
#include "base/text_file.h"
#include "emulator/link/trace.h"

bool link_trace_read_file(const char *path, char **data, size_t *length, char *error, size_t error_size) {
    *data = file_read_at(path, SIZE_MAX, length);
    return *data || error_set(error, error_size, "%s: cannot read the trace: %s", path, file_problem(errno));
}

static bool hash(const char *data, size_t length, char hex[65]) {
    unsigned char digest[32];
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, data, length, digest) != 0)
        return false;
    hex_write(digest, sizeof digest, hex);
    return true;
}

/* Texts such as "0mbps" or "5000gbps" are meant as rates, not as file names. */
static bool looks_like_rate(const char *text) {
    const size_t length = strlen(text);
    return text[0] >= '0' && text[0] <= '9' && length > 3 && strcmp(text + length - 3, "bps") == 0;
}

bool link_trace_load(link_trace *trace, char sha256[65], const char *given, const char *file, char *error,
                     size_t error_size) {
    uint64_t rate;
    char *data = NULL;
    size_t length = strlen(given);
    const bool is_rate = link_trace_parse_rate(given, &rate);
    bool ok = is_rate || link_trace_read_file(file, &data, &length, error, error_size);
    if (!ok && looks_like_rate(given))
        return error_set(error, error_size, "%s: a rate is from 1bps to 1000gbps", given);
    if (is_rate)
        *trace = link_trace_constant(rate);
    else
        ok = ok && link_trace_parse(trace, given, data, length, error, error_size);
    if (ok && !hash(is_rate ? given : data, length, sha256)) {
        link_trace_free(trace);
        ok = error_set(error, error_size, "%s: cannot compute the SHA-256 of the trace", given);
    }
    free(data);
    return ok;
}
