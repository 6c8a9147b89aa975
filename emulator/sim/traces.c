/* Traces, as a run loads them, and as a process keeps them for the runs that begin as copies of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <gnutls/crypto.h>

#include "base/error.h"
#include "emulator/sim/sim.h"

#define MAX_KEPT 64

typedef struct {
    char *file;
    struct stat status; /* of the file when it was read */
    sim_trace trace;
} kept_trace;

static kept_trace kept[MAX_KEPT];
static size_t kept_count;

static bool hash(const char *data, size_t length, char hex[65]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[32];
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, data, length, digest) != 0)
        return false;
    for (size_t i = 0; i < sizeof digest; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[64] = '\0';
    return true;
}

static bool read_trace(sim_trace *trace, const char *file, char *error) {
    char *data;
    size_t length;
    if (!link_trace_read_file(file, &data, &length, error, SIM_ERROR_BYTES / 2))
        return false;
    bool ok = link_trace_parse(&trace->trace, file, data, length, error, SIM_ERROR_BYTES / 2);
    if (ok && !hash(data, length, trace->sha256)) {
        link_trace_free(&trace->trace);
        snprintf(error, SIM_ERROR_BYTES / 2, "cannot compute the SHA-256 of %.200s", file);
        ok = false;
    }
    free(data);
    return ok;
}

/* ---- traces that are kept ---- */

static bool is_same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* NULL: it is not kept, or has changed since. */
static const sim_trace *find_kept(const char *file) {
    struct stat status;
    for (size_t i = 0; i < kept_count; i++)
        if (strcmp(kept[i].file, file) == 0)
            return stat(file, &status) == 0 && is_same(&status, &kept[i].status) ? &kept[i].trace : NULL;
    return NULL;
}

static void keep(const char *file) {
    uint64_t rate;
    char error[SIM_ERROR_BYTES / 2];
    kept_trace *k = &kept[kept_count];
    for (size_t i = 0; i < kept_count; i++)
        if (strcmp(kept[i].file, file) == 0)
            return;
    if (kept_count == MAX_KEPT || link_trace_parse_rate(file, &rate) || stat(file, &k->status) != 0 ||
        !S_ISREG(k->status.st_mode))
        return;
    k->file = strdup(file);
    if (k->file && read_trace(&k->trace, file, error))
        kept_count++;
    else
        free(k->file);
}

void sim_traces_keep(const sim_job *job) {
    for (size_t i = 0; i < job->path_count; i++)
        for (size_t way = 0; way < 2; way++)
            keep(link_settings_trace(&job->paths[i].settings[way]));
    for (size_t i = 0; i < job->bottleneck_count; i++)
        for (size_t way = 0; way < 2; way++)
            keep(job->bottlenecks[i].settings[way].trace);
}

/* ---- traces of a run ---- */

const sim_trace *sim_trace_load(simulation *sim, const char *file, char *error) {
    for (size_t i = 0; i < sim->trace_count; i++)
        if (strcmp(sim->traces[i].file, file) == 0)
            return &sim->traces[i];
    sim_trace *trace = &sim->traces[sim->trace_count];
    const sim_trace *of_process = find_kept(file);
    uint64_t rate;
    if (of_process) {
        *trace = *of_process;
    } else if (!link_trace_parse_rate(file, &rate)) {
        if (!read_trace(trace, file, error))
            return NULL;
    } else {
        trace->trace = link_trace_constant(rate);
        if (!hash(file, strlen(file), trace->sha256))
            return error_null(error, SIM_ERROR_BYTES / 2, "cannot compute a SHA-256");
    }
    trace->is_kept = of_process;
    trace->file = file;
    sim->trace_count++;
    return trace;
}

void sim_traces_free(simulation *sim) {
    for (size_t i = 0; i < sim->trace_count; i++)
        if (!sim->traces[i].is_kept)
            link_trace_free(&sim->traces[i].trace);
}
