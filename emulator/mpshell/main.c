/* mpshell: runs a command in a network namespace whose paths replay traces. See docs/reference/mpshell.md. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "emulator/mpshell/command.h"
#include "emulator/mpshell/command_line.h"
#include "emulator/mpshell/control.h"
#include "emulator/mpshell/flows.h"
#include "emulator/mpshell/live.h"
#include "emulator/mpshell/loop.h"
#include "emulator/mpshell/nat.h"
#include "emulator/mpshell/netns.h"
#include "emulator/mpshell/outputs.h"
#include "emulator/mpshell/outside.h"
#include "emulator/mpshell/probe.h"
#include "emulator/mpshell/setup.h"
#include "emulator/mpshell/summary.h"
#include "emulator/mpshell/virtual.h"

#define EXIT_CANNOT_START 2
#define EXIT_INCOMPLETE   1 /* COMMAND succeeded, but an output file is incomplete */

static void init_shell(mp_shell *shell) {
    shell->path_count = shell->options.path_count;
    shell->told_count = shell->options.told_count;
    shell->outside_netns = -1;
    shell->inside_netns = -1;
    shell->lender = -1;
    for (size_t k = 0; k < MP_MAX_PATHS; k++) {
        shell->claims[k] = -1;
        shell->paths[k].inside_fd = -1;
        shell->paths[k].outside_fd = -1;
    }
}

static void connect_links(mp_shell *shell) {
    for (size_t k = 0; k < shell->path_count; k++) {
        mp_path *path = &shell->paths[k];
        path->up.from_fd = path->inside_fd;
        path->up.to_fd = path->outside_fd;
        path->down.from_fd = path->outside_fd;
        path->down.to_fd = path->inside_fd;
        path->up.may_merge = !shell->options.no_offload;
        path->down.may_merge = !shell->options.no_offload;
    }
}

/* Blocks the signals that the loop passes on to COMMAND. Returns their signalfd, or -1 with a sentence in error. */
static int block_signals(sigset_t *original, char error[MP_ERROR_SIZE]) {
    static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++)
        sigaddset(&set, passed_on[i]);
    signal(SIGCHLD, SIG_DFL); /* if a caller ignores it, children cannot be waited for */
    sigprocmask(SIG_BLOCK, &set, original);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd >= 0 ? fd : mp_no_fd(error, "cannot watch signals: %s", strerror(errno));
}

static void warn_of_device_drops(const mp_shell *shell) {
    for (size_t k = 0; k < shell->path_count; k++) {
        const mp_path *path = &shell->paths[k];
        uint64_t drops = path->inside_drops.received + path->inside_drops.transmitted + path->outside_drops.received +
                         path->outside_drops.transmitted + path->up.write_errors + path->down.write_errors;
        if (drops > 0) {
            fprintf(stderr, "mpshell: the devices of path %s dropped %llu packets, which no trace asked for\n",
                    path->options->name, (unsigned long long)drops);
        }
    }
}

/* Reports the limit that ended COMMAND, which COMMAND cannot know. */
static void tell_spinning(const mp_shell *shell, int status) {
    if (shell->command_fifo && WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
        fprintf(stderr, "mpshell: %s was ended: with --real-time nothing may use a core for %u s without sleeping\n",
                shell->options.command[0], MP_COMMAND_RTTIME_US / 1000000u);
    }
}

/* Threads beside the loop, from before COMMAND starts until after it ends. */
typedef struct {
    mp_mailbox mailbox;
    mp_control *control;
    mp_live *live;
} mp_helpers;

static bool start_helpers(mp_helpers *helpers, mp_shell *shell, char error[MP_ERROR_SIZE]) {
    if (!shell->options.control && !shell->options.live)
        return true;
    if (!mp_mailbox_open(&helpers->mailbox))
        return mp_fail(error, "cannot make an event descriptor: %s", strerror(errno));
    shell->mailbox = &helpers->mailbox;
    if (shell->options.control) {
        helpers->control = mp_control_start(shell->options.control, shell, &helpers->mailbox, error);
        if (!helpers->control)
            return false;
    }
    if (shell->options.live)
        helpers->live = mp_live_start(shell, &helpers->mailbox);
    return true;
}

static void stop_helpers(mp_helpers *helpers, mp_shell *shell) {
    if (shell->mailbox) {
        mp_mailbox_end(shell->mailbox);
        mp_live_stop(helpers->live);
        mp_control_stop(helpers->control);
        mp_mailbox_close(shell->mailbox);
        shell->mailbox = NULL;
    }
}

