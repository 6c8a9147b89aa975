/* xlink-sim: runs player, server and links of a job on a virtual clock. See docs/reference/sim.md. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text_file.h"
#include "emulator/sim/job.h"
#include "emulator/sim/sim.h"

#define PROGRAM       "xlink-sim"
#define MAX_JOB_BYTES ((size_t)16 << 20)

static const char usage[] =
    "usage: xlink-sim JOB.json --out DIR\n"
    "       xlink-sim --batch\n"
    "       xlink-sim --check\n"
    "       xlink-sim --describe-settings\n"
    "  JOB.json   The job (docs/reference/sim.md). '-' reads it from standard input.\n"
    "  --out DIR  Write player.jsonl, server.jsonl, mpshell.json, links/ and qlog/ to DIR.\n"
    "  --batch    Run a job for each line of standard input: JOB.json, a tab, DIR. Print the exit status of each.\n"
    "  --check    Print a line for each line of standard input, a job: what is wrong with it, or nothing.\n"
    "  --describe-settings\n"
    "             Print schemes, settings of QUIC and of links, queues and technologies as JSON.\n"
    "The exit status is the player's: 0; 1 if it ran and failed; 2 if it could not start or connect.\n";

static char *read_job(const char *name, size_t *length) {
    return strcmp(name, "-") == 0 ? file_read(STDIN_FILENO, MAX_JOB_BYTES, length)
                                  : file_read_at(name, MAX_JOB_BYTES, length);
}

/* Returns the directory to which a job's file names are relative. Free it. */
static char *directory_of(const char *name) {
    const char *slash = strrchr(name, '/');
    return strndup(name, !slash ? 0 : (size_t)(slash - name) + 1);
}

static int run(const char *name, const char *out) {
    size_t length = 0;
    char *text = read_job(name, &length);
    if (!text)
        return error_status(PROGRAM, "cannot read the job %s: %s.", name, file_problem(errno));
    char *directory = directory_of(name);
    static sim_job job;
    char error[SIM_ERROR_BYTES] = "out of memory";
    int status = 2;
    const char *label = strcmp(name, "-") == 0 ? "standard input" : name;
    if (directory && sim_job_parse(&job, text, length, label, directory, error)) {
        sim_traces_keep(&job);
        status = sim_run(&job, label, out, error);
    }
    sim_job_free(&job);
    free(directory);
    free(text);
    if (error[0] != '\0')
        error_say(PROGRAM, "%s.", error);
    return status;
}

/* Redirects standard error to the run's file. False: there is no such folder. */
static bool redirect(const char *directory) {
    char *name = NULL;
    if (asprintf(&name, "%s/sim.stderr", directory) < 0)
        return false;
    int log = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool is_open = log >= 0 && dup2(log, STDERR_FILENO) >= 0;
    if (log >= 0)
        close(log);
    free(name);
    return is_open;
}

/* --batch: many runs in one process, one after another, so that libraries are linked, memory is mapped and traces are
 * parsed once. Each line of standard input is JOB.json, a tab and DIR. The run's standard error goes to DIR/sim.stderr,
 * and its exit status is a line of standard output. A run that dies ends the process: the caller starts another process
 * for the next line. Returns 0 at the end of standard input, 2 at an invalid line. */
static int serve_batch(void) {
    char *line = NULL;
    size_t size = 0;
    int status = 0;
    for (ssize_t n; status == 0 && (n = getline(&line, &size, stdin)) > 0;) {
        line[n - 1] = line[n - 1] == '\n' ? '\0' : line[n - 1];
        char *directory = strchr(line, '\t');
        if (!directory) {
            status = 2;
            break;
        }
        *directory++ = '\0';
        printf("%d\n", redirect(directory) ? run(line, directory) : 2);
        fflush(stdout);
    }
    free(line);
    return status;
}

/* Checks the job of a line. Its file names are relative to the current directory. */
static void check(const char *text, size_t length) {
    char error[SIM_ERROR_BYTES] = "";
    sim_job *job = calloc(1, sizeof *job);
    if (!job)
        sim_fail(error, "out of memory");
    else if (sim_job_parse(job, text, length, "job", "", error)) {
        sim_traces_keep(job);
        (void)sim_check(job, "job", error);
    }
    puts(error);
    if (job)
        sim_job_free(job);
    free(job);
}

static int check_lines(void) {
    char *line = NULL;
    size_t size = 0;
    for (ssize_t n; (n = getline(&line, &size, stdin)) > 0;)
        check(line, (size_t)n);
    free(line);
    return 0;
}

/* Keeps freed memory: stream buffers come and go with every chunk, and the kernel zeroes memory that it gets back. */
static void keep_memory(void) {
    mallopt(M_MMAP_THRESHOLD, 16 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

int main(int argc, char **argv) {
    keep_memory();
    const char *job = NULL, *out = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--describe-settings") == 0)
            return jsonl_print(sim_describe_settings(), JSON_INDENT(1));
        if (strcmp(argv[i], "--check") == 0 && argc == 2)
            return check_lines();
        if (strcmp(argv[i], "--batch") == 0 && argc == 2)
            return serve_batch();
        if (strcmp(argv[i], "--out") == 0) {
            if (++i == argc)
                return error_status(PROGRAM, "--out needs a value; see --help.");
            out = argv[i];
        } else if (strncmp(argv[i], "--out=", 6) == 0) {
            out = argv[i] + 6;
        } else if (argv[i][0] == '-' && argv[i][1] != '\0') {
            return error_status(PROGRAM, "unknown option '%s'; see --help.", argv[i]);
        } else if (job) {
            return error_status(PROGRAM, "unexpected argument '%s'; see --help.", argv[i]);
        } else {
            job = argv[i];
        }
    }
    if (!job || !out || out[0] == '\0')
        return error_status(PROGRAM, "%s is required; see --help.", !job ? "JOB.json" : "--out DIR");
    return run(job, out);
}
