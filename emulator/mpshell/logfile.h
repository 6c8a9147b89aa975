/* Log files, each written by its own thread, so that a slow disk does not delay packets. */
#pragma once

#include <stddef.h>

typedef struct mp_logfile mp_logfile;

/* Creates or truncates the file. NULL with errno set. */
mp_logfile *mp_logfile_open(const char *path);
/* A link_log_sink: queues a copy of the text. context is the mp_logfile. Text is lost if more than 256 MB wait for the
 * disk or there is no memory; then mp_logfile_close returns ENOBUFS. */
void mp_logfile_write(void *context, const char *text, size_t length);
/* Waits until everything is written. Returns 0, or the errno of the first failure. */
int mp_logfile_close(mp_logfile *file);
