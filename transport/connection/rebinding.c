/* A path whose packets suddenly come from another address with the same connection ID: a NAT has given it a new binding
 * (RFC 9000 section 9.3). The address is validated before the path carries data again; until then at most three times
 * the bytes that came from there are sent there (section 8.1). Other paths continue in the meantime. */
#include "connection/rebinding.h"

#include "connection/acks.h"
#include "connection/connection.h"
#include "connection/path_table.h"
#include "connection/state.h"

static void settle_on(xl_connection *c, xl_path *p, const xl_addr *local, const xl_addr *remote, const char *why) {
    p->local = *local;
    p->remote = *remote;
    p->validation.is_done = true;
    p->proven.exists = p->proven.is_asked = false;
    p->validation.is_outstanding = p->validation.is_pending = false;
    p->validation.deadline = XL_NEVER;
    p->validation.tries = 0;
    xl_conn_log_path(c, p, "path_rebound", why);
    if (p->state == XL_PATH_VALIDATING) /* the address is proven, but not yet that the path works */
        xl_conn_start_challenge(c, p);
    xl_conn_wake(c);
}

static bool has_addresses_of(const xl_path *q, const xl_path *p) {
    return q != p && q->state != XL_PATH_CLOSED && xl_addr_equal(&q->local, &p->local) &&
           xl_addr_equal(&q->remote, &p->remote);
}

bool xl_conn_is_proven_elsewhere(const xl_connection *c, const xl_path *p) {
    XL_EACH_PATH(const xl_path, q, c)
        if (q->validation.is_done && has_addresses_of(q, p))
            return true;
    return false;
}

void xl_conn_prove_others(xl_connection *c, const xl_path *p) {
    XL_EACH_PATH(xl_path, q, c) {
        if (!has_addresses_of(q, p))
            continue;
        q->validation.is_done = true;
        if (q->proven.exists) /* it moved there with p */
            settle_on(c, q, &q->local, &q->remote, "another path has validated the address");
    }
}

void xl_conn_path_rebind(xl_connection *c, xl_path *p, const xl_addr *local, const xl_addr *remote) {
    /* Section 9.3.2: somebody else may have sent a copy of the packet from another address. The address that was
     * validated needs no second proof. */
    if (p->proven.exists && xl_addr_equal(&p->proven.remote, remote) && xl_addr_equal(&p->proven.local, local)) {
        settle_on(c, p, local, remote, "back at its validated address");
        return;
    }
    if (p->validation.is_done)
        p->proven = (xl_path_proven){.exists = true, .local = p->local, .remote = p->remote};
    bool same_host = xl_addr_same_host(&p->remote, remote);
    /* Section 9.3.3: somebody may forward the peer's packets faster than they arrive by themselves. A peer that is
     * still at its old address answers from there, which takes the path back. */
    p->proven.is_asked = p->proven.exists && !xl_addr_equal(&p->proven.remote, remote);
    p->local = *local;
    p->remote = *remote;
    p->validation.is_done = c->multipath && xl_conn_is_proven_elsewhere(c, p);
    p->validation.received_bytes = p->validation.sent_bytes = 0;
    p->validation.tries = 0;
    xl_conn_log_path(c, p, "path_rebound", same_host ? "new port" : "new address");
    if (!same_host) { /* section 9.4: it may be another network path */
        xl_conn_give_up_in_flight(c, p);
        xl_conn_path_forget_network(c, p);
    }
    if (p->validation.is_done)
        settle_on(c, p, local, remote, "another path has validated the address");
    else
        xl_conn_start_challenge(c, p);
}

bool xl_conn_path_rebind_failed(xl_connection *c, xl_path *p) {
    if (!p->proven.exists)
        return false;
    xl_addr local = p->proven.local, remote = p->proven.remote;
    settle_on(c, p, &local, &remote, "the new address did not answer");
    return true;
}
