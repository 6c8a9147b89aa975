#include "emulator/kernel/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/text_file.h"
#include "emulator/kernel/archive.h"
#include "emulator/kernel/confine.h"
#include "emulator/kernel/job.h"
#include "emulator/kernel/look.h"

/* Descriptors of the kernel's process, which cannot open its files itself. */
enum { LOG_FD = 3, STDOUT_FD, STDERR_FD, ARCHIVE_FD, MEMORY_FD, SEED_FD, KERNEL_FD, FIRST_OTHER_FD };
#define LOG_READ_BYTES (4 << 20)
enum { PLACES = FIRST_OTHER_FD - LOG_FD };

/* ---- what is prepared ---- */

char *vk_job_text(const vk_machine *machine, size_t *length) {
    char *text = NULL;
    FILE *file = open_memstream(&text, length);
    if (!file)
        return NULL;
    fprintf(file, "%s%c", machine->at, '\0');
    for (char *const *variable = machine->environment; *variable; variable++)
        if (**variable && strncmp(*variable, "TMPDIR=", 7) != 0)
            fprintf(file, "%s%c", *variable, '\0');
    fprintf(file, "%s%c%c", VK_TEMPORARY, '\0', '\0');
    for (char *const *word = machine->command; *word; word++)
        fprintf(file, "%s%c", *word, '\0');
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* Returns a descriptor of the archive; -1 with a sentence in error. */
static int make_archive(const vk_machine *machine, char *error) {
    size_t init_size = 0, job_size = 0;
    char *init = NULL, *job = NULL;
    int fd = memfd_create("vkernel", MFD_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(dup(fd), "w") : NULL;
    bool good = file != NULL;
    if (!file)
        vk_fail(error, "no room for the first root file system: %s", strerror(errno));
    if (good && !(init = file_read_at(machine->init, SIZE_MAX, &init_size))) {
        vk_fail(error, "%s: %s; build it with `make build`", machine->init, strerror(errno));
        good = false;
    }
    if (good) {
        job = vk_job_text(machine, &job_size);
        good = job && vk_archive_add(file, "dev", 0755, NULL, 0) && vk_archive_add(file, "root", 0755, NULL, 0) &&
               vk_archive_add(file, "init", 0755, init, init_size) &&
               vk_archive_add(file, &VK_JOB[1], 0644, job, job_size) && vk_archive_end(file) && fflush(file) == 0;
        if (!good)
            vk_fail(error, "no room for the first root file system");
    }
    if (file)
        fclose(file);
    if (!good && fd >= 0)
        descriptor_close(&fd);
    free(init);
    free(job);
    return fd;
}

static int open_log(const vk_machine *machine, char *error) {
    const int fd = machine->log ? open(machine->log, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)
                                : memfd_create("vkernel-log", MFD_CLOEXEC);
    if (fd < 0)
        vk_fail(error, "%s: %s", machine->log ? machine->log : "the kernel's log", strerror(errno));
    return fd;
}

/* ---- where its memory lies on the host ---- */

static uint64_t free_megabytes(const struct statvfs *facts) {
    return facts->f_bavail * facts->f_frsize >> 20;
}

/* Whether the kernel can keep this much memory in the folder. It maps the file as code too. */
static bool takes_memory(const char *folder, uint64_t megabytes) {
    struct statvfs facts;
    return access(folder, W_OK | X_OK) == 0 && statvfs(folder, &facts) == 0 && !(facts.f_flag & ST_NOEXEC) &&
           free_megabytes(&facts) >= megabytes;
}

/* A container's /dev/shm is small, and mounted noexec. */
const char *vk_memory_folder(uint64_t megabytes) {
    const char *named = getenv("TMPDIR");
    if (named && *named)
        return named;
    return !takes_memory("/dev/shm", megabytes) && takes_memory("/tmp", megabytes) ? "/tmp" : "/dev/shm";
}

/* ---- the kernel's process ---- */

/* Pins the process to `core`, or to its present one if core < 0: moves between cores make it several times slower. */
static void pin(int64_t core) {
    cpu_set_t allowed;
    if (core < 0)
        core = sched_getcpu();
    CPU_ZERO(&allowed);
    CPU_SET((size_t)core, &allowed);
    sched_setaffinity(0, sizeof allowed, &allowed);
}

typedef struct {
    char seed[48], memory[32], clock[64];
} vk_words;

/* Becomes the kernel. Its environment has no variable of the caller and no folder name, because the log contains it and
 * must be the same in every run. */
static void boot(const vk_machine *machine, vk_words *words) {
    char *const environment[] = {words->seed, "LD_PRELOAD=/proc/self/fd/8", "PATH=/usr/bin:/bin",
                                 "HOME=/",    ("TMPDIR=" VK_MEMORY),        NULL};
    char *const command[] = {
        "linux",
        words->memory,
        "initrd=/proc/self/fd/6",
        "time-travel=inf-cpu",
        words->clock,
        "uml_dir=/dev/null/", /* prevents a folder with its process ID */
        "con=null",
        "con0=null,fd:3",
        "con1=null,fd:4",
        "con2=null,fd:5",
        "panic=-1",
        NULL,
    };
    snprintf(words->seed, sizeof words->seed, "RAILYARD_SEED=%llu", (unsigned long long)machine->seed);
    snprintf(words->memory, sizeof words->memory, "mem=%lluM", (unsigned long long)machine->memory_mb);
    snprintf(words->clock, sizeof words->clock, "time-travel-start=%llu000000000",
             (unsigned long long)machine->clock_s);
    fexecve(KERNEL_FD, command, environment);
}

/* Moves the descriptors to LOG_FD .. KERNEL_FD, by copies that cannot collide. */
static bool place_descriptors(const int from[PLACES]) {
    int moved[PLACES];
    for (int k = 0; k < PLACES; k++) {
        moved[k] = fcntl(from[k], F_DUPFD, FIRST_OTHER_FD);
        if (moved[k] < 0)
            return false;
    }
    for (int k = 0; k < PLACES; k++)
        if (dup2(moved[k], LOG_FD + k) < 0)
            return false;
    const int nothing = open("/dev/null", O_RDONLY);
    return nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(LOG_FD, STDOUT_FILENO) >= 0 &&
           dup2(LOG_FD, STDERR_FILENO) >= 0 && close_range(FIRST_OTHER_FD, ~0u, 0) == 0;
}

/* Opens the memory's file, without a name, in a folder in which the confined process may no longer write. */
static int open_memory(const char *folder) {
    int fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        char name[PATH_MAX];
        snprintf(name, sizeof name, "%s/vkernel-XXXXXX", folder);
        fd = mkostemp(name, O_CLOEXEC);
        if (fd >= 0)
            unlink(name);
    }
    return fd;
}

static bool confine(const vk_machine *machine) {
    const char *unconfined = getenv(VK_UNCONFINED);
    const int kept = vk_confine(machine->folder);
    if (kept > 0 || (kept == 0 && unconfined && strcmp(unconfined, "1") == 0))
        return true;
    if (kept == 0)
        dprintf(STDERR_FILENO,
                "%scannot be confined: this host has no Landlock (Linux 6.2) and lets you have no user namespace, so a "
                "program inside could change your files; " VK_UNCONFINED "=1 runs it all the same\n",
                VK_INIT_SAYS);
    else
        dprintf(STDERR_FILENO, "%scannot be confined: %s\n", VK_INIT_SAYS, strerror(errno));
    return false;
}

__attribute__((noreturn)) static void become_kernel(const vk_machine *machine, int log, int archive, pid_t parent) {
    static vk_words words;
    const int from[PLACES] = {log,
                              STDOUT_FILENO,
                              STDERR_FILENO,
                              archive,
                              open_memory(machine->memory_folder),
                              open(machine->seed_library, O_RDONLY | O_CLOEXEC),
                              open(machine->kernel, O_RDONLY | O_CLOEXEC)};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    pin(machine->core);
    if (place_descriptors(from) && personality(ADDR_NO_RANDOMIZE) >= 0) {
        if (!confine(machine))
            _exit(127);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of user, which would clear it */
        if (getppid() != parent)
            _exit(127);
        fcntl(KERNEL_FD, F_SETFD, FD_CLOEXEC);
        boot(machine, &words);
    }
    dprintf(STDERR_FILENO, "%scannot start: %s\n", VK_INIT_SAYS, strerror(errno));
    _exit(127);
}

/* ---- while it runs ---- */

typedef struct {
    const vk_machine *machine;
    pid_t pid;
    uint64_t address; /* of the virtual time in the kernel's memory */
    uint64_t virtual_ns;
    double begun_s, moved_s; /* host clock: start, and last observed progress of virtual time */
    sigset_t awaited;        /* blocked */
} vk_watch;

/* Virtual time since COMMAND started. */
static double command_s(const vk_watch *watch) {
    const double since_start = (double)watch->virtual_ns / 1e9;
    return since_start > VK_UPTIME_S ? since_start - VK_UPTIME_S : 0;
}

/* False with a sentence in error: virtual time stands still, or the run takes too long. */
static bool check_progress(vk_watch *watch, char *error) {
    const double now = (double)clock_us() / 1e6;
    uint64_t ns;
    if (vk_virtual_time(watch->pid, watch->address, &ns) && ns != watch->virtual_ns) {
        watch->virtual_ns = ns;
        watch->moved_s = now;
    }
    const bool still = now - watch->moved_s > (double)watch->machine->stall_s;
    const bool late = watch->machine->limit_s > 0 && now - watch->begun_s > (double)watch->machine->limit_s;
    if (!still && !late)
        return true;
    char name[VK_PROGRAM_SIZE] = "no program of the machine";
    vk_running_program(watch->pid, name);
    if (still)
        return vk_fail(
            error,
            "time stood still at virtual t = %.6f s: for %llu s of the host's time the machine did not sleep; %s "
            "was running",
            command_s(watch), (unsigned long long)watch->machine->stall_s, name);
    return vk_fail(error, "after %llu s of the host's time the machine was at virtual t = %.6f s; %s was running",
                   (unsigned long long)watch->machine->limit_s, command_s(watch), name);
}

static void block_signals(sigset_t *awaited) {
    sigemptyset(awaited);
    sigaddset(awaited, SIGCHLD);
    sigaddset(awaited, SIGINT);
    sigaddset(awaited, SIGTERM);
    sigaddset(awaited, SIGHUP);
    sigprocmask(SIG_BLOCK, awaited, NULL);
}

static void end_process(pid_t pid) {
    kill(pid, SIGKILL); /* its children die with it */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Waits for the end of the kernel's process. False with a sentence in error if it was killed; *interrupted: signal. */
static bool watch_until_end(vk_watch *watch, int *status, int *interrupted, char *error) {
    static const struct timespec second = {.tv_sec = 1};
    while (true) {
        const int number = sigtimedwait(&watch->awaited, NULL, &second);
        if (waitpid(watch->pid, status, WNOHANG) == watch->pid)
            return true;
        if (number == SIGINT || number == SIGTERM || number == SIGHUP) {
            *interrupted = number;
            end_process(watch->pid);
            return vk_fail(error, "interrupted");
        }
        if (!check_progress(watch, error)) {
            end_process(watch->pid);
            return false;
        }
    }
}

/* ---- what its log says ---- */

/* Returns the last occurrence of the text, or NULL. */
static const char *last_of(const char *log, const char *text) {
    const char *found = NULL;
    for (const char *next = strstr(log, text); next; next = strstr(next + 1, text))
        found = next;
    return found;
}

static int line_length(const char *text) {
    return (int)strcspn(text, "\r\n");
}

/* Returns the last line that is not empty; the empty log itself if there is none. */
static const char *last_line(const char *log) {
    const char *line = log;
    for (const char *next = log; *next; next += strcspn(next, "\r\n"), next += strspn(next, "\r\n"))
        line = next;
    return line;
}

/* Whether the machine or COMMAND ended because the host had no room for a page of the machine's memory. COMMAND's
 * SIGBUS may have another reason, so it counts only if the folder has less room than the machine's memory. */
static bool had_no_room(const vk_watch *watch, const char *log, int kernel_status, const char *words) {
    if (strstr(log, "Kernel mode signal 7") || (WIFSIGNALED(kernel_status) && WTERMSIG(kernel_status) == SIGBUS))
        return true;
    struct statvfs room;
    int number = 0;
    const bool bus_error = (sscanf(words, "signal %d", &number) == 1 && number == SIGBUS) ||
                           (sscanf(words, "exit %d", &number) == 1 && number == 128 + SIGBUS);
    return bus_error && statvfs(watch->machine->memory_folder, &room) == 0 &&
           free_megabytes(&room) < watch->machine->memory_mb;
}

/* Writes a remark if a program inside was killed because memory was short, since the program prints nothing itself. */
static void remark_memory(const vk_watch *watch, const char *log, char *error) {
    static const char killed_says[] = "Out of memory: Killed process ";
    const char *killed = strstr(log, killed_says);
    char program[32] = "a program";
    if (!killed)
        return;
    sscanf(killed + strlen(killed_says), "%*d (%31[^)])", program);
    vk_fail(error, "the machine's memory of %llu MB was used up, and %s was killed; give it more with --memory",
            (unsigned long long)watch->machine->memory_mb, program);
}

static bool judge_log(const vk_watch *watch, const char *log, int kernel_status, int *status, char *error) {
    static const char panic_says[] = "Kernel panic - not syncing: ";
    const char *said = last_of(log, VK_INIT_SAYS), *panic = last_of(log, panic_says);
    const char *words = said ? said + strlen(VK_INIT_SAYS) : "";
    int number;
    remark_memory(watch, log, error);
    if (had_no_room(watch, log, kernel_status, words))
        return vk_fail(error, "no room for the machine's memory in %s; make room, or name another folder with TMPDIR",
                       watch->machine->memory_folder);
    if (sscanf(words, "exit %d", &number) == 1) {
        *status = number << 8;
        return true;
    }
    if (sscanf(words, "signal %d", &number) == 1) {
        *status = number;
        return true;
    }
    if (panic) {
        panic += strlen(panic_says);
        return vk_fail(error, "the kernel panicked at virtual t = %.6f s: %.*s", command_s(watch), line_length(panic),
                       panic);
    }
    if (said)
        return vk_fail(error, "the machine %.*s", line_length(words), words);
    if (WIFSIGNALED(kernel_status))
        return vk_fail(error, "the kernel died of SIG%s at virtual t = %.6f s", sigabbrev_np(WTERMSIG(kernel_status)),
                       command_s(watch));
    const char *last = last_line(log);
    return vk_fail(error, "the kernel ended before the command did, at virtual t = %.6f s; its log ends with: %.*s",
                   command_s(watch), line_length(last), last);
}

/* Returns the last LOG_READ_BYTES of the log, which programs inside can make arbitrarily long. Free it. */
static char *log_text(int fd) {
    struct stat facts;
    const off_t whole = fstat(fd, &facts) == 0 ? facts.st_size : 0;
    const size_t size = whole < LOG_READ_BYTES ? (size_t)whole : LOG_READ_BYTES;
    char *text = calloc(1, size + 1);
    if (text && pread(fd, text, size, whole - (off_t)size) != (ssize_t)size)
        text[0] = '\0';
    for (size_t k = 0; text && k < size; k++)
        text[k] = text[k] ? text[k] : ' ';
    return text;
}

static bool run(const vk_machine *machine, int log, int archive, int *status, int *interrupted, char *error) {
    const double now = (double)clock_us() / 1e6;
    vk_watch watch = {.machine = machine, .begun_s = now, .moved_s = now};
    watch.address = vk_symbol_address(machine->kernel, "time_travel_time");
    if (watch.address == 0)
        return vk_fail(error, "%s is no kernel of x86-64 with time travel; build one with `make kernel`",
                       machine->kernel);
    block_signals(&watch.awaited);
    const pid_t parent = getpid();
    watch.pid = fork();
    if (watch.pid == 0)
        become_kernel(machine, log, archive, parent);
    if (watch.pid < 0)
        return vk_fail(error, "cannot start the kernel: %s", strerror(errno));
    int kernel_status = 0;
    if (!watch_until_end(&watch, &kernel_status, interrupted, error))
        return false;
    char *text = log_text(log);
    const bool good = text ? judge_log(&watch, text, kernel_status, status, error) : vk_fail(error, "no memory");
    free(text);
    return good;
}

bool vk_machine_run(const vk_machine *machine, int *status, int *interrupted, char *error) {
    *interrupted = 0;
    int archive = make_archive(machine, error);
    int log = archive >= 0 ? open_log(machine, error) : -1;
    const bool good = log >= 0 && run(machine, log, archive, status, interrupted, error);
    descriptor_close(&archive);
    descriptor_close(&log);
    make_printable(error); /* programs inside can write control characters to the log */
    return good;
}
