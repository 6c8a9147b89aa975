/* saturatr: records what several links can carry, as traces. See docs/reference/saturatr.md. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/saturatr/client.h"
#include "emulator/saturatr/server.h"

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

/* The signals come only while a loop waits (ppoll with an empty mask), so none is missed. */
static void take_signals(void) {
    struct sigaction action;
    sigset_t set;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv) {
    static sat_options options;
    char error[SAT_ERROR_SIZE] = "";
    if (!sat_options_parse(&options, argc, argv, error)) {
        fprintf(stderr, "saturatr: %s\n", error);
        return SAT_CANNOT_START;
    }
    if (options.help) {
        sat_options_print_usage();
        return SAT_DONE;
    }
    take_signals();
    sat_outcome outcome;
    if (options.role == SAT_SERVER)
        outcome = sat_server_run(&options, &stop, error) ? SAT_DONE : SAT_CANNOT_START;
    else
        outcome = sat_client_run(&options, argc, argv, &stop, error);
    if (outcome != SAT_DONE)
        fprintf(stderr, "saturatr: %s\n", error);
    return (int)outcome;
}
