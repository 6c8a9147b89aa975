#include "xlink/log_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct xl_log_files {
    char *qlog_dir;
    FILE *keylog;
};

static void *open_qlog(void *user, bool is_server, const uint8_t *odcid, size_t odcid_len) {
    const xl_log_files *files = user;
    char hex[2 * XL_MAX_CID_BYTES + 1] = "", path[PATH_MAX];
    for (size_t i = 0; i < odcid_len && i < XL_MAX_CID_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", odcid[i]);
    int len = snprintf(path, sizeof path, "%s/%s_%s.sqlog", files->qlog_dir, hex, is_server ? "server" : "client");
    return len < 0 || (size_t)len >= sizeof path ? NULL : fopen(path, "we");
}

static void write_qlog(void *sink, const char *text, size_t len) {
    (void)fwrite(text, 1, len, sink);
}

static void close_qlog(void *sink) {
    (void)fclose(sink);
}

/* Whole lines at once, so that endpoints which share the file do not mix theirs. */
static void write_keylog(void *user, const char *line) {
    const xl_log_files *files = user;
    fprintf(files->keylog, "%s\n", line);
    fflush(files->keylog);
}

static bool open_directory(xl_log_files *files, const char *dir, char *error, size_t error_cap) {
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

xl_log_files *xl_log_files_open(const char *qlog_dir, const char *keylog_file, char *error, size_t error_cap) {
    xl_log_files *files = calloc(1, sizeof *files);
    if (!files) {
        snprintf(error, error_cap, "out of memory");
        return NULL;
    }
    bool ok = !qlog_dir || open_directory(files, qlog_dir, error, error_cap);
    if (ok && keylog_file) {
        files->keylog = fopen(keylog_file, "ae");
        ok = files->keylog != NULL;
        if (!ok)
            snprintf(error, error_cap, "cannot write to %s: %s", keylog_file, strerror(errno));
    }
    if (ok)
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

void xl_log_files_close(xl_log_files *files) {
    if (!files)
        return;
    if (files->keylog)
        (void)fclose(files->keylog);
    free(files->qlog_dir);
    free(files);
}
