/* saturatr: records what several links can carry, as traces. See docs/reference/saturatr.md. */
#include <signal.h>

#include "base/error.h"
#include "base/wait.h"
#include "emulator/saturatr/client.h"
#include "emulator/saturatr/server.h"

int main(int argc, char **argv) {
    static sat_options options;
    sigset_t unblocked;
    char error[SAT_ERROR_SIZE] = "";
    if (!sat_options_parse(&options, argc, argv, error)) {
        error_say("saturatr", "%s", error);
        return SAT_CANNOT_START;
    }
    if (options.help) {
        sat_options_print_usage();
        return SAT_DONE;
    }
    wait_catch_end(&unblocked);
    signal(SIGPIPE, SIG_IGN);
    sat_outcome outcome;
    if (options.role == SAT_SERVER)
        outcome = sat_server_run(&options, error) ? SAT_DONE : SAT_CANNOT_START;
    else
        outcome = sat_client_run(&options, argc, argv, error);
    if (outcome != SAT_DONE)
        error_say("saturatr", "%s", error);
    return (int)outcome;
}
