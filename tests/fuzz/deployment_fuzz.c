/* A server in a deployment, from its file and options. Properties: balancer, kernel's function and endpoint all route
 * every connection ID that the server makes to it, and those of other workers to them. */
#include "tests/fuzz/file.h"
#include "tests/fuzz/input.h"
#include "balancer/lb_file.h"
#include "server/deployment.h"
#include "xlink/deployment.h"

static void check_cids(const xl_deployment *d, fuzz_input *in) {
    uint8_t nonce[XL_LB_NONCE_MAX], cid[XL_MAX_CID_BYTES + 8] = {0}, id[XL_LB_SERVER_ID_MAX];
    for (int i = 0; i < 20 && fuzz_left(in) > 0; i++) {
        xl_deployment one = *d;
        one.worker = fuzz_u8(in) % d->workers;
        uint8_t random = fuzz_u8(in);
        fuzz_fill(in, nonce, sizeof nonce);
        size_t n = xl_deployment_make_cid(&one, nonce, random, cid);
        FUZZ_CHECK(n > 0 && n <= XL_MAX_CID_BYTES);
        FUZZ_CHECK(xl_deployment_cid_bytes(d, cid[0]) == n);
        FUZZ_CHECK(d->workers == 1 || xl_deployment_worker_of(d, cid, n) == one.worker);
        int bytes = xl_lb_decode(d->lb, cid, n, id);
        FUZZ_CHECK(bytes > 0 && memcmp(id, d->server_id, (size_t)bytes) == 0);
        fuzz_note(cid, n);
        fuzz_fill(in, cid, sizeof cid); /* any other CID belongs to one of the workers */
        size_t len = random % (XL_MAX_CID_BYTES + 1);
        FUZZ_CHECK(xl_deployment_worker_of(d, cid, len) < d->workers);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    uint8_t flags = fuzz_u8(&in), workers = fuzz_u8(&in);
    char error[LB_ERROR_BYTES] = "", id[2 * XL_LB_SERVER_ID_MAX + 3];
    size_t id_bytes = fuzz_u8(&in) % (sizeof id - 1);
    for (size_t i = 0; i < id_bytes; i++) {
        uint8_t v = fuzz_u8(&in);
        id[i] = v < 0xf0 ? "0123456789abcdef"[v & 15] : (char)(v | 1);
    }
    id[id_bytes] = 0;
    size_t len = fuzz_u16(&in) % 1024;
    len = len < fuzz_left(&in) ? len : fuzz_left(&in);
    fuzz_file file = fuzz_file_of(in.p, len);
    in.p += len;
    const server_config config = {.workers = workers % (XL_WORKERS_MAX + 2),
                                  .random_key = {flags},
                                  .lb_file = flags & 1 ? file.name : NULL,
                                  .server_id = id};
    xl_deployment d;
    xl_lb *lb = NULL;
    bool ok = server_deployment_open(&config, &lb, &d, error, sizeof error);
    FUZZ_CHECK(ok || (error[0] != 0 && memchr(error, 0, sizeof error)));
    fuzz_note_number(ok);
    if (ok && !xl_deployment_check(&d)) {
        FUZZ_CHECK(d.workers >= 1 && d.workers <= XL_WORKERS_MAX);
        check_cids(&d, &in);
    }
    xl_lb_free(lb);
    fuzz_file_close(&file);
    return 0;
}
