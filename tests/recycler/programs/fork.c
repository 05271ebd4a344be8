// A forked child has its blocks and an empty cache, while other threads allocate
#include "recycler.h"
#include <pthread.h>
#include <sys/wait.h>

static volatile int stop;

static void *churn(void *argument)
{
    unsigned seed = (unsigned)(size_t)argument;
    while (!stop) {
        size_t size = MIB + (size_t)(rand_r(&seed) % 700) * 10000;
        char *block = touched(size, 1);
        free(block);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    char *mine = touched(10 * MIB, 6);
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)i) == 0);
    for (int round = 0; round < 40; round++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            CHECK(mine[10 * MIB - 1] == 6);
            free(mine);
            free(touched(20 * MIB, 2));
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    free(mine);
}
