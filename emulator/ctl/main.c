/* mpshell-ctl SOCKET COMMAND...: sends one command to the control socket of an mpshell and prints the answer. Exit
 * status 0: done, 1: refused, 2: no mpshell there. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LINE_BYTES 1024

static int fail(const char *socket_path, const char *what) {
    fprintf(stderr, "mpshell-ctl: %s: %s\n", socket_path, what);
    return 2;
}

/* Joins the words to one line. Returns its length; 0 if it is too long. */
static size_t join(char line[LINE_BYTES], char **words) {
    size_t used = 0;
    for (char **word = words; *word; word++) {
        size_t length = strlen(*word);
        if (used + length + 1 > LINE_BYTES)
            return 0;
        memcpy(line + used, *word, length);
        used += length;
        line[used++] = word[1] ? ' ' : '\n';
    }
    return used;
}

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

static const char help[] =
    "usage: mpshell-ctl SOCKET COMMAND...\n"
    "\n"
    "Sends one command to the mpshell that listens on SOCKET (mpshell --control SOCKET) and prints the answer, a JSON\n"
    "object. Inside the shell, $MPSHELL_CONTROL is the socket.\n"
    "\n"
    "  down PATH         lose packets that reach the path's queue; packets in the queue wait\n"
    "  up PATH           end down\n"
    "  delay PATH MS     set the one-way delay of packets that arrive from now on\n"
    "  loss PATH LOSS    set the random loss, as in mpshell --path: 0..1 or ge:p=P:r=P\n"
    "  rate PATH RATE    replace the trace by a constant rate, for example 12mbps\n"
    "  trace PATH FILE   replace the trace by another one\n"
    "  mtu PATH BYTES    lose IP packets that are larger, 68 to 1500\n"
    "  reorder PATH P MS delay packets by MS more, with probability P; reorder PATH 0 ends it\n"
    "  duplicate PATH P  duplicate packets with probability P\n"
    "  rebind PATH       let the path's NAT forget its mappings (mpshell --path ...,nat=...)\n"
    "  interface PATH down|up\n"
    "                    take the path's interface away, with its addresses and routes, or bring it back\n"
    "  stats             print the counters of all links\n"
    "\n"
    "PATH:up and PATH:down select one direction. Example: mpshell-ctl s down wifi\n"
    "Exit status: 0 done, 1 refused, 2 no mpshell at SOCKET.\n";

static int help_or_complaint(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            return 0;
        }
    }
    fprintf(stderr, "mpshell-ctl: %s; see mpshell-ctl --help\n",
            argc < 2 ? "no socket; give the SOCKET of mpshell --control and a command" : "no command for the socket");
    return 2;
}

int main(int argc, char **argv) {
    char line[LINE_BYTES];
    if (argc < 3 || strcmp(argv[1], "--help") == 0)
        return help_or_complaint(argc, argv);
    size_t length = join(line, argv + 2);
    if (length == 0)
        return fail(argv[1], "the command is longer than 1023 bytes");
    int fd = connect_to(argv[1]);
    if (fd < 0) {
        fprintf(stderr, "mpshell-ctl: %s: %s; is mpshell --control %s running?\n", argv[1], strerror(errno), argv[1]);
        return 2;
    }
    if (send(fd, line, length, MSG_NOSIGNAL) != (ssize_t)length)
        return fail(argv[1], strerror(errno));
    FILE *in = fdopen(fd, "r");
    char *answer = NULL;
    size_t size = 0;
    if (!in || getline(&answer, &size, in) <= 0)
        return fail(argv[1], "it ended without an answer");
    fputs(answer, stdout);
    json_t *parsed = json_loads(answer, 0, NULL);
    int status = json_is_true(json_object_get(parsed, "ok")) ? 0 : 1;
    json_decref(parsed);
    free(answer);
    fclose(in);
    return status;
}
