/* mpshell without its devices: options and configuration file, then commands of the control socket, executed through
 * the mailbox as in the packet loop, with packets in transit. Properties: each command has a response or an error
 * sentence; figures agree with the commands; all packets are accounted for. */
#include <errno.h>
#include <pthread.h>
#include <poll.h>

#include <jansson.h>

#include "tests/fuzz/file.h"
#include "emulator/link/testing/numbered.h"
#include "emulator/mpshell/command_line.h"
#include "emulator/mpshell/control.h"
#include "emulator/mpshell/setup.h"
#include "emulator/mpshell/summary.h"

#define WORDS_MOST    24
#define COMMANDS_MOST 24
#define PACKETS_MOST  400

typedef struct {
    mp_mailbox *mailbox;
    mp_request *request;
    bool answered;
} caller;

static void *ask(void *user) {
    caller *c = user;
    c->answered = mp_mailbox_ask(c->mailbox, c->request);
    return NULL;
}

/* Another thread makes the request; this one serves it like the loop, when the descriptor is readable. */
static bool carry_out(mp_shell *shell, mp_mailbox *mailbox, mp_request *request, uint64_t now, bool is_ended) {
    caller c = {mailbox, request, false};
    pthread_t thread;
    FUZZ_CHECK(pthread_create(&thread, NULL, ask, &c) == 0);
    struct pollfd readable = {.fd = mailbox->fd, .events = POLLIN};
    if (!is_ended) {
        int ready;
        while ((ready = poll(&readable, 1, 10000)) < 0 && errno == EINTR)
            ; /* the fuzzer's own timer */
        FUZZ_CHECK(ready == 1);
        mp_mailbox_serve(mailbox, shell, now);
    }
    FUZZ_CHECK(pthread_join(thread, NULL) == 0);
    FUZZ_CHECK(c.answered == !is_ended && (is_ended || (request->done && request->done_us == now)));
    return c.answered;
}

static void check_figures(const mp_shell *shell, const mp_figures *figures) {
    json_t *answer = mp_summary_figures(shell, figures);
    FUZZ_CHECK(json_is_array(answer) && json_array_size(answer) == shell->link_count);
    char *text = json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS);
    FUZZ_CHECK(text != NULL);
    fuzz_note(text, strlen(text));
    free(text);
    json_decref(answer);
    for (size_t k = 0; k < shell->link_count; k++)
        for (int way = 0; way < 2; way++) {
            const link_stats *s = &figures->links[k][way].stats;
            FUZZ_CHECK(s->arrived_packets + s->duplicates == s->departed_packets + s->queue_drops + s->random_losses +
                                                                 s->off_losses + s->oversize_drops + s->memory_drops +
                                                                 s->nat_drops + s->inside_packets);
        }
}

static void send_packets(mp_shell *shell, unsigned count, uint64_t now) {
    for (unsigned i = 0; i < count; i++) {
        mp_path *path = &shell->paths[i % shell->path_count];
        const mp_direction *direction = i & 4 ? &path->down : &path->up;
        link_packet *p = numbered_packet(shell->pool, 4, 0, i, 40 + i * 37 % 1400);
        FUZZ_CHECK(p != NULL);
        link_route_begin(p, direction->number);
        link_enqueue(direction->entry->link, p, now);
    }
}

/* Moves due packets out, or on to the next link of their route. */
static void drain(mp_shell *shell, uint64_t now) {
    for (size_t i = 0; i < 2 * shell->link_count; i++) {
        emulated_link *link = mp_direction_at(shell, i)->link;
        link_advance(link, now);
        for (link_packet *p = link_pull(link); p; p = link_pull(link)) {
            int next = link_route_next(&mp_direction_at(shell, p->route)->route, p);
            if (next < 0)
                link_departed(link, p, now);
            else
                link_route_forward(link, mp_direction_at(shell, (size_t)next)->link, p, now);
        }
    }
}

