// Prints the number of glibc arenas after sixteen threads allocated at once. Arguments are ignored, so
// that a test can use any command line.
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t together;

static void *allocate(void *unused) {
    void *block = malloc(5000);
    pthread_barrier_wait(&together);
    free(block);
    return unused;
}

int main(void) {
    pthread_t threads[16];
    char *xml = NULL;
    size_t size = 0;
    int arenas = 0;
    pthread_barrier_init(&together, NULL, 16);
    for (int i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, allocate, NULL);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
    FILE *stream = open_memstream(&xml, &size);
    malloc_info(0, stream);
    fclose(stream);
    for (char *at = xml; (at = strstr(at, "<heap nr=")) != NULL; at++)
        arenas++;
    printf("%d\n", arenas);
}
