// Linked with musl's dynamic loader, which refuses a library for glibc.
#include <stdio.h>

int main(void) {
    puts("hello from musl");
    return 0;
}
