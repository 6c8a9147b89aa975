/* Input files of the simulator and the server: jobs, frame indices, ffprobe's output, values of options. Property: each
 * is accepted, or refused with a sentence in printable text. */
#include "tests/fuzz/input.h"
#include "base/numbers.h"
#include "emulator/sim/job.h"
#include "video/video.h"
#include "server/catalogue.h"
#include "schemes/path_grammars.h"
#include "server/ffprobe.h"

static void check_sentence(bool ok, const char *error) {
    FUZZ_CHECK(ok || error[0] != 0);
    fuzz_note_number(ok);
    if (!ok)
        fuzz_note(error, strlen(error));
}

static void check_job(const char *text) {
    static sim_job job;
    static char error[SIM_ERROR_BYTES];
    memset(&job, 0, sizeof job);
    error[0] = 0;
    bool ok = sim_job_parse(&job, text, strlen(text), "job.json", "dir", error);
    check_sentence(ok, error);
    FUZZ_CHECK(memchr(error, 0, sizeof error) != NULL);
    if (ok) {
        FUZZ_CHECK(job.path_count >= 1 && job.path_count <= SIM_MAX_PATHS);
        FUZZ_CHECK(job.player_count >= 1 && job.player_count <= SIM_MAX_PLAYERS);
        for (size_t i = 0; i < job.path_count; i++)
            for (size_t way = 0; way < 2; way++)
                for (size_t k = 0; k < job.paths[i].via[way].count; k++)
                    FUZZ_CHECK(job.paths[i].via[way].bottlenecks[k] < job.bottleneck_count);
        for (size_t i = 0; i < job.event_count; i++)
            FUZZ_CHECK(job.events[i].path < job.path_count + job.bottleneck_count);
        for (size_t i = 1; i < job.event_count; i++)
            FUZZ_CHECK(job.events[i - 1].at_us <= job.events[i].at_us);
        for (size_t i = 0; i < job.player_count; i++)
            FUZZ_CHECK(job.players[i].options.target[0] == '/');
    }
    sim_job_free(&job);
}

static void check_frame_index(const char *text) {
    const catalogue_video model = {.bitrate_bps = 4000000, .fps_milli = 30000};
    catalogue *c = catalogue_new(&model, NULL);
    char error[256] = "";
    FUZZ_CHECK(c != NULL);
    bool ok = catalogue_load_frame_index(c, text, strlen(text), error, sizeof error);
    check_sentence(ok, error);
    catalogue_free(c);
}

static void check_ffprobe(const char *text) {
    char error[256] = "";
    uint64_t end = 0;
    bool ok = ffprobe_first_frame(text, strlen(text), &end, error, sizeof error);
    check_sentence(ok, error);
    FUZZ_CHECK(!ok || end > 0);
    fuzz_note_number(end);
}

static void check_word(bool ok, const char *error) {
    check_sentence(ok, ok ? "" : error);
}

static void check_path_grammars(const char *text) {
    xl_limits limits = {0};
    unsigned rank[XL_TECH_UNKNOWN + 1];
    path_event events[PATH_EVENTS_MAX];
    size_t count = 0;
    char error[256] = "", *copy = strdup(text), *rest = NULL;
    const char *words[5] = {0};
    for (int i = 0; i < 5; i++)
        words[i] = strtok_r(i == 0 ? copy : NULL, "\n", &rest);
    if (words[0])
        check_word(path_management_read(&limits.path_management, words[0], error, sizeof error), error);
    if (words[1])
        check_word(migrate_after_read(&limits, words[1], error, sizeof error), error);
    if (words[2])
        check_word(migrate_back_read(&limits, words[2], error, sizeof error), error);
    error[0] = 0;
    if (words[3]) {
        bool ok = path_order_parse(words[3], rank, error, sizeof error);
        check_sentence(ok, error);
    }
    error[0] = 0;
    if (words[4]) {
        bool ok = path_events_parse(words[4], events, &count, error, sizeof error);
        check_sentence(ok, error);
        FUZZ_CHECK(count <= PATH_EVENTS_MAX);
        for (size_t i = 1; ok && i < count; i++)
            FUZZ_CHECK(events[i - 1].at_us <= events[i].at_us);
    }
    free(copy);
}

static void check_video(const char *text) {
    uint64_t bytes = 0, milli = 0;
    video v;
    fuzz_note_number(video_synthetic_parse(text, strlen(text), &bytes));
    fuzz_note_number(number_parse_milli(text, &milli));
    fuzz_note_number(video_init(&v, bytes, milli * 1000, 30000, 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const checks[])(const char *) = {check_job, check_frame_index, check_ffprobe, check_path_grammars,
                                                   check_video};
    fuzz_input in = fuzz_input_of(data, size);
    size_t which = fuzz_below(&in, sizeof checks / sizeof checks[0]);
    char *text = fuzz_rest_string(&in);
    checks[which](text);
    free(text);
    return 0;
}
