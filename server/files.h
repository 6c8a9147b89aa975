/* The files below --root, for the catalogue.
 *
 * A response holds no descriptor, but the path of its file and the file's version when the response began. A descriptor
 * is opened when bytes are read, and the most recently used ones stay open, up to SERVER_FILES_KEPT_OPEN. So clients
 * that request many files and read nothing use no descriptors. A read fails if the file was replaced, cut or
 * rewritten. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/catalogue.h"

#define SERVER_FILES_KEPT_OPEN 64

struct served_file;

typedef struct {
    int root;                 /* directory descriptor */
    int spare;                /* closed for a moment to free a descriptor if the process has none left; -1: closed */
    struct served_file *file; /* by handle */
    size_t file_count;
    int unused;                       /* handle of the first entry without a file; -1: none */
    int *bucket;                      /* handle of the first file by hash of its path; -1: none */
    int open[SERVER_FILES_KEPT_OPEN]; /* handles of files that have a descriptor, most recently used first */
    size_t open_count;
} server_files;

/* False with errno set. Call server_files_close() in either case. */
bool server_files_open(server_files *, const char *root);
void server_files_close(server_files *);
/* Closes the least recently used descriptor; the next read opens the file again. False: none is open. */
bool server_files_release(server_files *);
/* `files` must outlive the catalogue. */
catalogue_files server_files_table(server_files *files);
