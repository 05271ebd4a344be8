// Loads the plugin of lib/plugin.c.
#pragma once

#include "check.h"

typedef struct {
    void *handle;
    int (*call)(void);
    void (*set_host)(volatile int *is_asked, void (*on_unload)(void));
} Plugin;

static inline Plugin load_plugin(void) {
    Plugin plugin = {dlopen(getenv("PLUGIN"), RTLD_NOW), NULL, NULL};
    CHECK(plugin.handle != NULL, "dlopen: %s", dlerror());
    *(void **)&plugin.call = dlsym(plugin.handle, "call");
    *(void **)&plugin.set_host = dlsym(plugin.handle, "set_host");
    return plugin;
}
