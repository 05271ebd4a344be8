// Loads a library with RTLD_DEEPBIND and waits until stdin ends.
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
    if (library == NULL) return 1;
    void *(*take)(void) = (void *(*)(void))dlsym(library, "take");
    if (take == NULL || take() == NULL) return 1;
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
