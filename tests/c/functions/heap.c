// Functions of glibc that report on its heap and tune it.
#include "tests.h"

TEST("malloc_info returns EINVAL for options other than 0, and writes XML to its stream") {
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

TEST("malloc_stats writes to stderr and not to stdout") {
    int pipes[2][2];
    static char seen[2][1 << 16];
    free(malloc(5 * MB));
    CHECK(pipe2(pipes[0], O_NONBLOCK) == 0 && pipe2(pipes[1], O_NONBLOCK) == 0, "pipe: %s", strerror(errno));
    int saved = dup(2);
    dup2(pipes[0][1], 1);
    dup2(pipes[1][1], 2);
    malloc_stats();
    fflush(NULL);
    dup2(saved, 2);
    long out = read(pipes[0][0], seen[0], sizeof seen[0]), error = read(pipes[1][0], seen[1], sizeof seen[1] - 1);
    CHECK(out <= 0, "%ld bytes on stdout: %.200s", out, seen[0]);
    CHECK(error > 20, "%ld bytes on stderr", error);
    CHECK(strpbrk(seen[1], "0123456789") != NULL, "no number in: %.200s", seen[1]);
}

#define BLOCKS 60000
static char *blocks[BLOCKS];

TEST("malloc_trim returns 1 if it released memory and 0 if there was none to release") {
    void *first = malloc(100);
    malloc_trim(0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(1500);
            memset(blocks[i], 1, 1500);
        }
        // The live blocks keep the top of the heap in place, so that only trim can release the free ones.
        // They are few, so that most slabs of jemalloc are empty: on arm64 a slab holds 128 blocks.
        for (size_t i = 0; i < BLOCKS; i++)
            if (i % 1000 != 999)
                free(blocks[i]);
        long before = rss_bytes();
        int result = malloc_trim(0), again = malloc_trim(0);
        long after = rss_bytes();
        CHECK(result == 1, "%d with %ld bytes resident before, %ld after", result, before, after);
        CHECK(before - after > (long)(30 * MB), "1, but %ld bytes resident before, %ld after", before, after);
        CHECK(again == 0 || mode_is("bare"), "the second trim in a row returned %d; %ld resident before, %ld after", again, before, after);
        for (size_t i = 999; i < BLOCKS; i += 1000)
            free(blocks[i]);
        malloc_trim(0);
    }
    free(first);
}

// The malloc of glibc. In both modes it serves libraries loaded with RTLD_DEEPBIND.
extern void *__libc_malloc(size_t size);
extern void __libc_free(void *block);

TEST("mallopt changes glibc's heap in both modes, with glibc's return values, and never jemalloc's; M_PERTURB fills large blocks") {
    const int options[] = {M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX, M_ARENA_TEST};
    for (size_t i = 0; i < COUNT(options); i++) {
        int result = mallopt(options[i], 4);
        CHECK(result == 1, "mallopt(%d, 4) = %d", options[i], result);
    }
    int refused = mallopt(M_MXFAST, 1 << 20);
    CHECK(refused == 0, "mallopt(M_MXFAST, 1 << 20) = %d", refused);
    // M_PERTURB fills fresh memory with a byte, which shows that glibc got the call.
    unsigned char *before = malloc(5000);
    CHECK(before[4000] == 0, "the byte of a fresh block is %x", before[4000]);
    int result = mallopt(M_PERTURB, 0x5a);
    unsigned char *of_glibc = __libc_malloc(5000), *of_mode = malloc(5000);
    CHECK(result == 1 && of_glibc[4000] == (0x5a ^ 0xff), "mallopt = %d, the byte of glibc's block is %x", result, of_glibc[4000]);
    unsigned char expected = mode_is("jemalloc") ? 0 : 0x5a ^ 0xff;
    CHECK(of_mode[4000] == expected, "the byte of a block is %x", of_mode[4000]);
    unsigned char *large = malloc(20 * MB);
    CHECK(large[10 * MB] == expected, "the byte of a large block is %x", large[10 * MB]);
    free(large);
    memset(of_mode, 1, 5000);
    free(before);
    free(of_mode);
    __libc_free(of_glibc);
    free(malloc(10 * MB));
}
