// a program may close libpython, and load it again
#include "check.h"

static void (*initialize)(int), (*finalize)(void);
static int (*run)(const char *);

static void *load(const char *path, int flags) {
    void *library = dlopen(path, RTLD_NOW | flags);
    CHECK(library != NULL, "dlopen: %s", dlerror());
    *(void **)&initialize = dlsym(library, "Py_InitializeEx");
    *(void **)&finalize = dlsym(library, "Py_Finalize");
    *(void **)&run = dlsym(library, "PyRun_SimpleString");
    initialize(0);
    CHECK(run("import gc; x = [1]") == 0, "Python runs no statement");
    return library;
}

// The governor looks for Python when the program is idle, and before a collection.
static void work_and_rest(void) {
    char *blocks[20];
    for (int i = 0; i < 20; i++)
        blocks[i] = malloc_touched(10 * MB, 1);
    sleep_ms(1700);
    for (int i = 0; i < 20; i++)
        free(blocks[i]);
}

int main(void) {
    const char *path = getenv("LIBPYTHON"), *copy = getenv("LIBPYTHON_COPY");
    for (int round = 0; round < 2; round++) {
        void *library = load(path, RTLD_GLOBAL);
        // The governor starts here.
        if (round == 0)
            free_most(small_heap(100 * MB));
        work_and_rest();
        CHECK(run("assert x == [1]") == 0, "Python lost a variable");
        finalize();
        CHECK(dlclose(library) == 0, "dlclose: %s", dlerror());
        work_and_rest();
    }
    // Two at once: requests for one must not reach the other.
    load(path, RTLD_LOCAL);
    load(copy, RTLD_LOCAL);
    work_and_rest();
    CHECK(run("assert x == [1]") == 0, "Python lost a variable");
    finalize();
    work_and_rest();
}
