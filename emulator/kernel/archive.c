#include "emulator/kernel/archive.h"

#include <string.h>
#include <sys/stat.h>

/* Pads names and contents to a multiple of four bytes. */
static bool pad(FILE *archive, size_t length) {
    static const char zeros[4];
    const size_t missing = (4 - length % 4) % 4;
    return fwrite(zeros, 1, missing, archive) == missing;
}

static bool add(FILE *archive, const char *name, unsigned mode, const void *text, size_t length) {
    const size_t name_size = strlen(name) + 1;
    /* magic, inode, mode, owner, group, links, time, size, device (2), of a device file (2), name's size, check */
    const int header = fprintf(archive, "070701%08x%08x%08x%08x%08x%08x%08zx%08x%08x%08x%08x%08zx%08x", 0u, mode, 0u,
                               0u, 1u, 0u, length, 0u, 0u, 0u, 0u, name_size, 0u);
    return header > 0 && fwrite(name, 1, name_size, archive) == name_size && pad(archive, (size_t)header + name_size) &&
           fwrite(text, 1, length, archive) == length && pad(archive, length);
}

bool vk_archive_add(FILE *archive, const char *name, unsigned mode, const void *text, size_t length) {
    return text ? add(archive, name, S_IFREG | mode, text, length) : add(archive, name, S_IFDIR | mode, "", 0);
}

bool vk_archive_end(FILE *archive) {
    return add(archive, "TRAILER!!!", 0, "", 0);
}
