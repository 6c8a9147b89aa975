#include "emulator/sim/batch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Standard output is the batch's, and standard error the run's. False: there is no such folder. */
static bool redirect(const char *directory) {
    char *name = NULL;
    if (asprintf(&name, "%s/sim.stderr", directory) < 0)
        return false;
    int log = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    free(name);
    return log >= 0 && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
           dup2(log, STDERR_FILENO) >= 0;
}

/* The exit status of a copy of this process, which ends with it. */
static int run_in_copy(const sim_batch *batch, const char *job, const char *directory) {
    pid_t parent = getpid(), child = fork();
    int status = 0;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || !redirect(directory))
            _exit(2);
        _exit(batch->run(job, directory));
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 2;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int sim_batch_serve(const sim_batch *batch) {
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
        batch->prepare(line);
        printf("%d\n", run_in_copy(batch, line, directory));
        fflush(stdout);
    }
    free(line);
    return status;
}
