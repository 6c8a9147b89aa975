/* Texts that describe a link: traces, delay traces, light traces, latencies by size, rates, loss, on/off, queues, and
 * the settings that name them. Properties: an accepted text keeps its invariants; a refusal has a sentence. */
#include "tests/fuzz/input.h"
#include "emulator/link/settings.h"
#include "emulator/link/queue.h"

static void check_trace(fuzz_input *in) {
    link_trace trace;
    char error[512] = "";
    uint64_t at = fuzz_bytes_be(in, 5);
    char *text = fuzz_rest_string(in);
    const bool good = link_trace_parse(&trace, "t", text, strlen(text), error, sizeof error);
    FUZZ_CHECK(good || error[0] != 0);
    if (good) {
        FUZZ_CHECK(trace.count >= 1 && trace.period_ms >= 1 && trace.period_ms == trace.at_ms[trace.count - 1]);
        for (size_t i = 1; i < trace.count; i++)
            FUZZ_CHECK(trace.at_ms[i - 1] <= trace.at_ms[i]);
        uint64_t k = link_trace_count_near(&trace, 0, at);
        FUZZ_CHECK(link_trace_opportunity_us(&trace, k) > at);
        FUZZ_CHECK(k == 0 || link_trace_opportunity_us(&trace, k - 1) <= at);
        fuzz_note_number(k);
        link_trace_free(&trace);
    }
    free(text);
}

static void check_delay_trace(fuzz_input *in) {
    link_steps trace;
    char error[512] = "";
    uint64_t at = fuzz_bytes_be(in, 5);
    bool hold = fuzz_bool(in);
    char *text = fuzz_rest_string(in);
    const bool good = link_text_parse(&link_delay_trace_form, &trace, "t", text, strlen(text), error, sizeof error);
    FUZZ_CHECK(good || error[0] != 0);
    if (good) {
        FUZZ_CHECK(trace.count >= 1);
        for (size_t i = 1; i < trace.count; i++)
            FUZZ_CHECK(trace.steps[i - 1].at_us < trace.steps[i].at_us);
        uint64_t delay = link_steps_at(&trace, at, hold, NULL);
        size_t same = 0;
        while (same < trace.count && trace.steps[same].value != delay)
            same++;
        FUZZ_CHECK(same < trace.count);
        fuzz_note_number(delay);
        link_steps_free(&trace);
    }
    free(text);
}

static void check_light(fuzz_input *in) {
    link_light_trace trace;
    link_size_latency size = {0};
    char error[512] = "";
    bool by_size = fuzz_bool(in), direct;
    uint64_t now = fuzz_u16(in), pause = fuzz_u16(in), gap = fuzz_u16(in), before = 0;
    char *text = fuzz_rest_string(in);
    const bool good =
        by_size ? link_text_parse(&link_size_latency_form, &size, "z", text, strlen(text), error, sizeof error)
                : link_text_parse(&link_light_trace_form, &trace, "l", text, strlen(text), error, sizeof error);
    FUZZ_CHECK(good || error[0] != 0);
    static const char plain[] = "0 20 0 0 5\n30 7 0\n";
    if (good && by_size)
        FUZZ_CHECK(link_text_parse(&link_light_trace_form, &trace, "l", plain, sizeof plain - 1, error, sizeof error));
    if (good) {
        const link_light light = {&trace, by_size ? &size : NULL, gap, 1400};
        link_burst burst = {0};
        for (uint32_t i = 0; i < 40; i++, now += i % 8 ? 0 : pause * 100) {
            uint64_t leaves = link_burst_next(&burst, &light, now, now * (i + 1), 40 + 97 * i % 1464, &direct);
            FUZZ_CHECK(leaves >= now && leaves >= before);
            before = leaves;
            fuzz_note_number(leaves + direct);
        }
        link_light_trace_free(&trace);
    }
    link_size_latency_free(&size);
    free(text);
}

