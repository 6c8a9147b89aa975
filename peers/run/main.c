/* Runs a player over a relay: starts the client side of a relay, waits until it is ready, runs the player on the
 * relay's socket, and stops the relay after the player. The exit status is the player's.
 *
 *     relay-run --path wifi:@0 --path lte:@1 --server @:4433 --out relay.jsonl -- RELAY ... -- PLAYER ...
 *
 * `--socket FILE --server ADDR:PORT --path NAME:ADDR ...` is appended to RELAY, and `--server unix:FILE` to PLAYER. The
 * relay's records go to --out. If the relay is not `ready` in time, the exit status is 2. Records after OUT_MAX_BYTES
 * are left out, and a relay that writes more than FILE_MAX_BYTES to a file is ended. Processes that the relay has
 * started end with it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/settings.h"

#define PROGRAM        "relay-run"
#define MAX_PATHS      8
#define MAX_WORDS      256
#define TEXT_BYTES     160
#define LINE_BYTES     4096
#define OUT_MAX_BYTES  (16u << 20)
#define FILE_MAX_BYTES (64u << 20) /* per file that the relay writes, such as its standard error */
#define STOP_MS        2000

typedef struct {
    char path[MAX_PATHS][TEXT_BYTES]; /* NAME:ADDR */
    size_t path_count;
    char server[TEXT_BYTES];
    const char *out_file, *keylog_file;
    uint64_t wait_ms;
} options;

typedef struct {
    options o;
    char folder[64], socket[96];
    char **relay_words, **player_words;
    FILE *out;
    size_t out_bytes;
    char line[LINE_BYTES]; /* incomplete line of the relay */
    size_t line_len;
    bool is_ready;
    pid_t relay, player;
    int from_relay, signals;
} runner;

/* ---- the command line ---- */

/* Returns the address. "@I" is that of mpshell's path I, "@" its gateway; NULL: not inside mpshell. */
static const char *address(const char *text, size_t len, char *copy, size_t cap) {
    char variable[48];
    snprintf(copy, cap, "%.*s", (int)len, text);
    if (copy[0] != '@')
        return copy;
    if (len == 1)
        snprintf(variable, sizeof variable, "MPSHELL_GATEWAY");
    else
        snprintf(variable, sizeof variable, "MPSHELL_PATH_%.8s_ADDR", copy + 1);
    return getenv(variable);
}

static bool refuse(char *reason, size_t cap, const char *what, const char *text) {
    return error_set(reason, cap, "takes %s, not '%.80s' ('@' needs mpshell)", what, text);
}

static bool read_path(void *into, const char *text, char *reason, size_t cap) {
    options *o = into;
    char copy[TEXT_BYTES];
    const char *colon = strchr(text, ':');
    const char *ip = colon ? address(colon + 1, strlen(colon + 1), copy, sizeof copy) : NULL;
    if (!ip || colon == text || o->path_count == MAX_PATHS)
        return refuse(reason, cap, "NAME:ADDR, at most 8 times", text);
    (void)snprintf(o->path[o->path_count++], TEXT_BYTES, "%.*s:%.100s", (int)(colon - text), text, ip);
    return true;
}

static bool read_server(void *into, const char *text, char *reason, size_t cap) {
    options *o = into;
    char copy[TEXT_BYTES];
    const char *colon = strrchr(text, ':');
    const char *ip = colon ? address(text, (size_t)(colon - text), copy, sizeof copy) : NULL;
    if (!ip)
        return refuse(reason, cap, "ADDR:PORT", text);
    (void)snprintf(o->server, sizeof o->server, "%.100s%.8s", ip, colon);
    return true;
}

#define FIELD(member) SETTING_FIELD(options, member)

static const setting rows[] = {
    {"path", SETTING_OWN, .read = read_path, .value = "NAME:ADDR", .repeats = true,
     .help = "A path and its local address; @I is path I of mpshell. The first is the primary path."},
    {"server", SETTING_OWN, .read = read_server, .value = "ADDR:PORT",
     .help = "The relay of the server side; @:PORT is the gateway of mpshell."},
    {"out", SETTING_TEXT, FIELD(out_file), .value = "FILE", .help = "Where the relay's records go."},
    {"keylog", SETTING_TEXT, FIELD(keylog_file), .value = "FILE",
     .help = "Where the relay appends its TLS secrets in NSS key log format; it reads SSLKEYLOGFILE."},
    {"wait_ms", SETTING_WHOLE, FIELD(wait_ms), .least = 1, .most = 600000, .value = "MS", .fallback = "15000",
     .help = "How long the relay may take to get ready."},
    {0},
};

static bool say(char *error, const char *sentence) {
    return error_set(error, SETTINGS_ERROR_BYTES, "%s", sentence);
}

static int print_usage(void) {
    printf("usage: " PROGRAM " [options] -- RELAY ... -- PLAYER ...\n");
    settings_help(stdout, rows, 0);
    return 0;
}

