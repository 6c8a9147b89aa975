/* The first process of the time-travel kernel (vkernel): mounts the host's root read-only and the file systems that
 * programs expect, runs one command (job.h), and turns the machine off. Linked statically, because it starts before the
 * host's libraries are mounted. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "emulator/kernel/job.h"

#define ROOT "/root" /* mount point of the host's root, before it becomes the root */

typedef struct {
    char *at; /* the folder to start in */
    char **environment, **command;
} init_job;

/* Writes a line to the kernel's log, which outlives this process. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    char line[512] = VK_INIT_SAYS;
    const size_t used = sizeof(VK_INIT_SAYS) - 1;
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, sizeof line - used, format, args);
    va_end(args);
    const int log = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
    if (log < 0 || write(log, line, strlen(line)) < 0)
        dprintf(STDERR_FILENO, "%s\n", line);
    if (log >= 0)
        close(log);
}

__attribute__((noreturn)) static void turn_off(void) {
    sync();
    reboot(RB_POWER_OFF);
    _exit(1);
}

__attribute__((noreturn)) static void give_up(const char *what, const char *which) {
    say("cannot %s %s: %s", what, which, strerror(errno));
    turn_off();
}

static void mount_at(const char *type, const char *target, unsigned long flags, const char *options) {
    if (mount("none", target, type, flags, options) == 0)
        return;
    if (errno != ENODEV)
        give_up("mount", target);
    say("cannot mount %s: the kernel was built without the file system %s", target, type);
    turn_off();
}

static void make_folder(const char *path, mode_t mode) {
    if (mkdir(path, mode) != 0 && errno != EEXIST)
        give_up("make the folder", path);
}

/* What udev makes beside the devices: a program may write to /dev/stdout, and bash reads from /dev/fd/63. */
static void link_descriptors(void) {
    static const char *const links[][2] = {{"/proc/self/fd", ROOT "/dev/fd"},
                                           {"/proc/self/fd/0", ROOT "/dev/stdin"},
                                           {"/proc/self/fd/1", ROOT "/dev/stdout"},
                                           {"/proc/self/fd/2", ROOT "/dev/stderr"}};
    for (size_t k = 0; k < sizeof links / sizeof links[0]; k++)
        if (symlink(links[k][0], links[k][1]) != 0 && errno != EEXIST)
            give_up("make the link", links[k][1]);
}

/* Mounts the host's root, and the machine's own file systems over it. */
static void mount_all(const char *at) {
    char place[4096];
    mount_at("hostfs", ROOT, MS_RDONLY, "/");
    mount_at("proc", ROOT "/proc", MS_NOSUID, NULL);
    mount_at("sysfs", ROOT "/sys", MS_NOSUID, NULL);
    mount_at("devtmpfs", ROOT "/dev", 0, NULL);
    make_folder(ROOT "/dev/pts", 0755);
    make_folder(ROOT "/dev/shm", 01777);
    link_descriptors();
    mount_at("devpts", ROOT "/dev/pts", 0, "ptmxmode=0666,mode=0620");
    mount_at("tmpfs", ROOT "/dev/shm", MS_NOSUID, NULL);
    mount_at("tmpfs", ROOT "/run", MS_NOSUID, "mode=0755");
    make_folder(ROOT "/run/netns", 0755);
    make_folder(ROOT "/run/lock", 01777);
    make_folder(ROOT "/run/tmp", 01777);
    snprintf(place, sizeof place, ROOT "%s", at);
    mount_at("hostfs", place, 0, "/proc/self/cwd"); /* the current directory of the kernel's process on the host */
    if (chdir(ROOT) != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 || chdir(at) != 0)
        give_up("enter", at);
}

/* Returns the content of a file and a NUL. Never freed. */
static char *read_whole(const char *path, size_t *length) {
    struct stat facts;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = fd >= 0 && fstat(fd, &facts) == 0 ? calloc(1, (size_t)facts.st_size + 1) : NULL;
    if (!text || read(fd, text, (size_t)facts.st_size) != facts.st_size)
        give_up("read", path);
    close(fd);
    *length = (size_t)facts.st_size;
    return text;
}

