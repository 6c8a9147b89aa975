#include "emulator/saturatr/train.h"

bool sat_train_is_allowed(uint64_t packets, uint64_t every_us) {
    return packets >= 1 && packets <= SAT_TRAIN_MOST && every_us >= SAT_EVERY_LEAST_US &&
           every_us <= SAT_EVERY_MOST_US && packets * 1000 <= SAT_TRAIN_MOST_PER_MS * every_us;
}

void sat_train_init(sat_train *train, uint32_t packets, uint64_t every_us, uint64_t now) {
    *train = (sat_train){.packets = packets, .every_us = every_us, .due_us = now};
}

uint32_t sat_train_allowance(sat_train *train, uint64_t now) {
    if (now >= train->due_us) {
        train->next_seq += train->left;
        train->left = train->packets;
        train->due_us += train->every_us * (1 + (now - train->due_us) / train->every_us);
    }
    return train->left;
}

void sat_train_on_sent(sat_train *train, uint32_t packets) {
    train->next_seq += packets;
    train->left -= packets;
}

uint64_t sat_train_next(const sat_train *train) {
    return train->left > 0 ? 0 : train->due_us;
}
