/* The first root file system of a kernel, in memory: a cpio archive (the "newc" form of cpio(5)). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Appends a plain file, or a folder if `text` is NULL. `name` has no leading slash. */
bool vk_archive_add(FILE *archive, const char *name, unsigned mode, const void *text, size_t length);
/* Appends the entry that ends an archive. */
bool vk_archive_end(FILE *archive);
