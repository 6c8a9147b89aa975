#include "xlink/session_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* File format: server name, NUL, session. */
#define NAME_MAX_BYTES 256

struct xl_session_file {
    char *name; /* of the file; NULL: memory only */
    char server[NAME_MAX_BYTES];
    uint8_t *session;
    size_t len;
    int error;
};

static void read_file(xl_session_file *f) {
    FILE *in = fopen(f->name, "rbe");
    if (!in)
        return;
    size_t at = 0;
    int c;
    while (at < sizeof f->server - 1 && (c = getc(in)) > 0)
        f->server[at++] = (char)c;
    f->server[at] = '\0';
    f->len = fread(f->session, 1, XL_SESSION_MAX_BYTES, in);
    fclose(in);
}

static bool write_all(int fd, const void *data, size_t len) {
    const uint8_t *at = data;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static void write_file(xl_session_file *f) {
    char beside[4096];
    if ((size_t)snprintf(beside, sizeof beside, "%s.new", f->name) >= sizeof beside) {
        f->error = f->error ? f->error : ENAMETOOLONG;
        return;
    }
    (void)unlink(beside);
    const int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write_all(fd, f->server, strlen(f->server) + 1) && write_all(fd, f->session, f->len);
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    ok = ok && rename(beside, f->name) == 0;
    if (!ok && !f->error)
        f->error = errno;
}

static void save(void *user, const char *server_name, const uint8_t *session, size_t len) {
    xl_session_file *f = user;
    if (len > XL_SESSION_MAX_BYTES || strlen(server_name) >= sizeof f->server)
        return;
    snprintf(f->server, sizeof f->server, "%s", server_name);
    memcpy(f->session, session, len);
    f->len = len;
    if (f->name)
        write_file(f);
}

static size_t load(void *user, const char *server_name, uint8_t *session, size_t cap) {
    const xl_session_file *f = user;
    if (f->len > cap || strcmp(f->server, server_name) != 0)
        return 0;
    memcpy(session, f->session, f->len);
    return f->len;
}

xl_session_file *xl_session_file_open(const char *name) {
    xl_session_file *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->name = name ? strdup(name) : NULL;
    f->session = malloc(XL_SESSION_MAX_BYTES);
    if (!f->session || (name && !f->name)) {
        xl_session_file_close(f, NULL, 0);
        return NULL;
    }
    if (f->name)
        read_file(f);
    return f;
}

bool xl_session_file_close(xl_session_file *f, char *error, size_t error_cap) {
    if (!f)
        return true;
    const bool ok = f->error == 0;
    if (!ok)
        snprintf(error, error_cap, "cannot write the session to %s: %s", f->name, strerror(f->error));
    if (f->session)
        explicit_bzero(f->session, XL_SESSION_MAX_BYTES);
    free(f->session);
    free(f->name);
    free(f);
    return ok;
}

xl_sessions xl_session_file_sessions(xl_session_file *f) {
    return (xl_sessions){.user = f, .save = save, .load = load};
}