/* Splits argv at the second "--"; the options ended at the first. */
static bool split(runner *r, int argc, char **argv, int rest, char *error) {
    r->relay_words = argv + rest;
    for (int i = rest; i < argc && !r->player_words; i++) {
        if (strcmp(argv[i], "--") == 0) {
            argv[i] = NULL;
            r->player_words = argv + i + 1;
        }
    }
    return (r->player_words && r->relay_words[0] && r->player_words[0]) ||
           say(error, "This takes -- RELAY ... -- PLAYER ...; see --help.");
}

/* ---- children ---- */

static size_t add_words(char **out, char *const *words) {
    size_t n = 0;
    while (words[n] && n < MAX_WORDS / 2) {
        out[n] = words[n];
        n++;
    }
    return n;
}

/* stdout_fd >= 0: starts the relay, in its own process group, so that its children end with it. */
static pid_t start_child(char **words, int stdout_fd, const char *keylog_file) {
    const bool is_relay = stdout_fd >= 0;
    const struct rlimit bound = {FILE_MAX_BYTES, FILE_MAX_BYTES};
    const pid_t parent = getpid(), pid = fork();
    if (pid > 0 && is_relay)
        (void)setpgid(pid, pid); /* in parent and child, whichever runs first */
    if (pid != 0)
        return pid;
    if (is_relay && (setpgid(0, 0) != 0 || setrlimit(RLIMIT_FSIZE, &bound) != 0))
        _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || (is_relay && dup2(stdout_fd, STDOUT_FILENO) < 0))
        _exit(127);
    if (is_relay)
        unsetenv("MPSHELL_READY_FD"); /* for the player only */
    if (keylog_file)
        setenv("SSLKEYLOGFILE", keylog_file, 1);
    execvp(words[0], words);
    error_say(PROGRAM, "%s cannot be started: %s.", words[0], strerror(errno));
    _exit(127);
}

static bool start_relay(runner *r) {
    static char option[3][16] = {"--socket", "--server", "--path"};
    char *words[MAX_WORDS];
    size_t n = add_words(words, r->relay_words);
    int fds[2];
    if (pipe(fds) != 0)
        return false;
    words[n++] = option[0];
    words[n++] = r->socket;
    words[n++] = option[1];
    words[n++] = r->o.server;
    for (size_t i = 0; i < r->o.path_count; i++) {
        words[n++] = option[2];
        words[n++] = r->o.path[i];
    }
    words[n] = NULL;
    r->relay = start_child(words, fds[1], r->o.keylog_file);
    close(fds[1]);
    r->from_relay = fds[0];
    return r->relay > 0;
}

static bool start_player(runner *r) {
    static char option[] = "--server";
    char *words[MAX_WORDS], server[128];
    size_t n = add_words(words, r->player_words);
    snprintf(server, sizeof server, "unix:%s", r->socket);
    words[n++] = option;
    words[n++] = server;
    words[n] = NULL;
    r->player = start_child(words, -1, NULL);
    return r->player > 0;
}

/* ---- the relay's output ---- */

static bool says_ready(const char *line) {
    if (!strstr(line, "\"ready\"")) /* parse only lines that may match */
        return false;
    json_t *record = json_loads(line, 0, NULL);
    const char *event = json_string_value(json_object_get(record, "event"));
    const bool is_ready = event && strcmp(event, "ready") == 0;
    json_decref(record);
    return is_ready;
}

static void take_line(runner *r) {
    r->line[r->line_len] = '\0';
    r->is_ready = r->is_ready || says_ready(r->line);
    if (r->out && r->out_bytes + r->line_len < OUT_MAX_BYTES) {
        r->out_bytes += r->line_len + 1;
        fprintf(r->out, "%s\n", r->line);
    }
    r->line_len = 0;
}

/* False at the end of the relay's output. */
static bool read_relay(runner *r) {
    char piece[LINE_BYTES];
    const ssize_t n = read(r->from_relay, piece, sizeof piece);
    for (ssize_t i = 0; i < n; i++)
        if (piece[i] == '\n')
            take_line(r);
        else if (r->line_len < LINE_BYTES - 1)
            r->line[r->line_len++] = piece[i];
    return n > 0 || (n < 0 && errno == EINTR);
}

static bool wait_ready(runner *r) {
    const uint64_t until = clock_us() / 1000 + r->o.wait_ms;
    while (!r->is_ready) {
        const uint64_t now = clock_us() / 1000;
        struct pollfd wait[] = {{.fd = r->from_relay, .events = POLLIN}, {.fd = r->signals, .events = POLLIN}};
        if (now >= until || poll(wait, 2, (int)(until - now)) == 0)
            return error_say(PROGRAM, "%s was not ready within %.3g s.", r->relay_words[0],
                             (double)r->o.wait_ms / 1000);
        struct signalfd_siginfo info;
        if (wait[1].revents && read(r->signals, &info, sizeof info) == sizeof info && info.ssi_signo != SIGCHLD)
            return false;
        if ((wait[0].revents & (POLLIN | POLLHUP)) && !read_relay(r) && !r->is_ready)
            return error_say(PROGRAM, "%s ended before it was ready.", r->relay_words[0]);
    }
    return true;
}

