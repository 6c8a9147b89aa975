#include "tests/unit.h"
#include "stream/budget.h"

#define CONNECTIONS 10
#define MOST        2000

TEST(a_connection_takes_no_more_than_its_own_most) {
    xl_budget_pool pool;
    xl_budget_pool_init(&pool, MOST, CONNECTIONS);
    xl_budget b = {.pool = &pool, .most = 300};
    assert_true(xl_budget_take(&b, 200));
    assert_int_equal(100, xl_budget_left(&b));
    assert_false(xl_budget_take(&b, 101));
    assert_false(pool.refused); /* other streams' bytes would not help */
    assert_int_equal(200, pool.held);
    xl_budget_give_back(&b, 150);
    assert_true(xl_budget_take(&b, 101));
}

TEST(those_that_hold_all_they_can_leave_each_other_connection_its_share) {
    xl_budget_pool pool;
    xl_budget b[CONNECTIONS];
    xl_budget_pool_init(&pool, MOST, CONNECTIONS);
    for (int i = 0; i < CONNECTIONS; i++)
        b[i] = (xl_budget){.pool = &pool, .most = MOST};
    assert_true(xl_budget_take(&b[0], MOST / 2));
    for (int i = 0; i < CONNECTIONS; i++)
        assert_int_equal(i == 0 ? 0 : MOST / 2 / CONNECTIONS, xl_budget_left(&b[i]));
    for (int i = 1; i < CONNECTIONS; i++)
        assert_true(xl_budget_take(&b[i], MOST / 2 / CONNECTIONS));
    assert_true(pool.held <= MOST);
    assert_false(pool.refused);
    for (int i = 0; i < CONNECTIONS; i++)
        assert_false(xl_budget_take(&b[i], 1));
    assert_true(pool.refused);
}

TEST(one_without_a_pool_has_no_end) {
    xl_budget b = {0};
    assert_true(xl_budget_take(&b, SIZE_MAX));
    assert_int_equal(SIZE_MAX, xl_budget_left(&b));
    xl_budget_give_back(&b, 1);
}

TEST_MAIN(NULL, NULL)
