// A library that calls malloc.
#include <stdlib.h>

void *take(void);
void *take(void) { return malloc(100); }
