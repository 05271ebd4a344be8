// a child forked while the governor reads the loader's list can load libraries
#include "../governor/channel.h"
#include <link.h>

typedef int Visit(struct dl_phdr_info *, size_t, void *);
typedef struct {
    Visit *visit;
    void *data;
    int is_slow;
} Call;

static volatile int in_list;

// Holds the loader's lock for 100 ms without sleeping.
static int visit_slowly(struct dl_phdr_info *info, size_t size, void *data) {
    Call *call = (Call *)data;
    if (call->is_slow) {
        call->is_slow = 0;
        __atomic_store_n(&in_list, 1, __ATOMIC_SEQ_CST);
        for (double end = clock_seconds(CLOCK_MONOTONIC) + 0.1; clock_seconds(CLOCK_MONOTONIC) < end;)
            continue;
    }
    return call->visit(info, size, call->data);
}

// Stands between libflarena and libc.
int dl_iterate_phdr(Visit *visit, void *data) {
    static int (*next)(Visit *, void *);
    char name[16] = "";
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    prctl(PR_GET_NAME, name);
    Call call = {visit, data, strcmp(name, "flarena") == 0};
    return next(visit_slowly, &call);
}

static int count_objects(struct dl_phdr_info *info, size_t size, void *count) {
    ++*(int *)count;
    return 0;
}

static void *idle(void *unused) {
    for (;;)
        sleep_ms(1000);
    return unused;
}

static void fork_while_listing(void) {
    int client = -1;
    if (!mode_is("bare")) {
        in_list = 0;
        client = request_trim();
        CHECK(await_flag(&in_list), "a trim does not read the list");
    }
    IN_CHILD {
        int count = 0;
        dl_iterate_phdr(count_objects, &count);
        CHECK(count > 0 && dlopen("libm.so.6", RTLD_NOW) != NULL);
    }
    close(client);
}

int main(void) {
    pthread_t thread;
    free(malloc_touched(100 * MB, 1));
    start_governor();
    for (int i = 0; i < 3; i++)
        fork_while_listing();
    start_threads(&thread, 1, idle);
    for (int i = 0; i < 3; i++)
        fork_while_listing();
}