/* Waits for the player's end and returns its status. If the relay ends, the player's connections close. */
static int wait_player(runner *r) {
    for (bool is_open = true;;) {
        int status;
        const pid_t ended = waitpid(r->player, &status, WNOHANG);
        if (ended == r->player)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        struct pollfd wait[] = {{.fd = r->signals, .events = POLLIN},
                                {.fd = is_open ? r->from_relay : -1, .events = POLLIN}};
        poll(wait, 2, -1);
        struct signalfd_siginfo info;
        if (wait[0].revents && read(r->signals, &info, sizeof info) == sizeof info && info.ssi_signo != SIGCHLD)
            kill(r->player, (int)info.ssi_signo);
        if (wait[1].revents)
            is_open = read_relay(r);
    }
}

/* Whether the relay has ended. It remains a zombie, so that its process group ID is not reused. */
static bool has_ended(const runner *r) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)r->relay, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

/* Sends SIGTERM to the relay, and keeps its last records. After its end or STOP_MS, sends SIGKILL to its process
 * group. */
static void stop_relay(runner *r) {
    const uint64_t until = clock_us() / 1000 + STOP_MS;
    kill(r->relay, SIGTERM);
    for (bool is_open = true; is_open || !has_ended(r);) {
        const uint64_t now = clock_us() / 1000;
        struct pollfd wait[] = {{.fd = is_open ? r->from_relay : -1, .events = POLLIN},
                                {.fd = r->signals, .events = POLLIN}};
        struct signalfd_siginfo info;
        /* A child of the relay may hold the pipe open. */
        if (now >= until || (poll(wait, 2, has_ended(r) ? 0 : (int)(until - now)) == 0 && has_ended(r)))
            break;
        (void)!read(r->signals, &info, sizeof info);
        if (wait[0].revents)
            is_open = read_relay(r);
    }
    if (r->line_len > 0)
        take_line(r);
    kill(-r->relay, SIGKILL);
    waitpid(r->relay, NULL, 0);
}

/* Makes a folder for the socket, whose name must be short, which the run's folder may not allow. */
static bool make_folder(runner *r) {
    static const char *const places[] = {"/tmp", "/run"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(r->folder, sizeof r->folder, "%s/railyard-relay-XXXXXX", places[i]);
        if (mkdtemp(r->folder))
            return true;
    }
    return false;
}

/* Creates the output files; only the owner can read the secrets. Returns the name of one that cannot be written, or
 * NULL. */
static const char *open_files(runner *r) {
    if (r->o.out_file && !(r->out = fopen(r->o.out_file, "we")))
        return r->o.out_file;
    if (!r->o.keylog_file)
        return NULL;
    const int fd = open(r->o.keylog_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool is_private = fd >= 0 && fchmod(fd, 0600) == 0;
    return is_private && close(fd) == 0 ? NULL : r->o.keylog_file;
}

static void watch_signals(runner *r) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run(runner *r) {
    int status = 2;
    if (!start_relay(r))
        return error_status(PROGRAM, "cannot start %s: %s.", r->relay_words[0], strerror(errno));
    if (wait_ready(r) && start_player(r))
        status = wait_player(r);
    stop_relay(r);
    return status;
}

int main(int argc, char **argv) {
    static runner r;
    char error[SETTINGS_ERROR_BYTES];
    bool help = false;
    int rest = 0;
    r.o.wait_ms = 15000;
    const setting_tables tables = {.table = {{rows, &r.o, 0}}, .count = 1};
    if (!settings_read_args(&tables, argc, argv, &help, &rest, error) ||
        (!help &&
         (!split(&r, argc, argv, rest, error) || ((r.o.path_count == 0 || r.o.server[0] == '\0') &&
                                                  !say(error, "--path and --server are required; see --help.")))))
        return error_status(PROGRAM, "%s", error);
    if (help)
        return print_usage();
    if (!make_folder(&r))
        return error_status(PROGRAM, "cannot make a folder for the socket: %s.", strerror(errno));
    snprintf(r.socket, sizeof r.socket, "%s/relay", r.folder);
    const char *refused = open_files(&r);
    if (refused) {
        error_say(PROGRAM, "cannot write %s: %s.", refused, strerror(errno));
        rmdir(r.folder);
        return 2;
    }
    watch_signals(&r);
    const int status = run(&r);
    if (r.out && fclose(r.out) != 0)
        error_say(PROGRAM, "cannot write %s: %s.", r.o.out_file, strerror(errno));
    unlink(r.socket);
    rmdir(r.folder);
    return status;
}
