#include "emulator/sim/batch.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int sim_batch_serve(int (*run)(const char *job, const char *directory)) {
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
