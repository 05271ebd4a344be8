// atexit functions and destructors of statics, threads and thread keys can allocate and free
#include "check.h"
#include <thread>
#include <vector>

struct Holder {
    std::vector<void *> blocks;
    Holder() { grow(); }
    ~Holder() {
        grow();
        for (void *block : blocks)
            free(block);
        free(malloc(7 * MB));
        malloc_trim(0);
    }
    void grow() {
        for (size_t size : SIZES)
            blocks.push_back(memset(malloc(size), 1, size));
    }
};

static Holder of_program;
static thread_local Holder of_thread;
static pthread_key_t key;

static void at_exit() {
    free(malloc(5 * MB));
    free(realloc(malloc(10), 3 * MB));
}

__attribute__((destructor(101))) static void last_destructor() {
    free(malloc(4 * MB));
    free(malloc(10));
}

int main() {
    atexit(at_exit);
    pthread_key_create(&key, [](void *block) {
        free(block);
        free(malloc(100));
        free(malloc(3 * MB));
    });
    for (int i = 0; i < 10; i++)
        std::thread([] {
            of_thread.grow();
            pthread_setspecific(key, malloc(2 * MB + 1));
        }).join();
    of_thread.grow();
    pthread_setspecific(key, malloc(1000));
}
