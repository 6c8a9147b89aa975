/* vkernel: runs a command in a separate Linux kernel, in virtual time. See docs/howto/kernel.md. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/settings.h"
#include "emulator/kernel/machine.h"

#define EXIT_CANNOT_START 2
#define EXIT_NOT_TO_END   125 /* the kernel, not COMMAND, ended the run */
/* The first second of 2026, the same for every run. */
#define CLOCK_S 1767225600

#define FIELD(member) SETTING_FIELD(vk_machine, member)

static const setting rows[] = {
    {"kernel", SETTING_TEXT, FIELD(kernel), .value = "FILE",
     .fallback = "$RAILYARD_KERNEL, else what `make kernel` built",
     .help = "The kernel: User-Mode Linux with time travel."},
    {"seed", SETTING_WHOLE, FIELD(seed), .most = INT64_MAX, .value = "N", .fallback = "1",
     .help = "Seed of all randomness inside."},
    {"folder", SETTING_TEXT, FIELD(folder), .value = "DIR", .fallback = "the current one",
     .help = "COMMAND's folder, the only one of the host that can be written inside."},
    {"at", SETTING_TEXT, FIELD(at), .value = "DIR", .fallback = "/mnt",
     .help = "Where that folder is inside: a folder that the host has, too."},
    {"log", SETTING_TEXT, FIELD(log), .value = "FILE", .help = "Write the kernel's messages there."},
    {"memory", SETTING_WHOLE, FIELD(memory_mb), .least = 64, .most = 65536, .value = "MB", .fallback = "768",
     .help = "Memory of the machine; the host gives what is used, in $TMPDIR, else /dev/shm or /tmp."},
    {"core", SETTING_WHOLE, FIELD(core), .most = 1023, .value = "N", .fallback = "the one that it starts on",
     .help = "The host's processor to run on."},
    {"clock", SETTING_WHOLE, FIELD(clock_s), .most = 4102444800, .value = "S", .fallback = "1767225600",
     .help = "The clock inside at the start, in seconds since 1970."},
    {"stall_limit", SETTING_WHOLE, FIELD(stall_s), .least = 1, .most = 86400, .value = "S", .fallback = "60",
     .help = "End the run when virtual time stood still for so long on the host's clock."},
    {"limit", SETTING_WHOLE, FIELD(limit_s), .most = 604800, .value = "S", .fallback = "none",
     .help = "End the run after so long on the host's clock."},
    {0},
};

static int complain(const char *sentence, int status) {
    fprintf(stderr, "vkernel: %s\n", sentence);
    return status;
}

static int help(void) {
    printf("usage: vkernel [options] -- COMMAND...\n"
           "\n"
           "Runs COMMAND in a Linux kernel of its own, in virtual time: computation takes none, and time jumps to the\n"
           "next timer when all sleep. The same command with the same seed writes the same bytes again, as long as it\n"
           "takes time and randomness from system calls: RDTSC, RDRAND and CPUID are those of the host.\n"
           "\n"
           "The host's files are there, read-only but for one folder; its network is not. Needs no privileges, and\n"
           "has none: COMMAND is root inside, and may read on the host what you may. If root starts it, that is what\n"
           "the folder's owner may.\n"
           "\n");
    settings_help(stdout, rows, 0);
    printf("\n"
           "The exit status is COMMAND's (128 + n if signal n ended it), 125 if it did not run to its end, 2 if the\n"
           "kernel cannot start.\n");
    return 0;
}

/* Returns a file that is beside this program, or installed in libexec/. */
static const char *part(char path[PATH_MAX], const char *name) {
    static const char *const places[] = {"", "../libexec/railyard/"};
    for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
        const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 128);
        path[length > 0 ? length : 0] = '\0';
        char *slash = strrchr(path, '/');
        char *rest = slash ? slash + 1 : path;
        snprintf(rest, (size_t)(path + PATH_MAX - rest), "%s%s", places[k], name);
        if (access(path, R_OK) == 0)
            break;
    }
    return path;
}

/* Returns $RAILYARD_KERNEL, or the file that `make kernel` builds (emulator/kernel/build.sh). */
static const char *built_kernel(char path[PATH_MAX]) {
    const char *named = getenv("RAILYARD_KERNEL"), *own = getenv("RAILYARD_KERNEL_CACHE");
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const struct passwd *user = home ? NULL : getpwuid(getuid());
    if (named && *named)
        return named;
    if (own && *own)
        snprintf(path, PATH_MAX, "%s/linux", own);
    else if (cache && *cache)
        snprintf(path, PATH_MAX, "%s/railyard/kernel/linux", cache);
    else
        snprintf(path, PATH_MAX, "%s/.cache/railyard/kernel/linux", home ? home : user ? user->pw_dir : "");
    return path;
}

