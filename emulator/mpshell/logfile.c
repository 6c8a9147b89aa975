#include "emulator/mpshell/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text_file.h"
#include "emulator/mpshell/result.h"

#define MOST_QUEUED_BYTES ((size_t)256 << 20) /* so that a disk slower than the links does not use up the memory */

typedef struct log_chunk {
    struct log_chunk *next;
    size_t length;
    char text[];
} log_chunk;

struct mp_logfile {
    int fd;
    int error; /* errno of the writer's first failure */
    bool lost; /* set by the caller: a chunk had no room */
    size_t queued;
    bool closing;
    pthread_t writer;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    log_chunk *head;
    log_chunk **tail;
};

/* Takes all queued chunks; NULL: the file is being closed and there are none. */
static log_chunk *take(mp_logfile *file) {
    pthread_mutex_lock(&file->mutex);
    while (!file->head && !file->closing)
        pthread_cond_wait(&file->changed, &file->mutex);
    log_chunk *list = file->head;
    file->head = NULL;
    file->tail = &file->head;
    pthread_mutex_unlock(&file->mutex);
    return list;
}

static void count_written(mp_logfile *file, size_t length) {
    pthread_mutex_lock(&file->mutex);
    file->queued -= length;
    pthread_mutex_unlock(&file->mutex);
}

static void *write_chunks(void *context) {
    mp_logfile *file = context;
    for (log_chunk *list = take(file); list; list = take(file)) {
        while (list) {
            log_chunk *chunk = list;
            list = chunk->next;
            if (file->error == 0)
                file->error = file_write(file->fd, chunk->text, chunk->length) ? 0 : errno;
            count_written(file, chunk->length);
            free(chunk);
        }
    }
    return NULL;
}

static int start(mp_logfile *file) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    /* The packet loop runs at real-time priority and must not wait for a writer that was preempted. */
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&file->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    pthread_cond_init(&file->changed, NULL);
    file->tail = &file->head;
    pthread_attr_t thread;
    pthread_attr_init(&thread);
    pthread_attr_setstacksize(&thread, 256 * 1024);
    int rc = pthread_create(&file->writer, &thread, write_chunks, file);
    pthread_attr_destroy(&thread);
    return rc;
}

mp_logfile *mp_logfile_open(const char *path) {
    int fd = mp_output_open(path, O_TRUNC);
    if (fd < 0)
        return NULL;
    mp_logfile *file = calloc(1, sizeof *file);
    int rc = !file ? ENOMEM : 0;
    if (file) {
        file->fd = fd;
        rc = start(file);
    }
    if (rc != 0) {
        close(fd);
        free(file);
        errno = rc;
        return NULL;
    }
    return file;
}

void mp_logfile_write(void *context, const char *text, size_t length) {
    mp_logfile *file = context;
    log_chunk *chunk = malloc(sizeof *chunk + length);
    pthread_mutex_lock(&file->mutex);
    if (!chunk || file->queued + length > MOST_QUEUED_BYTES) {
        file->lost = true;
        free(chunk);
    } else {
        file->queued += length;
        chunk->next = NULL;
        chunk->length = length;
        memcpy(chunk->text, text, length);
        *file->tail = chunk;
        file->tail = &chunk->next;
        pthread_cond_signal(&file->changed);
    }
    pthread_mutex_unlock(&file->mutex);
}

int mp_logfile_close(mp_logfile *file) {
    pthread_mutex_lock(&file->mutex);
    file->closing = true;
    pthread_cond_signal(&file->changed);
    pthread_mutex_unlock(&file->mutex);
    pthread_join(file->writer, NULL);
    int error = file->error == 0 && file->lost ? ENOBUFS : file->error;
    if (close(file->fd) != 0 && error == 0)
        error = errno;
    pthread_cond_destroy(&file->changed);
    pthread_mutex_destroy(&file->mutex);
    free(file);
    return error;
}
