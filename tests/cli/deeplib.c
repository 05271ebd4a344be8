// A library with a malloc of its own to call.
#include <stdlib.h>

void *take(void);
void *take(void) { return malloc(100); }