static void check_rate(fuzz_input *in) {
    uint64_t rate = 0, at = fuzz_bytes_be(in, 5);
    char *text = fuzz_rest_string(in);
    if (link_trace_parse_rate(text, &rate)) {
        FUZZ_CHECK(rate >= 1 && rate <= LINK_TRACE_MAX_RATE_BPS);
        link_trace trace = link_trace_constant(rate);
        uint64_t k = link_trace_count_near(&trace, 0, at);
        FUZZ_CHECK(link_trace_opportunity_us(&trace, k) > at);
        FUZZ_CHECK(k == 0 || link_trace_opportunity_us(&trace, k - 1) <= at);
        fuzz_note_number(k);
    }
    free(text);
}

static void check_loss(fuzz_input *in) {
    link_loss_state state = {.losses = {1}, .moves = {2}};
    char error[256] = "";
    char *text = fuzz_rest_string(in);
    if (link_loss_parse(&state.model, text, error, sizeof error)) {
        FUZZ_CHECK(link_loss_is_valid(&state.model));
        for (int i = 0; i < 100; i++)
            fuzz_note_number(link_loss_next(&state));
    } else {
        FUZZ_CHECK(error[0] != 0);
    }
    free(text);
}

static void check_onoff(fuzz_input *in) {
    link_onoff onoff;
    link_onoff_state state;
    char error[256] = "";
    uint64_t step = fuzz_u32(in);
    char *text = fuzz_rest_string(in);
    if (link_onoff_parse(&onoff, text, error, sizeof error)) {
        FUZZ_CHECK(onoff.count <= LINK_ONOFF_MAX_TIMES && onoff.count % 2 == 0);
        link_onoff_init(&state, &onoff, 1);
        for (uint64_t i = 0, now = 0; i < 20; i++, now += step % 1000000)
            fuzz_note_number(link_onoff_advance(&state, now));
    } else {
        FUZZ_CHECK(error[0] != 0);
    }
    free(text);
}

static void check_queue(fuzz_input *in) {
    char error[512] = "";
    link_pool *pool = link_pool_new(0);
    char *text = fuzz_rest_string(in);
    link_queue *queue = link_queue_new(text, pool, 1, error, sizeof error);
    FUZZ_CHECK(queue || error[0] != 0);
    FUZZ_CHECK(!queue || memchr(queue->description, 0, sizeof queue->description));
    link_queue_free(queue);
    link_pool_free(pool);
    free(text);
}

/* Checks lines of key=value, all of them as JSON, and as the configuration of a link. */
static void check_settings(fuzz_input *in) {
    link_settings settings[2] = {0}, top[2] = {0};
    char error[1024];
    bool use_top = fuzz_bool(in), json = fuzz_bool(in);
    char *text = fuzz_rest_string(in), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, '=');
        error[0] = 0;
        if (!value) {
            use_top = !use_top;
            continue;
        }
        *value++ = 0;
        json_t *member = json ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
        link_settings *to = use_top ? top : settings;
        const bool good = member ? link_settings_set_json(to, line, member, error, sizeof error)
                                 : link_settings_set(to, line, value, error, sizeof error);
        FUZZ_CHECK(good || error[0] != 0);
        json_decref(member);
    }
    FUZZ_CHECK(link_settings_override(settings, top));
    error[0] = 0;
    FUZZ_CHECK(link_settings_check(settings, true, error, sizeof error) || error[0] != 0);
    json_t *path = json_object(), *direction = json_object();
    link_settings_report_path(settings, path);
    link_settings_report(&settings[0], direction);
    char *dump = json_dumps(direction, JSON_SORT_KEYS);
    fuzz_note(dump, strlen(dump));
    free(dump);
    json_decref(path);
    json_decref(direction);
    link_config config = link_settings_config(&settings[1], 5);
    FUZZ_CHECK(link_loss_is_valid(&config.loss));
    link_settings_free(settings);
    link_settings_free(top);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const checks[])(fuzz_input *) = {check_trace, check_delay_trace, check_rate,     check_loss,
                                                   check_onoff, check_queue,       check_settings, check_light};
    fuzz_input in = fuzz_input_of(data, size);
    checks[fuzz_below(&in, sizeof checks / sizeof checks[0])](&in);
    return 0;
}