static void check_command(const mp_request *request, const mp_figures *before, const mp_figures *after) {
    for (int way = 0; way < 2; way++)
        if (request->ways[way] && request->change.has_state)
            FUZZ_CHECK(after->links[request->path][way].is_up == request->change.is_up);
        else if (before)
            FUZZ_CHECK(after->links[request->path][way].is_up == before->links[request->path][way].is_up);
}

/* Executes lines of commands. A line that begins with a digit advances the clock by this many ms, one with '+' sends
 * packets. */
static void obey(mp_shell *shell, char *text) {
    mp_mailbox mailbox;
    mp_figures figures[2];
    char error[MP_ERROR_SIZE], *rest = NULL;
    uint64_t now = 0;
    bool has_figures = false;
    unsigned commands = 0, packets = 0;
    FUZZ_CHECK(mp_mailbox_open(&mailbox));
    for (char *line = strtok_r(text, "\n", &rest); line && commands < COMMANDS_MOST;
         line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] >= '0' && line[0] <= '9') {
            now += 1000 * (strtoull(line, NULL, 10) % 100000);
            drain(shell, now);
            continue;
        }
        if (line[0] == '+') {
            unsigned n = (unsigned)strlen(line);
            packets += n;
            send_packets(shell, packets <= PACKETS_MOST ? n : 0, now);
            continue;
        }
        mp_request request = {.figures = &figures[1]};
        error[0] = 0;
        commands++;
        if (!mp_control_parse(shell, line, &request, error)) {
            FUZZ_CHECK(error[0] != 0);
            fuzz_note(error, strlen(error));
            continue;
        }
        FUZZ_CHECK(request.path < shell->link_count);
        carry_out(shell, &mailbox, &request, now, false);
        mp_request stats = {.asks_figures = true, .figures = &figures[1]};
        carry_out(shell, &mailbox, &stats, now, false);
        check_figures(shell, &figures[1]);
        if (!request.asks_figures)
            check_command(&request, has_figures ? &figures[0] : NULL, &figures[1]);
        figures[0] = figures[1];
        has_figures = true;
    }
    mp_mailbox_end(&mailbox);
    mp_request late = {.asks_figures = true, .figures = &figures[1]};
    carry_out(shell, &mailbox, &late, now, true);
    mp_mailbox_close(&mailbox);
}

/* The input has the command line up to an empty line, the configuration file up to "---", and commands. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    mp_shell *shell = calloc(1, sizeof *shell);
    char *argv[WORDS_MOST + 4] = {(char *)"mpshell"}, error[MP_ERROR_SIZE] = "", *rest = NULL;
    int argc = 1;
    FUZZ_CHECK(shell != NULL);
    char *text = fuzz_rest_string(&in);
    for (char *c = text; *c; c++) /* no file names in other folders */
        *c = *c == '/' ? '_' : *c;
    char *config = strstr(text, "\n\n"), *commands = config ? strstr(config + 2, "\n---\n") : NULL;
    if (commands) {
        *commands = 0;
        commands += 5;
    }
    if (config) {
        *config = 0;
        config += 2;
    }
    fuzz_file file = fuzz_file_of(config ? config : "", config ? strlen(config) : 0);
    char option[] = "--config";
    if (config && config[0] != 0) {
        argv[argc++] = option;
        argv[argc++] = file.name;
    }
    for (char *word = strtok_r(text, "\n", &rest); word && argc < WORDS_MOST; word = strtok_r(NULL, "\n", &rest))
        argv[argc++] = word;
    bool good = mp_options_parse(&shell->options, argc, argv, error, sizeof error);
    FUZZ_CHECK(good || error[0] != 0);
    fuzz_note_number(good);
    if (good && !shell->options.help) {
        shell->path_count = shell->options.path_count;
        FUZZ_CHECK(shell->path_count <= MP_MAX_PATHS);
        good = mp_setup_links(shell, error);
        FUZZ_CHECK(good || error[0] != 0);
        if (good && shell->path_count > 0)
            obey(shell, commands ? commands : error);
        mp_setup_free(shell);
    }
    mp_options_free(&shell->options);
    fuzz_file_close(&file);
    free(text);
    free(shell);
    return 0;
}