/* Reads the job's texts into one array, with NULL after the environment and after the last text. */
static void read_job(init_job *job) {
    size_t length = 0, count = 0;
    char *text = read_whole(VK_JOB, &length);
    const char *end = text + length;
    for (const char *at = text; at < end; at++)
        count += *at == '\0';
    char **texts = calloc(count + 1, sizeof *texts);
    if (!texts)
        give_up("read", VK_JOB);
    for (char **next = texts; text < end; text += strlen(text) + 1)
        *next++ = text;
    job->at = texts[0];
    job->environment = job->command = &texts[1];
    while (**job->command)
        job->command++;
    *job->command++ = NULL;
}

static void bring_up_loopback(void) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0)
        give_up("bring up", "lo");
    close(fd);
}

static void wait_for_uptime(void) {
    const struct timespec until = {.tv_sec = VK_UPTIME_S};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

/* Opens a terminal that changes no byte as descriptor `fd` of COMMAND. */
static void open_terminal(int number, int fd) {
    char name[32];
    struct termios raw;
    snprintf(name, sizeof name, "/dev/tty%d", number);
    const int terminal = open(name, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || tcgetattr(terminal, &raw) != 0)
        give_up("open", name);
    cfmakeraw(&raw);
    if (tcsetattr(terminal, TCSANOW, &raw) != 0 || dup2(terminal, fd) < 0)
        give_up("open", name);
}

/* Drops rights over the machine as a whole, which no program for it needs. The host does not depend on this, but the
 * result of a run does: if a program turns the machine off, its end is not recorded. */
static void drop_rights_over_machine(void) {
    static const unsigned long rights[] = {CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT, CAP_MKNOD};
    for (size_t k = 0; k < sizeof rights / sizeof rights[0]; k++)
        prctl(PR_CAPBSET_DROP, rights[k], 0, 0, 0);
}

/* Makes this process and its children real-time, as they are on the wall clock (railyard/run/realtime.py). Otherwise
 * timers may be 50 us late, and epoll_wait(2) and its like by 0.1 % of their timeouts. */
static void be_real_time(void) {
    prctl(PR_SET_TIMERSLACK, 1ul); /* in Linux before 6.12 some waits of real-time processes have it, too */
    if (sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 1}) != 0)
        give_up("schedule", "COMMAND");
}

__attribute__((noreturn)) static void become(const init_job *job) {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setsid();
    drop_rights_over_machine();
    be_real_time();
    dup2(nothing, STDIN_FILENO);
    open_terminal(VK_STDOUT_TERMINAL, STDOUT_FILENO);
    open_terminal(VK_STDERR_TERMINAL, STDERR_FILENO);
    execvpe(job->command[0], job->command, job->environment);
    dprintf(STDERR_FILENO, "vkernel: cannot run %s: %s\n", job->command[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

/* Runs COMMAND to its end and returns its wait status. Also waits for orphans. */
static int run(const init_job *job) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        become(job);
    if (child < 0)
        give_up("start", job->command[0]);
    while (true) {
        int ended = 0;
        const pid_t pid = waitpid(-1, &ended, 0);
        if (pid == child) {
            status = ended;
            break;
        }
        if (pid < 0 && errno != EINTR)
            give_up("wait for", job->command[0]);
    }
    return status;
}

/* Ends the processes that COMMAND left. */
static void end_others(void) {
    kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
}

int main(void) {
    static init_job job;
    static char *const fallback_path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    if (getpid() != 1 || access(VK_JOB, R_OK) != 0) { /* otherwise it would turn off a real machine */
        fprintf(stderr, "vkernel-init: this is the first process of a kernel that vkernel starts, and nothing else\n");
        return 2;
    }
    make_folder("/dev", 0755);
    mount("none", "/dev", "devtmpfs", 0, NULL); /* for the log; the host's root gets its own */
    read_job(&job);
    mount_all(job.at);
    bring_up_loopback();
    wait_for_uptime();
    putenv(fallback_path); /* execvpe() uses it if COMMAND's environment has no PATH */
    for (char **variable = job.environment; *variable; variable++)
        if (strncmp(*variable, "PATH=", 5) == 0)
            putenv(*variable);
    const int status = run(&job);
    end_others();
    if (chdir("/") != 0 || umount(job.at) != 0)
        give_up("write back", job.at);
    if (WIFSIGNALED(status))
        say("signal %d", WTERMSIG(status));
    else
        say("exit %d", WEXITSTATUS(status));
    turn_off();
}
