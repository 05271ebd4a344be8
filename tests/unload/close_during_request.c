// a plugin that is closed while the governor asks it is unloaded by the thread that closes it, before dlclose returns
#include "../governor/channel.h"
#include "plugin.h"

static long unloaded_by;
static atomic_int is_asked;
static void note_thread(void) { unloaded_by = syscall(SYS_gettid); }

int main(void) {
    start_governor();
    for (int round = 0; round < 3; round++) {
        Plugin plugin = load_plugin();
        plugin.set_host(&is_asked, note_thread);
        int client = -1;
        if (!mode_is("bare")) {
            atomic_store(&is_asked, 0);
            client = await_channel(getpid(), start_ticks());
            CHECK(send(client, "trim\n", 5, MSG_NOSIGNAL) == 5, "no control channel");
            for (int ms = 0; ms < 10000 && atomic_load(&is_asked) == 0; ms++)
                sleep_ms(1);
            CHECK(atomic_load(&is_asked) == 1, "a trim asks no plugin that looks like Python");
        }
        unloaded_by = 0;
        CHECK(dlclose(plugin.handle) == 0, "dlclose: %s", dlerror());
        CHECK(unloaded_by == getpid(), "unloaded by thread %ld of process %d", unloaded_by, getpid());
        close(client);
    }
}
