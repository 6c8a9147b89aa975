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

/* The words as one line; 0 if they are too long for one. */
static size_t join(char line[LINE_BYTES], char **words) {
    size_t used = 0;
    for (char **word = words; *word != NULL; word++) {
        size_t length = strlen(*word);
        if (used + length + 1 > LINE_BYTES) {
            return 0;
        }
        memcpy(line + used, *word, length);
        used += length;
        line[used++] = word[1] != NULL ? ' ' : '\n';
    }
    return used;
}

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

int main(int argc, char **argv) {
    char line[LINE_BYTES];
    if (argc < 3) {
        fprintf(stderr, "mpshell-ctl: usage: mpshell-ctl SOCKET COMMAND..., for example: mpshell-ctl s down wifi\n");
        return 2;
    }
    size_t length = join(line, argv + 2);
    if (length == 0) {
        return fail(argv[1], "the command is longer than 1023 bytes");
    }
    int fd = connect_to(argv[1]);
    if (fd < 0) {
        return fail(argv[1], strerror(errno));
    }
    if (send(fd, line, length, MSG_NOSIGNAL) != (ssize_t)length) {
        return fail(argv[1], strerror(errno));
    }
    FILE *in = fdopen(fd, "r");
    char *answer = NULL;
    size_t size = 0;
    if (in == NULL || getline(&answer, &size, in) <= 0) {
        return fail(argv[1], "it ended without an answer");
    }
    fputs(answer, stdout);
    json_t *parsed = json_loads(answer, 0, NULL);
    int status = json_is_true(json_object_get(parsed, "ok")) ? 0 : 1;
    json_decref(parsed);
    free(answer);
    fclose(in);
    return status;
}
