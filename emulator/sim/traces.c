/* Traces of a run, and traces that the process keeps for later runs. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "emulator/sim/sim.h"

#define MAX_KEPT 64

typedef struct {
    char *file;
    struct stat status; /* of the file before it was read */
    sim_trace trace;
} kept_trace;

static kept_trace kept[MAX_KEPT];
static size_t kept_count;

/* ---- traces that are kept ---- */

static bool is_same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Returns NULL if the trace is not kept, or the file has changed since. */
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
    if (k->file && link_trace_load(&k->trace.trace, k->trace.sha256, file, file, error, sizeof error))
        kept_count++;
    else
        free(k->file);
}

void sim_traces_keep(const sim_job *job) {
    for (size_t i = 0; i < job->path_count + job->bottleneck_count; i++)
        for (size_t way = 0; way < 2; way++)
            keep(link_settings_trace(&job->paths[i].settings[way]));
}

/* ---- traces of a run ---- */

const sim_trace *sim_trace_load(simulation *sim, const char *file, char *error) {
    for (size_t i = 0; i < sim->trace_count; i++)
        if (strcmp(sim->traces[i].file, file) == 0)
            return &sim->traces[i];
    sim_trace *trace = &sim->traces[sim->trace_count];
    const sim_trace *of_process = find_kept(file);
    if (of_process)
        *trace = *of_process;
    else if (!link_trace_load(&trace->trace, trace->sha256, file, file, error, SIM_ERROR_BYTES / 2))
        return NULL;
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
