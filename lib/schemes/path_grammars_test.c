
#include "tests/unit.h"
#include "schemes/path_grammars.h"

TEST(management_takes_its_limits) {
    char error[256];
    xl_limits c;
    xl_limits_init(&c);
    assert_false(c.path_management.enabled);
    assert_true(path_management_read(&c.path_management, "on,rtt=2.5,loss=20,abandon=3", error, 256));
    assert_true(c.path_management.enabled);
    assert_int_equal(250, c.path_management.rtt_percent);
    assert_int_equal(20, c.path_management.loss_percent);
    assert_int_equal(3000000, c.path_management.abandon_us);
    assert_int_equal(1000000, c.path_management.degraded_us); /* the default */
    assert_true(path_management_read(&c.path_management, "off", error, 256));
    assert_false(c.path_management.enabled);
    static const char *const wrong[] = {"", "yes", "off,rtt=2", "on,rtt", "on,rtt=0.5", "on,rtt=x", "on,colour=3"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(path_management_read(&c.path_management, wrong[i], error, 256));
}

TEST(migration_is_by_silence_or_by_count) {
    char error[256];
    xl_limits c;
    xl_limits_init(&c);
    assert_true(migrate_after_read(&c, "silence:250", error, 256));
    assert_true(migrate_back_read(&c, "never", error, 256));
    assert_int_equal(250000, c.probe_silence_us);
    assert_false(c.migrate_back);
    assert_true(migrate_after_read(&c, "ptos:3", error, 256));
    assert_true(migrate_back_read(&c, "2.5", error, 256));
    assert_int_equal(3, c.migrate_ptos);
    assert_true(c.migrate_back);
    assert_int_equal(2500000, c.migrate_back_us);
    assert_false(migrate_after_read(&c, "ptos:0", error, 256));
    assert_false(migrate_after_read(&c, "soon", error, 256));
    assert_false(migrate_back_read(&c, "soon", error, 256));
}

TEST(the_order_names_what_goes_first) {
    char error[256];
    unsigned rank[XL_TECH_UNKNOWN + 1];
    assert_true(path_order_parse("lte,wifi", rank, error, 256));
    assert_true(rank[XL_TECH_LTE] < rank[XL_TECH_WIFI]);
    assert_true(rank[XL_TECH_WIFI] < rank[XL_TECH_5G_SA]);
    assert_true(rank[XL_TECH_5G_SA] < rank[XL_TECH_5G_NSA]);
    assert_true(rank[XL_TECH_5G_NSA] < rank[XL_TECH_UNKNOWN]);
    assert_false(path_order_parse("lte,lte", rank, error, 256));
    assert_false(path_order_parse("6g", rank, error, 256));
}

TEST(events_are_in_order_of_time) {
    char error[256];
    path_event e[PATH_EVENTS_MAX];
    size_t count = 0;
    assert_true(path_events_parse("5:add:lte,2.5:remove:lte", e, &count, error, 256));
    assert_true(path_events_parse("3:standby:wifi", e, &count, error, 256));
    assert_int_equal(3, count);
    assert_int_equal(2500000, e[0].at_us);
    assert_int_equal(PATH_REMOVE, e[0].action);
    assert_string_equal("wifi", e[1].name);
    assert_int_equal(PATH_ADD, e[2].action);
    assert_false(path_events_add_later(e, count, "lte"));
    assert_true(path_events_add_later(e + 2, 1, "lte"));
    static const char *const wrong[] = {"", "5:add", "x:add:lte", "5:grow:lte", "5:add:"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(path_events_parse(wrong[i], e, &count, error, 256));
}

TEST_MAIN(NULL, NULL)