static void tell_awake(const mp_awake *awake) {
    fprintf(stderr, "mpshell: %s; %s", awake->done ? "keeps the cores awake" : "does not keep the cores awake",
            mp_awake_reason(awake));
    if (awake->probe.made) {
        fprintf(stderr, ": timers late by %.0f us without, %.0f us with (p95)", awake->probe.without.p95_us,
                awake->probe.with.p95_us);
    }
    fputc('\n', stderr);
}

static void begin(mp_shell *shell) {
    mp_late_begin(&shell->late, shell->t0_us);
    mp_flows_begin(shell->flows, shell->t0_us);
    mp_outputs_begin(shell);
}

static bool start_and_run(mp_shell *shell, int *status, bool *complete, char error[MP_ERROR_SIZE]) {
    mp_command command;
    mp_helpers helpers = {.control = NULL, .live = NULL};
    sigset_t original;
    if (!mp_user_find(&shell->user, shell->options.user, error) || !mp_setup_links(shell, error) ||
        !mp_setup_output(shell, error))
        return false;
    mp_awake_start(&shell->awake, shell->options.keep_awake);
    if (shell->options.live)
        tell_awake(&shell->awake);
    int signal_fd = block_signals(&original, error);
    if (signal_fd < 0 || !mp_netns_build(shell, error) || !mp_nat_start(shell, error) ||
        !mp_command_prepare(&command, shell, &original, error))
        return false;
    connect_links(shell);
    bool good = mp_outputs_open(shell, error) && mp_flows_start(shell, error) && start_helpers(&helpers, shell, error);
    if (good) {
        mp_late_start(&shell->late, command.init, shell->options.watched, shell->options.watched_count);
        good = mp_loop_run(shell, &command, signal_fd, begin, status, error);
    } else {
        mp_command_kill(&command);
        mp_command_finish(&command, &shell->command_cpu_s);
    }
    stop_helpers(&helpers, shell);
    mp_flows_stop(shell->flows);
    mp_late_stop(&shell->late);
    *complete = mp_outputs_close(shell);
    close(signal_fd);
    return good;
}

/* Prints the error unless `good`, which it returns. */
static bool tell(bool good, char error[MP_ERROR_SIZE]) {
    if (!good)
        error_say("mpshell", "%s", error);
    return good;
}

static int run(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    int status = 0;
    bool complete = true;
    const bool good = start_and_run(shell, &status, &complete, error);
    mp_awake_stop(&shell->awake);
    if (good) {
        mp_netns_count_drops(shell);
        warn_of_device_drops(shell);
        tell_spinning(shell, status);
        complete &= tell(mp_netns_write_counters(shell, error), error);
        complete &= tell(mp_late_write(&shell->late, error), error);
        complete &= tell(mp_flows_write(shell->flows, &shell->flow_log, error), error);
        complete &= tell(mp_summary_write(shell, status, error), error);
    }
    mp_nat_stop(shell);
    mp_netns_destroy(shell);
    mp_setup_free(shell);
    if (!tell(good, error))
        return EXIT_CANNOT_START;
    int exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return exit_status == 0 && !complete ? EXIT_INCOMPLETE : exit_status;
}

static int lend(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    const bool good = mp_outside_lend(shell, error);
    mp_netns_destroy(shell);
    return tell(good, error) ? 0 : EXIT_CANNOT_START;
}

int main(int argc, char **argv) {
    static mp_shell shell;
    char error[MP_ERROR_SIZE] = "";
    int rc = 0;
    if (!mp_options_parse(&shell.options, argc, argv, error, sizeof error)) {
        error_say("mpshell", "%s", error);
        rc = EXIT_CANNOT_START;
    } else if (shell.options.help) {
        mp_options_print_usage();
    } else if (shell.options.in_virtual_time) {
        mp_virtual_become(&shell.options, argc, argv, error);
        error_say("mpshell", "%s", error);
        rc = EXIT_CANNOT_START;
    } else if (shell.options.probe_ms > 0) {
        rc = tell(mp_probe(&shell, error), error) ? 0 : EXIT_CANNOT_START;
    } else {
        init_shell(&shell);
        rc = shell.options.lend_outside ? lend(&shell, error) : run(&shell, error);
    }
    mp_options_free(&shell.options);
    return rc;
}
