/* The files below --root, as the catalogue reaches them.
 *
 * A response holds a file, not a descriptor: its path, and what the file was when the response began. Descriptors are
 * opened when bytes are read; those used last stay open, up to SERVER_FILES_KEPT_OPEN. So clients that ask for much and
 * read nothing use up none. A file that is another one at the next read, or shorter, or rewritten, gives an error. */
#ifndef SERVER_FILES_H
#define SERVER_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "server/catalogue.h"

#define SERVER_FILES_KEPT_OPEN 64

struct served_file;

typedef struct {
    int root;                 /* directory descriptor */
    int spare;                /* given up for a moment where a process has no descriptor left; -1: it is not there */
    struct served_file *file; /* by handle */
    size_t file_count;
    int unused;                       /* handle of the first entry without a file; -1: none */
    int *bucket;                      /* handle of the first file by hash of its path; -1: none */
    int open[SERVER_FILES_KEPT_OPEN]; /* handles of files that have a descriptor, the one used last first */
    size_t open_count;
} server_files;

/* False with errno set; server_files_close() is due in any case. */
bool server_files_open(server_files *, const char *root);
void server_files_close(server_files *);
/* Closes the descriptor that was used longest ago; the file is opened again for the next read. False: none is open. */
bool server_files_release(server_files *);
/* `files` must outlive the catalogue. */
catalogue_files server_files_table(server_files *files);

#endif
