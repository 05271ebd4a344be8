// a plugin that is closed while the governor asks it is unloaded by the thread that closes it, before dlclose returns
#include "../governor/channel.h"
#include "plugin.h"

static long unloaded_by;
static volatile int is_asked;
static void note_thread(void) { unloaded_by = syscall(SYS_gettid); }

int main(void) {
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
