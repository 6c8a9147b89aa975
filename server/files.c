#include "server/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel itself keeps the walk below the root: no "..", no absolute symlink, no /proc magic link leads out. */
static int open_file(void *user, const char *path, uint64_t *size) {
    const server_files *files = user;
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    int fd = (int)syscall(SYS_openat2, files->root, path, &how, sizeof how);
    struct stat st;
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return -1;
    }
    *size = (uint64_t)st.st_size;
    return fd;
}

static ssize_t read_file(void *user, int handle, uint64_t offset, uint8_t *buf, size_t len) {
    (void)user;
    ssize_t n;
    do {
        n = pread(handle, buf, len, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    return n;
}

static void close_file(void *user, int handle) {
    (void)user;
    close(handle);
}

bool server_files_open(server_files *files, const char *root) {
    files->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return files->root >= 0;
}

void server_files_close(server_files *files) {
    if (files->root >= 0)
        close(files->root);
    files->root = -1;
}

catalogue_files server_files_table(server_files *files) {
    return (catalogue_files){.user = files, .open = open_file, .read = read_file, .close = close_file};
}
