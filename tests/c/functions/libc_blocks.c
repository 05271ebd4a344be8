// blocks that libc allocates (strdup, asprintf, getline, getcwd, realpath) can be resized and freed
#include "check.h"

int main(void) {
    char *text = strdup("twelve bytes"), *line = NULL, *printed = NULL, *here = getcwd(NULL, 0), *real = realpath("/proc/..", NULL);
    size_t capacity = 0;
    CHECK(asprintf(&printed, "%0*d", 300000, 7) == 300000, "asprintf");
    FILE *words = tmpfile();
    for (int i = 0; i < 400000; i++)
        fputs("0123456789", words);
    rewind(words);
    CHECK(getline(&line, &capacity, words) == 4000000, "getline");
    fclose(words);
    text = realloc(text, 9 * MB);
    CHECK(strcmp(text, "twelve bytes") == 0, "%s", text);
    line = realloc(line, 20);
    CHECK(memcmp(line, "01234567890123456789", 20) == 0, "%.20s", line);
    CHECK(here != NULL && strcmp(real, "/") == 0, "%s, %s", here, real);
    free(text);
    free(line);
    free(printed);
    free(here);
    free(real);
}