/* Whether the path is a folder with these rights (access(2)). False with errno set. */
static bool is_folder(const char *path, int rights) {
    int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const bool good = folder >= 0 && access(path, rights) == 0;
    const int why = errno;
    descriptor_close(&folder);
    errno = why;
    return good;
}

/* The folder inside, without links, which would lead elsewhere before the machine has its root. */
static bool resolve_at(vk_machine *machine, char *error) {
    static const char *const own[] = {"/proc", "/sys", "/dev", "/run"};
    static char path[PATH_MAX];
    if (machine->at[0] != '/' || !realpath(machine->at, path) || !is_folder(path, F_OK))
        return vk_fail(error, "--at takes a folder that the host has, too, not '%s'", machine->at);
    machine->at = path;
    bool is_own = strcmp(path, "/") == 0;
    for (size_t k = 0; k < sizeof own / sizeof own[0]; k++) {
        const size_t length = strlen(own[k]);
        is_own = is_own || (strncmp(path, own[k], length) == 0 && (path[length] == '/' || path[length] == '\0'));
    }
    return !is_own || vk_fail(error,
                              "the machine has its own /, /proc, /sys, /dev and /run, so the folder cannot be %s "
                              "inside; start in another one, or name one with --at",
                              path);
}

static bool check_folders(const vk_machine *machine, char *error) {
    const char *memory = machine->memory_folder;
    struct statvfs facts;
    if (!is_folder(machine->folder, R_OK | X_OK))
        return vk_fail(error, "--folder %s: %s; name a folder that you may read", machine->folder, strerror(errno));
    if (!is_folder(memory, W_OK | X_OK) || statvfs(memory, &facts) != 0)
        return vk_fail(error, "no place for the machine's memory: %s: %s; name a folder with TMPDIR", memory,
                       strerror(errno));
    if (facts.f_flag & ST_NOEXEC)
        return vk_fail(
            error, "no place for the machine's memory: %s is mounted noexec; name another folder with TMPDIR", memory);
    return true;
}

static bool check(vk_machine *machine, char *error) {
    if (access(machine->kernel, X_OK) != 0)
        return vk_fail(error, "no kernel: %s: %s; build it with `make kernel`, or name one with RAILYARD_KERNEL",
                       machine->kernel, strerror(errno));
    return check_folders(machine, error) && resolve_at(machine, error);
}

static int run(vk_machine *machine) {
    char error[VK_ERROR_SIZE] = "";
    int status = 0, interrupted = 0;
    if (!check(machine, error))
        return complain(error, EXIT_CANNOT_START);
    if (vk_machine_run(machine, &status, &interrupted, error)) {
        const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        return error[0] ? complain(error, code) : code;
    }
    return interrupted ? 128 + interrupted : complain(error, EXIT_NOT_TO_END);
}

int main(int argc, char **argv) {
    static char kernel[PATH_MAX], init[PATH_MAX], library[PATH_MAX];
    extern char **environ;
    vk_machine machine = {.kernel = built_kernel(kernel),
                          .init = part(init, "vkernel-init"),
                          .seed_library = part(library, "vkernel-seed.so"),
                          .seed = 1,
                          .memory_mb = 768,
                          .clock_s = CLOCK_S,
                          .stall_s = 60,
                          .core = -1,
                          .folder = ".",
                          .at = "/mnt",
                          .environment = environ};
    const setting_tables tables = {.table = {{rows, &machine, 0}}, .count = 1};
    char error[SETTINGS_ERROR_BYTES];
    bool wants_help = false;
    int rest = argc;
    if (!settings_read_args(&tables, argc, argv, &wants_help, &rest, error))
        return complain(error, EXIT_CANNOT_START);
    if (wants_help)
        return help();
    if (rest >= argc)
        return complain("no command; give it after --, for example: -- sh -c 'sleep 1000; date'", EXIT_CANNOT_START);
    machine.command = argv + rest;
    machine.memory_folder = vk_memory_folder(machine.memory_mb);
    return run(&machine);
}
