// malloc_info returns EINVAL for options other than 0, and writes XML to its stream
#include "check.h"

int main(void) {
    char *text = NULL;
    size_t size = 0;
    free(malloc(5 * MB));
    FILE *stream = open_memstream(&text, &size);
    int result = malloc_info(1, stream);
    CHECK(result == EINVAL, "malloc_info(1) = %d", result);
    fflush(stream);
    CHECK(size == 0, "malloc_info(1) wrote: %s", text);
    CHECK(malloc_info(0, stream) == 0, "malloc_info(0) failed");
    fclose(stream);
    CHECK(strstr(text, "<malloc") != NULL && strstr(text, "</malloc>") != NULL, "wrote: %s", text);
    puts(text); // run.sh parses it as XML
    free(text);
}
