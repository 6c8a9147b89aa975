#include "emulator/mpshell/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "emulator/mpshell/netns.h"

static void set_number_variable(size_t k, const char *suffix, const char *value) {
    char name[48];
    snprintf(name, sizeof name, "MPSHELL_PATH_%zu_%s", k, suffix);
    setenv(name, value, 1);
}

static void set_environment(const mp_shell *shell) {
    char names[MP_MAX_PATHS * MP_NAME_SIZE + 1] = "";
    for (size_t k = 0; k < shell->told_count; k++) {
        const mp_path *path = &shell->paths[k];
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", k == 0 ? "" : " ", path->options->name);
        set_number_variable(k, "NAME", path->options->name);
        set_number_variable(k, "ADDR", path->ends.inside_address);
        set_number_variable(k, "GATEWAY", path->ends.outside_address);
        if (path->ends.inside_address6[0] != '\0') {
            set_number_variable(k, "ADDR6", path->ends.inside_address6);
            set_number_variable(k, "GATEWAY6", path->ends.outside_address6);
        }
    }
    if (shell->options.control)
        setenv("MPSHELL_CONTROL", shell->options.control, 1);
    setenv("MPSHELL_PATHS", names, 1);
    setenv("MPSHELL_GATEWAY", shell->paths[0].ends.outside_address, 1);
    if (shell->paths[0].ends.outside_address6[0] != '\0')
        setenv("MPSHELL_GATEWAY6", shell->paths[0].ends.outside_address6, 1);
}

/* Mounts /proc and /sys of the new namespaces, so that programs see their own processes and devices. If a container
 * forbids mounts, the outer views stay. */
static void mount_views(void) {
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return;
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

/* With --outside (`shared`) COMMAND shares its namespaces with mpshell, and gets none of mpshell's rights over them. */
static bool limit_rights(const mp_shell *shell, bool shared) {
    if (shell->user.given)
        return mp_user_become(&shell->user);
    if (shared)
        return mp_user_drop_capabilities();
    mp_user_limit_root();
    return true;
}

/* Only COMMAND inherits its end of the socket. */
static void hand_over(int ready_fd) {
    char number[16];
    if (ready_fd >= 0 && fcntl(ready_fd, F_SETFD, 0) == 0) {
        snprintf(number, sizeof number, "%d", ready_fd);
        setenv(MP_READY_VARIABLE, number, 1);
    }
}

/* Threads and children of COMMAND inherit class and limit, because they may do a relay's work. Without the permission
 * COMMAND stays an ordinary process. */
static void become_real_time(void) {
    struct sched_param parameters = {.sched_priority = MP_COMMAND_PRIORITY};
    struct rlimit limit = {MP_COMMAND_RTTIME_US, MP_COMMAND_RTTIME_US + 1000000u};
    if (setrlimit(RLIMIT_RTTIME, &limit) == 0)
        sched_setscheduler(0, SCHED_FIFO, &parameters);
}

__attribute__((noreturn)) static void execute(const mp_shell *shell, const sigset_t *mask, bool shared, int ready_fd) {
    char **argv = shell->options.command;
    hand_over(ready_fd);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (shell->options.real_time)
        become_real_time();
    if (!limit_rights(shell, shared)) {
        fprintf(stderr, "mpshell: cannot give up rights for %s: %s\n", argv[0], strerror(errno));
        _exit(126);
    }
    if (shared)
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* replaces the PID namespace; a change of user would clear it */
    execvp(argv[0], argv);
    int saved = errno;
    fprintf(stderr, "mpshell: cannot run %s: %s\n", argv[0], saved == ENOENT ? "command not found" : strerror(saved));
    _exit(saved == ENOENT ? 127 : 126);
}

/* Collects ended children up to COMMAND. Returns 1 if COMMAND has ended. */
static int reap(pid_t command, int *status) {
    int one;
    for (pid_t pid = waitpid(-1, &one, WNOHANG); pid > 0; pid = waitpid(-1, &one, WNOHANG)) {
        if (pid == command) {
            *status = one;
            return 1;
        }
    }
    return 0;
}

static bool has_no_reader(int pipe_fd) {
    struct pollfd polled = {.fd = pipe_fd, .events = 0};
    return poll(&polled, 1, 0) == 1 && (polled.revents & POLLERR) != 0;
}

/* Ends the processes that COMMAND left, as a PID namespace does when its init exits. */
static void end_orphans(void) {
    char name[64];
    snprintf(name, sizeof name, "/proc/self/task/%d/children", getpid());
    while (waitpid(-1, NULL, WNOHANG) >= 0) {
        FILE *children = fopen(name, "re");
        int pid;
        if (!children)
            return;
        while (fscanf(children, "%d", &pid) == 1)
            kill(pid, SIGKILL);
        fclose(children);
        waitpid(-1, NULL, 0);
    }
}

__attribute__((noreturn)) static void run_init(const mp_shell *shell, int go_fd, int status_fd, int ready_fd,
                                               const sigset_t *mask) {
    sigset_t all;
    int status = 0;
    char byte;
    bool shared = shell->options.outside != NULL; /* the namespaces, with mpshell */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL); /* init takes signals one by one by sigwaitinfo() */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "mpshell-init");
    if (shared)
        prctl(PR_SET_CHILD_SUBREAPER, 1ul);
    else
        mount_views();
    set_environment(shell);
    /* mpshell gave up or died. If it died before the request for a death signal, no signal comes, but the status pipe
     * has no reader. */
    if (read(go_fd, &byte, 1) != 1 || has_no_reader(status_fd))
        _exit(1);
    pid_t command = fork();
    if (command == 0)
        execute(shell, mask, shared, ready_fd);
    descriptor_close(&ready_fd);
    if (command < 0) {
        fprintf(stderr, "mpshell: cannot start a process: %s\n", strerror(errno));
        status = 126 << 8;
    }
    while (command > 0 && !reap(command, &status)) {
        siginfo_t info;
        int number = sigwaitinfo(&all, &info);
        /* Only signals that mpshell passes on: a sender outside of a PID namespace is process 0 in it. Signals of the
         * terminal or to a process group have already reached COMMAND. */
        if (number > 0 && number != SIGCHLD && info.si_code == SI_USER && info.si_pid == (shared ? getppid() : 0))
            kill(command, number);
    }
    if (shared)
        end_orphans();
    if (write(status_fd, &status, sizeof status) != (ssize_t)sizeof status)
        _exit(1);
    _exit(0);
}

