#include "tests/unit.h"
#include "emulator/sim/job.h"

#include <string.h>

#define PATHS                                                                                                          \
    "\"paths\": [{\"name\": \"wifi\", \"technology\": \"wifi\", \"up\": \"u\", \"down\": \"/d\", \"delay_ms\": 12.5}," \
    "{\"name\": \"nr\", \"technology\": \"5g-sa\", \"up\": \"u\", \"down\": \"d\", \"delay_ms\": 40,"                  \
    " \"queue\": \"droptail:packets=9\", \"loss\": 0.25}]"
#define PLAYER "\"player\": {\"video_bytes\": 1000000, \"bitrate_bps\": 1000000, \"chunk_bytes\": 1000}"
#define COMMON "\"scheme\": \"xlink\", \"time_limit_s\": 9.5, " PATHS ", " PLAYER

static sim_job job;
static char error[SIM_ERROR_BYTES];

static bool parse(const char *text) {
    return sim_job_parse(&job, text, strlen(text), "job.json", "dir", error);
}

TEST(defaults_are_those_of_the_programs) {
    assert_true(parse("{" COMMON ", \"t_th1_ms\": null}"));
    const sim_player_job *p = &job.players[0];
    assert_int_equal(job.seed, 1);
    assert_int_equal(job.player_count, 1);
    assert_true(job.link_logs);
    assert_false(job.qlog || job.keylog || job.null_crypto || p->own_links);
    assert_string_equal(job.paths[0].settings[0].trace, "dir/u");
    assert_string_equal(job.paths[0].settings[1].trace, "/d");
    for (size_t way = 0; way < 2; way++) {
        assert_null(job.paths[0].settings[way].config.queue);
        assert_int_equal(job.paths[0].settings[way].config.delay_us, 12500);
        assert_true(job.paths[1].settings[way].config.loss.good == 0.25);
    }
    assert_int_equal(p->options.player.time_limit_us, 9500000);
    assert_int_equal(p->options.player.rebuffer_target_us, PLAYER_REBUFFER_TARGET_US);
    assert_int_equal(p->options.player.max_buffer_us, PLAYER_MAX_BUFFER_US);
    assert_int_equal(p->options.player.concurrency, 1);
    assert_int_equal(p->options.player.video.fps_milli, 30000);
    assert_int_equal(p->server.settings.scheme.t_th1_us, 500000);
    assert_int_equal(p->server.settings.scheme.t_th2_us, 2000000);
    assert_string_equal(p->options.target, "/synthetic/1000000");
    sim_job_free(&job);
}

TEST(the_primary_path_follows_the_order_of_technologies_or_its_name) {
    assert_true(parse("{" COMMON ", \"players\": [{}, {\"primary\": \"wifi\"}]}"));
    assert_string_equal(job.players[0].options.paths[0].name, "nr");
    assert_string_equal(job.players[0].options.paths[1].name, "wifi");
    assert_string_equal(job.players[1].options.paths[0].name, "wifi");
    sim_job_free(&job);
}

TEST(a_player_overrides_member_by_member) {
    assert_true(parse("{" COMMON ", \"seed\": 5, \"t_th1_ms\": 100, \"players\": [{}, {\"scheme\": \"sp\", "
                      "\"start_s\": 1.5, \"own_links\": true, \"t_th1_ms\": 7.25, \"player\": {\"concurrency\": 3, "
                      "\"videos\": 2}}]}"));
    const sim_player_job *one = &job.players[0], *two = &job.players[1];
    assert_string_equal(one->options.settings.name, "xlink");
    assert_string_equal(two->options.settings.name, "sp");
    assert_string_equal(two->server.settings.name, "sp");
    assert_int_equal(one->server.settings.scheme.t_th1_us, 100000);
    assert_int_equal(two->server.settings.scheme.t_th1_us, 7250);
    assert_int_equal(two->start_us, 1500000);
    assert_int_equal(two->options.player.concurrency, 3);
    assert_int_equal(two->options.player.videos, 2);
    assert_int_equal(two->options.player.chunk_bytes, 1000);
    assert_int_equal(two->server.seed.seed, 6);
    /* A player's own links have their own addresses. */
    assert_int_equal(one->options.paths[0].local.ip[2], 1);
    assert_int_equal(two->options.paths[0].local.ip[2], 3);
    sim_job_free(&job);
}

TEST(link_events_say_what_changes_when) {
    assert_true(parse("{" COMMON ", \"link_events\": ["
                      "{\"t_s\": 1.5, \"path\": \"nr\", \"state\": \"down\"},"
                      "{\"t_s\": 1.5, \"path\": \"wifi\", \"direction\": \"up\", \"delay_ms\": 0.5,"
                      " \"loss\": \"ge:p=0.5:r=1\", \"rate\": \"3mbps\"}]}"));
    assert_int_equal(job.event_count, 2);
    const sim_event *first = &job.events[0], *second = &job.events[1];
    assert_int_equal(first->at_us, 1500000);
    assert_int_equal(first->path, 1);
    assert_true(first->ways[0] && first->ways[1] && first->change.has_state && !first->change.is_up);
    assert_false(first->change.has_delay || first->change.has_loss || first->change.rate_bps != 0);
    assert_true(second->ways[0] && !second->ways[1] && !second->change.has_state);
    assert_int_equal(second->change.delay_us, 500);
    assert_true(second->change.has_loss && second->change.loss.p == 0.5);
    assert_int_equal(second->change.rate_bps, 3000000);
    sim_job_free(&job);
}

