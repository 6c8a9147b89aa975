/* The files below --root, as the catalogue reaches them. */
#ifndef SERVER_FILES_H
#define SERVER_FILES_H

#include <stdbool.h>

#include "server/catalogue.h"

typedef struct {
    int root; /* directory descriptor */
} server_files;

/* False with errno set. */
bool server_files_open(server_files *, const char *root);
void server_files_close(server_files *);
/* `files` must outlive the catalogue. */
catalogue_files server_files_table(server_files *files);

#endif
