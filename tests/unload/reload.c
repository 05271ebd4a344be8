// a plugin that looks like Python has a new state after dlclose and dlopen, also after a trim
#include "plugin.h"

static int unloads;
static void count(void) { unloads++; }

int main(void) {
    int (*trim)(void);
    *(void **)&trim = dlsym(RTLD_DEFAULT, "flarena_trim");
    for (int round = 1; round <= 3; round++) {
        Plugin plugin = load_plugin();
        plugin.set_host(NULL, count);
        int first = plugin.call();
        CHECK(first == 1, "call %d in round %d", first, round);
        free(malloc_touched(100 * MB, 1));
        if (trim != NULL)
            trim();
        CHECK(dlclose(plugin.handle) == 0, "dlclose: %s", dlerror());
        CHECK(unloads == round, "%d destructors ran in %d rounds", unloads, round);
    }
}