TEST(links_with_an_mtu_are_probed) {
    assert_true(parse("{" COMMON "}"));
    assert_int_equal(job.players[0].server.settings.limits.path_mtu_bytes, 1452);
    sim_job_free(&job);
    assert_true(parse("{" COMMON ", \"link_events\": [{\"t_s\": 1, \"path\": \"nr\", \"mtu\": 1280}]}"));
    assert_int_equal(job.players[0].server.settings.limits.path_mtu_bytes, 1200);
    assert_int_equal(job.events[0].change.mtu_bytes, 1280);
    sim_job_free(&job);
}

TEST(errors_name_file_and_member) {
    const struct {
        const char *text, *sentence;
    } cases[] = {
        {"{\"seed\": 1,\n!}", "job.json:2: not JSON"},
        {"[]", "job.json: a job is a JSON object"},
        {"{" COMMON ", \"sed\": 1}", "job.json: sed is not a known member"},
        {"{" COMMON ", \"seed\": 1.5}", "job.json: seed takes a whole number"},
        {"{\"seed\": \x1b[2J}", "job.json:1: not JSON: invalid token near '?'"},
        {"{" COMMON ", \"seed\": 1, \"seed\": 2}", "job.json:1: not JSON: duplicate object key"},
        {"{" COMMON ", \"t_th1_ms\": 0.0001}", "job.json: t_th1_ms takes a number"},
        {"{" COMMON ", \"t_th1_ms\": 2, \"t_th2_ms\": 1}", "job.json: t_th1_ms must not be greater than t_th2_ms"},
        {"{" COMMON ", \"primary\": \"x\"}", "job.json: no path is named 'x', the primary one; known are "},
        {"{" COMMON ", \"link_events\": 3}", "job.json: link_events takes an array"},
        {"{" COMMON ", \"link_events\": [{\"path\": \"nr\"}]}", "job.json: link_events[0].t_s is missing"},
        {"{" COMMON ", \"link_events\": [{\"t_s\": 1, \"path\": \"x\"}]}", "job.json: link_events[0].path \"x\" is"},
        {"{" COMMON ", \"link_events\": [{\"t_s\": 1, \"path\": \"nr\"}]}", "job.json: link_events[0].state, delay_ms"},
        {"{" COMMON ", \"link_events\": [{\"t_s\": 1, \"path\": \"nr\", \"loss\": 2}]}",
         "job.json: link_events[0].loss takes a probability"},
        {"{" COMMON ", \"link_events\": [{\"t_s\": 1, \"path\": \"nr\", \"rate\": \"2\"}]}",
         "job.json: link_events[0].rate takes a rate"},
        {"{" COMMON ", \"link_events\": [{\"t_s\": 2, \"path\": \"nr\", \"loss\": 1},"
         "{\"t_s\": 1, \"path\": \"nr\", \"loss\": 0}]}",
         "job.json: link_events[1].t_s is before"},
        {"{" COMMON ", \"link_events\": [{\"t_s\": 1, \"path\": \"nr\", \"nat\": \"rebind\"}]}",
         "job.json: link_events[0].nat: path \"nr\" has no NAT"},
        {"{" COMMON ", \"link_events\": [{\"t_s\": 1, \"path\": \"nr\", \"reorder\": 0.1}]}",
         "job.json: link_events[0].reorder above 0 and reorder_delay_ms go together"},
        {"{" COMMON ", \"players\": []}", "job.json: players takes an array"},
        {"{" COMMON ", \"players\": [{\"player\": {\"fps\": 0}}]}", "job.json: players[0].player.fps takes a number"},
        {"{\"scheme\": \"sp\", " PATHS ", " PLAYER "}", "job.json: time_limit_s is missing"},
        {"{\"scheme\": \"sp\", \"time_limit_s\": 1, " PATHS "}", "job.json: player.video_bytes is missing"},
        {"{\"scheme\": \"sp\", \"time_limit_s\": 1, \"paths\": [{}], " PLAYER "}",
         "job.json: paths[0].name is missing"},
        {"{\"scheme\": \"mptcp\", \"time_limit_s\": 1, " PATHS ", " PLAYER "}", "job.json: scheme takes sp, cm"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_false(parse(cases[i].text));
        if (strncmp(error, cases[i].sentence, strlen(cases[i].sentence)) != 0)
            fail_msg("'%s' does not begin with '%s'", error, cases[i].sentence);
        sim_job_free(&job);
    }
}

TEST_MAIN(NULL, NULL)
