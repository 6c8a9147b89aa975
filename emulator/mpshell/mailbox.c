#include "emulator/mpshell/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "emulator/mpshell/lock.h"

bool mp_mailbox_open(mp_mailbox *mailbox) {
    mailbox->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (mailbox->fd < 0)
        return false;
    mp_lock_init(&mailbox->mutex);
    pthread_cond_init(&mailbox->changed, NULL);
    mailbox->waiting = NULL;
    mailbox->open = true;
    return true;
}

bool mp_mailbox_ask(mp_mailbox *mailbox, mp_request *request) {
    uint64_t one = 1;
    pthread_mutex_lock(&mailbox->mutex);
    if (mailbox->open) {
        request->done = false;
        request->next = mailbox->waiting;
        mailbox->waiting = request;
        if (write(mailbox->fd, &one, sizeof one) != (ssize_t)sizeof one)
            mailbox->open = false; /* impossible with so few requests */
    }
    while (mailbox->open && !request->done)
        pthread_cond_wait(&mailbox->changed, &mailbox->mutex);
    bool done = mailbox->open && request->done;
    pthread_mutex_unlock(&mailbox->mutex);
    return done;
}

static void tell_figures(mp_shell *shell, mp_figures *figures, uint64_t now) {
    for (size_t i = 0; i < 2 * shell->link_count; i++) {
        emulated_link *link = mp_direction_at(shell, i)->link;
        link_advance(link, now);
        figures->links[i / 2][i % 2].stats = link_get_stats(link);
        figures->links[i / 2][i % 2].late_p99_us = link_lateness_quantile(link_get_lateness(link), 0.99);
        figures->links[i / 2][i % 2].is_up = link_is_up(link);
    }
}

void mp_mailbox_serve(mp_mailbox *mailbox, mp_shell *shell, uint64_t now) {
    uint64_t count;
    pthread_mutex_lock(&mailbox->mutex);
    if (read(mailbox->fd, &count, sizeof count) > 0) {
        for (mp_request *request = mailbox->waiting; request; request = request->next) {
            for (size_t way = 0; way < 2; way++)
                if (request->ways[way])
                    link_change_apply(mp_direction_at(shell, 2 * request->path + way)->link, &request->change, now);
            if (request->asks_figures)
                tell_figures(shell, request->figures, now);
            request->done_us = now;
            request->done = true;
        }
        mailbox->waiting = NULL;
        pthread_cond_broadcast(&mailbox->changed);
    }
    pthread_mutex_unlock(&mailbox->mutex);
}

void mp_mailbox_end(mp_mailbox *mailbox) {
    pthread_mutex_lock(&mailbox->mutex);
    mailbox->open = false;
    mailbox->waiting = NULL;
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->mutex);
}

void mp_mailbox_close(mp_mailbox *mailbox) {
    close(mailbox->fd);
    pthread_cond_destroy(&mailbox->changed);
    pthread_mutex_destroy(&mailbox->mutex);
}
