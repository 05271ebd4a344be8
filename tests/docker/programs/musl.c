// Linked with musl's dynamic loader, which stops at a library made for glibc.
#include <stdio.h>

int main(void) {
    puts("hello from musl");
    return 0;
}
