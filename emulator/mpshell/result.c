#include "emulator/mpshell/result.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/text_file.h"
#include "emulator/mpshell/shell.h"

int mp_output_open(const char *path, int flags) {
    struct stat there;
    bool may_follow = lstat(path, &there) == 0 && (there.st_uid == 0 || there.st_uid == geteuid());
    return open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags | (may_follow ? 0 : O_NOFOLLOW), 0644);
}

/* Opens an existing device, pipe or link now, because COMMAND could replace it later. */
static bool open_as_it_is(mp_result *result) {
    result->file = mp_output_open(result->path, 0);
    return result->file >= 0;
}

static bool open_folder(mp_result *result) {
    char folder[PATH_MAX];
    size_t length = (size_t)(result->name - result->path);
    if (length >= sizeof folder) {
        errno = ENAMETOOLONG;
        return false;
    }
    snprintf(folder, sizeof folder, "%.*s", length == 0 ? 1 : (int)length, length == 0 ? "." : result->path);
    result->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return result->folder >= 0 && access(folder, W_OK) == 0;
}

static bool fail(const mp_result *result, char *error) {
    const char *why = errno == EISDIR  ? "it is a directory"
                      : errno == ELOOP ? "it is a link of another user"
                                       : strerror(errno);
    return mp_fail(error, "cannot write the %s %s: %s", result->what, result->path, why);
}

bool mp_result_open(mp_result *result, const char *what, const char *path, char *error) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    struct stat there;
    *result = (mp_result){.what = what, .path = path, .name = !slash ? path : slash + 1, .folder = -1, .file = -1};
    if (!path)
        return true;
    bool is_there = lstat(path, &there) == 0;
    return (is_there && !S_ISREG(there.st_mode) ? open_as_it_is(result) : open_folder(result)) || fail(result, error);
}

static bool write_as_it_is(int fd, const char *text, size_t length) {
    struct stat there;
    bool is_file = fstat(fd, &there) == 0 && S_ISREG(there.st_mode);
    return (!is_file || ftruncate(fd, 0) == 0) && file_write(fd, text, length);
}

/* Writes a file beside the other one, which then takes its name. */
static bool replace(const mp_result *result, const char *text, size_t length) {
    char beside[NAME_MAX + 1];
    snprintf(beside, sizeof beside, ".mpshell-%d.tmp", (int)getpid());
    unlinkat(result->folder, beside, 0);
    int fd = openat(result->folder, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    const bool written = file_write(fd, text, length);
    if (close(fd) != 0 || !written || renameat(result->folder, beside, result->folder, result->name) != 0) {
        int saved = errno;
        unlinkat(result->folder, beside, 0);
        errno = saved;
        return false;
    }
    return true;
}

bool mp_result_write(const mp_result *result, const char *text, size_t length, char *error) {
    if (!result->path)
        return true;
    return (result->file >= 0 ? write_as_it_is(result->file, text, length) : replace(result, text, length)) ||
           fail(result, error);
}

void mp_result_close(mp_result *result) {
    if (!result->path)
        return;
    descriptor_close(&result->file);
    descriptor_close(&result->folder);
    *result = (mp_result){.path = NULL, .folder = -1, .file = -1};
}
