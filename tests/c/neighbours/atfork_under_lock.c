// a program's own allocator can register fork handlers under its lock: the library does not call it meanwhile
#define SKIP_OWNER_CHECK
#include "check.h"

// Volatile, because the compiler assumes that pthread_atfork calls no function of this file.
static volatile int in_lock, is_set_up, handled;

static void handle(void) {
    handled++;
}

// Called by own_malloc.c, which is linked, before each allocation.
void before_allocation(void) {
    if (in_lock) {
        static const char text[] = "called while its lock is held\n";
        _exit(write(2, text, sizeof text - 1) < 0 ? 4 : 3);
    }
    if (!is_set_up) {
        is_set_up = in_lock = 1;
        pthread_atfork(handle, NULL, NULL);
        in_lock = 0;
    }
}

// Runs before the constructor of any library.
static void allocate_early(void) {
    free(malloc(1));
}
__attribute__((section(".preinit_array"), used)) static void (*const early_entry)(void) = allocate_early;

int main(void) {
    extern size_t own_calls;
    size_t before = own_calls;
    free(strdup("flarena"));
    CHECK(own_calls > before, "strdup did not call the program's malloc");
    IN_CHILD {}
    CHECK(handled == 1, "%d calls of the handler", handled);
}
