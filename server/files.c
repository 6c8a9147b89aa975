#include "server/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptors.h"

#define BUCKETS 1024

/* Identifies a file and a version of its content. */
typedef struct {
    unsigned device_major, device_minor;
    uint64_t inode, size;
    struct statx_timestamp born, modified; /* born: 0 if the file system does not record it */
} version;

typedef struct served_file {
    char *path;
    version version;
    size_t responses; /* 0: the entry is unused */
    int fd;           /* -1: not open */
    int next;         /* handle of the next in its bucket, or of the next unused one */
} served_file;

/* ---- Descriptors ---- */

static bool is_shortage(int error) {
    return error == EMFILE || error == ENFILE;
}

/* The kernel keeps the path below the root: no "..", absolute symlink or /proc magic link leads out of it. */
static int open_below(const server_files *files, const char *path) {
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, files->root, path, &how, sizeof how);
}

bool server_files_release(server_files *files) {
    if (files->open_count == 0)
        return false;
    served_file *f = &files->file[files->open[--files->open_count]];
    descriptor_close(&f->fd);
    return true;
}

/* If no descriptor is left, closes that of the file that was read longest ago, or else uses the spare one: then
 * *is_spare is true, and the caller returns the descriptor by give_back(). */
static int acquire(server_files *files, const char *path, bool *is_spare) {
    int fd = open_below(files, path);
    *is_spare = false;
    if (fd < 0 && is_shortage(errno) && server_files_release(files))
        fd = open_below(files, path);
    if (fd < 0 && is_shortage(errno) && files->spare >= 0) {
        descriptor_close(&files->spare);
        *is_spare = true;
        fd = open_below(files, path);
    }
    return fd;
}

static void give_back(server_files *files, int fd, bool is_spare) {
    int error = errno;
    descriptor_close(&fd);
    if (is_spare)
        files->spare = descriptors_reserve();
    errno = error;
}

/* False: not a regular file. */
static bool read_version(int fd, version *out) {
    struct statx s;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &s) != 0 || !S_ISREG(s.stx_mode))
        return false;
    *out = (version){.device_major = s.stx_dev_major,
                     .device_minor = s.stx_dev_minor,
                     .inode = s.stx_ino,
                     .size = s.stx_size,
                     .modified = s.stx_mtime};
    if (s.stx_mask & STATX_BTIME)
        out->born = s.stx_btime;
    return true;
}

