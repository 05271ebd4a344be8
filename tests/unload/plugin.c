// A plugin that looks like Python.
#include "governor/channel.h"
#include "tests.h"

typedef struct {
    void *handle;
    int (*call)(void);
    void (*set_host)(volatile int *is_asked, void (*on_unload)(void));
} Plugin;

static Plugin load_plugin(void) {
    Plugin plugin = {dlopen(getenv("PLUGIN"), RTLD_NOW), NULL, NULL};
    CHECK(plugin.handle != NULL, "dlopen: %s", dlerror());
    *(void **)&plugin.call = dlsym(plugin.handle, "call");
    *(void **)&plugin.set_host = dlsym(plugin.handle, "set_host");
    return plugin;
}

static int unloads;
static void count_unload(void) { unloads++; }

TEST("a plugin that looks like Python has a new state after dlclose and dlopen, also after a trim") {
    for (int round = 1; round <= 3; round++) {
        Plugin plugin = load_plugin();
        plugin.set_host(NULL, count_unload);
        int first = plugin.call();
        CHECK(first == 1, "call %d in round %d", first, round);
        free(malloc_touched(100 * MB, 1));
        if (flarena_trim != NULL)
            flarena_trim();
        CHECK(dlclose(plugin.handle) == 0, "dlclose: %s", dlerror());
        CHECK(unloads == round, "%d destructors ran in %d rounds", unloads, round);
    }
}

static long unloaded_by;
static volatile int is_asked;
static void note_thread(void) { unloaded_by = syscall(SYS_gettid); }

TEST("a plugin that is closed while the governor asks it is unloaded in its dlclose, by the thread that calls it") {
    start_governor();
    for (int round = 0; round < 3; round++) {
        Plugin plugin = load_plugin();
        plugin.set_host(&is_asked, note_thread);
        int client = -1;
        if (!mode_is("bare")) {
            is_asked = 0;
            client = request_trim();
            CHECK(await_flag(&is_asked), "a trim asks no plugin that looks like Python");
        }
        unloaded_by = 0;
        CHECK(dlclose(plugin.handle) == 0, "dlclose: %s", dlerror());
        CHECK(unloaded_by == getpid(), "unloaded by thread %ld of process %d", unloaded_by, getpid());
        close(client);
    }
}
