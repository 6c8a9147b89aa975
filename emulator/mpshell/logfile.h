/* Log files, written by a thread of their own: a slow disk must not make packets late. */
#ifndef RAILYARD_MPSHELL_LOGFILE_H
#define RAILYARD_MPSHELL_LOGFILE_H

#include <stddef.h>

typedef struct mp_logfile mp_logfile;

/* Creates (or truncates) the file. NULL with errno set. */
mp_logfile *mp_logfile_open(const char *path);
/* An link_log_sink: queues a copy of the text. context is the mp_logfile. Beyond 256 MB that wait for the disk, text
 * is lost, and mp_logfile_close says ENOBUFS. */
void mp_logfile_write(void *context, const char *text, size_t length);
/* Waits until everything is written. Returns 0, or the errno of the first failure. */
int mp_logfile_close(mp_logfile *file);

#endif