static bool is_same_time(struct statx_timestamp a, struct statx_timestamp b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Whether it is the same file with its old content: unchanged, or longer. */
static bool continues(const version *then, const version *now) {
    return then->device_major == now->device_major && then->device_minor == now->device_minor &&
           then->inode == now->inode && is_same_time(then->born, now->born) &&
           (now->size > then->size || (now->size == then->size && is_same_time(then->modified, now->modified)));
}

/* ---- Files of responses ---- */

static size_t bucket_of(const char *path) {
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a: clients cannot choose the names of existing files */
    for (; *path; path++)
        h = (h ^ (uint8_t)*path) * UINT64_C(0x100000001b3);
    return (h ^ h >> 32) % BUCKETS;
}

static int find_same(const server_files *files, const char *path, const version *v) {
    int handle = files->bucket[bucket_of(path)];
    for (; handle >= 0; handle = files->file[handle].next) {
        const version *then = &files->file[handle].version;
        if (strcmp(files->file[handle].path, path) == 0 && continues(then, v) && then->size == v->size)
            break;
    }
    return handle;
}

static bool add_entries(server_files *files) {
    size_t count = files->file_count > 0 ? 2 * files->file_count : 64;
    served_file *grown = realloc(files->file, count * sizeof *grown);
    if (!grown)
        return false;
    for (size_t i = files->file_count; i < count; i++)
        grown[i] = (served_file){.fd = -1, .next = i + 1 < count ? (int)i + 1 : -1};
    files->unused = (int)files->file_count;
    files->file = grown;
    files->file_count = count;
    return true;
}

static int add_file(server_files *files, const char *path, const version *v) {
    char *copy = files->unused >= 0 || add_entries(files) ? strdup(path) : NULL;
    if (!copy)
        return CATALOGUE_BUSY;
    int handle = files->unused, *bucket = &files->bucket[bucket_of(path)];
    served_file *f = &files->file[handle];
    files->unused = f->next;
    *f = (served_file){.path = copy, .version = *v, .fd = -1, .next = *bucket};
    *bucket = handle;
    return handle;
}

static int open_file(void *user, const char *path, uint64_t *size) {
    server_files *files = user;
    version v = {0};
    bool is_spare;
    int fd = acquire(files, path, &is_spare), error = errno;
    bool is_file = fd >= 0 && read_version(fd, &v);
    give_back(files, fd, is_spare);
    if (fd < 0 && (is_shortage(error) || error == ENOMEM || error == EAGAIN || error == EINTR))
        return CATALOGUE_BUSY;
    if (!is_file)
        return CATALOGUE_ABSENT;
    int handle = find_same(files, path, &v);
    if (handle < 0)
        handle = add_file(files, path, &v);
    if (handle >= 0) {
        files->file[handle].responses++;
        *size = v.size;
    }
    return handle;
}

/* Removes the handle from the list of open files, if it is in it. */
static void unlist(server_files *files, int handle) {
    size_t at = 0;
    while (at < files->open_count && files->open[at] != handle)
        at++;
    if (at == files->open_count)
        return;
    files->open_count--;
    memmove(files->open + at, files->open + at + 1, (files->open_count - at) * sizeof files->open[0]);
}

static void list_first(server_files *files, int handle) {
    unlist(files, handle);
    if (files->open_count == SERVER_FILES_KEPT_OPEN)
        (void)server_files_release(files);
    memmove(files->open + 1, files->open, files->open_count * sizeof files->open[0]);
    files->open[0] = handle;
    files->open_count++;
}

static ssize_t read_at(int fd, uint64_t offset, uint8_t *buf, size_t len) {
    ssize_t n;
    do {
        n = pread(fd, buf, len, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    return n;
}

static ssize_t read_file(void *user, int handle, uint64_t offset, uint8_t *buf, size_t len) {
    server_files *files = user;
    served_file *f = &files->file[handle];
    version v;
    bool is_spare = false;
    int fd = f->fd >= 0 ? f->fd : acquire(files, f->path, &is_spare);
    bool is_same = fd >= 0 && read_version(fd, &v) && continues(&f->version, &v);
    ssize_t n = is_same ? read_at(fd, offset, buf, len) : -1;
    if (is_same && !is_spare) {
        f->fd = fd;
        list_first(files, handle);
    } else if (f->fd < 0) {
        give_back(files, fd, is_spare);
    }
    return n;
}

static void close_file(void *user, int handle) {
    server_files *files = user;
    served_file *f = &files->file[handle];
    if (--f->responses > 0)
        return;
    unlist(files, handle);
    descriptor_close(&f->fd);
    int *at = &files->bucket[bucket_of(f->path)];
    while (*at != handle)
        at = &files->file[*at].next;
    *at = f->next;
    free(f->path);
    *f = (served_file){.fd = -1, .next = files->unused};
    files->unused = handle;
}

bool server_files_open(server_files *files, const char *root) {
    *files = (server_files){.root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .spare = -1, .unused = -1};
    if (files->root < 0)
        return false;
    files->spare = descriptors_reserve();
    files->bucket = malloc(BUCKETS * sizeof *files->bucket);
    for (size_t i = 0; files->bucket && i < BUCKETS; i++)
        files->bucket[i] = -1;
    return files->spare >= 0 && files->bucket;
}

void server_files_close(server_files *files) {
    for (size_t i = 0; i < files->file_count; i++) {
        descriptor_close(&files->file[i].fd);
        free(files->file[i].path);
    }
    free(files->file);
    free(files->bucket);
    if (files->root >= 0)
        descriptor_close(&files->spare);
    descriptor_close(&files->root);
    *files = (server_files){.root = -1, .spare = -1, .unused = -1};
}

catalogue_files server_files_table(server_files *files) {
    return (catalogue_files){.user = files, .open = open_file, .read = read_file, .close = close_file};
}