bool mp_command_prepare(mp_command *command, mp_shell *shell, const sigset_t *original_mask,
                        char error[MP_ERROR_SIZE]) {
    int go[2];
    int status[2];
    int ready[2] = {-1, -1};
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(status, O_CLOEXEC) != 0 ||
        (shell->options.start_when_ready && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ready) != 0))
        return mp_fail(error, "cannot make a pipe: %s", strerror(errno));
    bool shared = shell->options.outside != NULL;
    if (!shared && setns(shell->inside_netns, CLONE_NEWNET) != 0)
        return mp_fail(error, "cannot enter the inner network namespace: %s", strerror(errno));
    unsigned long flags = shared ? SIGCHLD : (unsigned long)(CLONE_NEWPID | CLONE_NEWNS | SIGCHLD);
    pid_t pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, 0ul);
    if (pid == 0) {
        close(go[1]);
        close(status[0]);
        descriptor_close(&ready[0]);
        mp_netns_destroy(shell); /* a copy of a TUN descriptor would keep the device */
        run_init(shell, go[0], status[1], ready[1], original_mask);
    }
    int saved = errno;
    close(go[0]);
    close(status[1]);
    command->init = pid;
    command->go_fd = go[1];
    command->status_fd = status[0];
    command->ready_fd = ready[0];
    descriptor_close(&ready[1]);
    if (!shared && setns(shell->outside_netns, CLONE_NEWNET) != 0)
        return mp_fail(error, "cannot return to the outer network namespace: %s", strerror(errno));
    return pid > 0 || mp_fail(error, "cannot make a process namespace: %s; " MP_AS_ROOT, strerror(saved));
}

void mp_command_start(mp_command *command) {
    ssize_t n = write(command->go_fd, "g", 1);
    (void)n; /* if init is gone, status_fd shows it */
    descriptor_close(&command->go_fd);
}

void mp_command_go(mp_command *command) {
    ssize_t n = send(command->ready_fd, "g", 1, MSG_NOSIGNAL);
    (void)n; /* if COMMAND is gone, status_fd shows it */
    descriptor_close(&command->ready_fd);
}

void mp_command_signal(const mp_command *command, int signal) {
    kill(command->init, signal);
}

void mp_command_kill(const mp_command *command) {
    kill(command->init, SIGKILL);
}

int mp_command_finish(mp_command *command, double *cpu_s) {
    int status = SIGKILL; /* COMMAND's if init was killed */
    int of_init;
    struct rusage used = {.ru_utime.tv_sec = 0};
    ssize_t n = read(command->status_fd, &status, sizeof status);
    if (n != (ssize_t)sizeof status)
        status = SIGKILL;
    while (wait4(command->init, &of_init, 0, &used) < 0 && errno == EINTR) {
    }
    *cpu_s = clock_used_s(&used);
    close(command->status_fd);
    return status;
}
