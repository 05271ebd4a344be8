// pages stay through short pauses where these are learnt, else go back in each, and all go back when the program rests
#include "check.h"

#define BLOCKS 16
#define HELD ((long)(56 * MB))

static void one_round(void) {
    char *blocks[BLOCKS];
    for (size_t i = 0; i < COUNT(blocks); i++)
        blocks[i] = malloc_touched(4 * MB, 1);
    for (size_t i = 0; i < COUNT(blocks); i++)
        free(blocks[i]);
}

// argv[1]: auto, or the milliseconds that FLARENA_DECAY_MS was set to.
int main(int argc, char **argv) {
    int learns = strcmp(argv[argc - 1], "auto") == 0, stayed = 0;
    one_round();
    await_governor();
    for (int round = 0; round < 20 && stayed < 3; round++) {
        one_round();
        CHECK(rss_bytes() > HELD, "%ld bytes resident after a round", rss_bytes());
        sleep_ms(600);
        int learnt = statistic("recycler", "decay_ms") > 300;
        CHECK(learns || !learnt, "%lld ms are not what was set", statistic("recycler", "decay_ms"));
        stayed = learnt && rss_bytes() > HELD ? stayed + 1 : 0;
        // It may take longer on a busy machine, but they go before the next round.
        if (!learns)
            await_rss_below(HELD, 5);
    }
    CHECK(stayed == (learns ? 3 : 0), "through the last %d pauses", stayed);
    // The longest that is learnt, its quarter for the governor's pace, and the machine's other work.
    await_rss_below(HELD / 2, 6 + 10);
    await_empty_cache(5);
    for (int tenth = 0; tenth < 100 && statistic("recycler", "decay_ms") != 300; tenth++)
        sleep_ms(100);
    CHECK(statistic("recycler", "decay_ms") == 300, "%lld ms after a rest", statistic("recycler", "decay_ms"));
}
