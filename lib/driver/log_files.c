#include "xlink/log_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAME_NAME_MAX 1000 /* qlogs whose clients chose the same CID */

#define QLOG_BUFFER 12288

/* A qlog is opened only while its buffer is written, because a server may have thousands of them. */
typedef struct {
    char path[PATH_MAX];
    dev_t device;
    ino_t inode;
    bool has_failed; /* a write failed; later text is left out, so that the file has no gap */
    size_t len;      /* of text that is not written yet */
    char text[QLOG_BUFFER];
} qlog_file;

struct xl_log_files {
    char *qlog_dir;
    uint64_t qlogs, qlogs_max, qlogs_left_out;
    bool replace;
    FILE *keylog;
};

static void name_qlog(const xl_log_files *files, const char *cid, unsigned copy, bool is_server, char path[PATH_MAX]) {
    char number[16] = "";
    if (copy > 1)
        snprintf(number, sizeof number, "-%u", copy);
    snprintf(path, PATH_MAX, "%s/%s%s_%s.sqlog", files->qlog_dir, cid, number, is_server ? "server" : "client");
}

/* Creates a new file; O_EXCL refuses an existing file or link. Returns its descriptor, or -1. */
static int create_qlog(const xl_log_files *files, const char *cid, bool is_server, char path[PATH_MAX]) {
    int fd = -1;
    for (unsigned copy = 1; fd < 0 && copy <= SAME_NAME_MAX; copy++) {
        name_qlog(files, cid, copy, is_server, path);
        if (files->replace)
            unlink(path);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

/* Appends the buffer. A file that has replaced the created one is not touched. */
static void flush_qlog(qlog_file *q) {
    struct stat now;
    bool is_due = q->len > 0 && !q->has_failed;
    int fd = is_due ? open(q->path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    bool ok = fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == q->device && now.st_ino == q->inode;
    for (size_t at = 0; ok && at < q->len;) {
        ssize_t n = write(fd, q->text + at, q->len - at);
        ok = n > 0 || (n < 0 && errno == EINTR);
        at += n > 0 ? (size_t)n : 0;
    }
    q->has_failed |= is_due && !ok;
    if (fd >= 0)
        close(fd);
    q->len = 0;
}

static qlog_file *new_qlog(const xl_log_files *files, const char *cid, bool is_server) {
    struct stat created;
    qlog_file *q = calloc(1, sizeof *q);
    int fd = q ? create_qlog(files, cid, is_server, q->path) : -1;
    bool ok = fd >= 0 && fstat(fd, &created) == 0;
    if (fd >= 0)
        close(fd);
    if (!ok) {
        free(q);
        return NULL;
    }
    q->device = created.st_dev;
    q->inode = created.st_ino;
    return q;
}

static void *open_qlog(void *user, bool is_server, const uint8_t *odcid, size_t odcid_len) {
    xl_log_files *files = user;
    char hex[2 * XL_MAX_CID_BYTES + 1] = "";
    for (size_t i = 0; i < odcid_len && i < XL_MAX_CID_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", odcid[i]);
    bool is_full = files->qlogs_max > 0 && files->qlogs >= files->qlogs_max;
    qlog_file *q = is_full ? NULL : new_qlog(files, hex, is_server);
    files->qlogs += q != NULL;
    files->qlogs_left_out += !q;
    return q;
}

static void write_qlog(void *sink, const char *text, size_t len) {
    qlog_file *q = sink;
    while (len > 0) {
        size_t room = sizeof q->text - q->len, n = len < room ? len : room;
        memcpy(q->text + q->len, text, n);
        q->len += n;
        text += n;
        len -= n;
        if (q->len == sizeof q->text)
            flush_qlog(q);
    }
}

static void close_qlog(void *sink) {
    flush_qlog(sink);
    free(sink);
}

/* Writes complete lines, so that those of endpoints that share the file do not mix. */
static void write_keylog(void *user, const char *line) {
    const xl_log_files *files = user;
    fprintf(files->keylog, "%s\n", line);
    fflush(files->keylog);
}

static bool open_directory(xl_log_files *files, const char *dir, char *error, size_t error_cap) {
    if (strlen(dir) + 2 * XL_MAX_CID_BYTES + 32 > PATH_MAX) {
        snprintf(error, error_cap, "the name of the qlog directory is too long");
        return false;
    }
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        snprintf(error, error_cap, "cannot make the qlog directory %s: %s", dir, strerror(errno));
        return false;
    }
    if (access(dir, W_OK | X_OK) != 0) {
        snprintf(error, error_cap, "cannot write to the qlog directory %s: %s", dir, strerror(errno));
        return false;
    }
    files->qlog_dir = strdup(dir);
    if (!files->qlog_dir)
        snprintf(error, error_cap, "out of memory");
    return files->qlog_dir != NULL;
}

/* Sets mode 0600 on an existing regular file, so that only its owner can read the new lines. */
static bool keep_to_owner(int fd) {
    struct stat file;
    if (fstat(fd, &file) != 0)
        return false;
    return !S_ISREG(file.st_mode) || (file.st_mode & 07777) == 0600 || fchmod(fd, 0600) == 0;
}

static bool open_keylog(xl_log_files *files, const char *name, char *error, size_t error_cap) {
    if (files->replace)
        unlink(name);
    int fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    bool is_private = fd >= 0 && keep_to_owner(fd);
    files->keylog = is_private ? fdopen(fd, "a") : NULL;
    if (files->keylog)
        return true;
    snprintf(error, error_cap, fd < 0 || is_private ? "cannot write to %s: %s" : "cannot keep %s to its owner: %s",
             name, strerror(errno));
    if (fd >= 0)
        close(fd);
    return false;
}

xl_log_files *xl_log_files_open(const xl_log_options *o, char *error, size_t error_cap) {
    xl_log_files *files = calloc(1, sizeof *files);
    if (!files) {
        snprintf(error, error_cap, "out of memory");
        return NULL;
    }
    files->qlogs_max = o->qlog_files;
    files->replace = o->replace;
    if ((!o->qlog_dir || open_directory(files, o->qlog_dir, error, error_cap)) &&
        (!o->keylog_file || open_keylog(files, o->keylog_file, error, error_cap)))
        return files;
    xl_log_files_close(files);
    return NULL;
}

xl_log xl_log_files_log(xl_log_files *files) {
    xl_log log = {.user = files};
    if (files->qlog_dir) {
        log.qlog_open = open_qlog;
        log.qlog_write = write_qlog;
        log.qlog_close = close_qlog;
    }
    if (files->keylog)
        log.keylog = write_keylog;
    return log;
}

uint64_t xl_log_files_left_out(const xl_log_files *files) {
    return files->qlogs_left_out;
}

void xl_log_files_close(xl_log_files *files) {
    if (!files)
        return;
    if (files->keylog)
        (void)fclose(files->keylog);
    free(files->qlog_dir);
    free(files);
}
