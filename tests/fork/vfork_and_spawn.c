// vfork, posix_spawn, system and popen work while threads allocate
#include "check.h"
#include <spawn.h>
#include <stdatomic.h>

extern char **environ;
static atomic_int stop;

static void *churn(void *unused) {
    while (!atomic_load(&stop)) {
        char *block = malloc(2 * MB + 5);
        block[0] = block[2 * MB] = 1;
        free(block);
        free(malloc(64));
    }
    return unused;
}

int main(void) {
    pthread_t threads[3];
    start_threads(threads, COUNT(threads), churn);
    void *kept = malloc(4 * MB);
    fill(kept, 4 * MB, 5);
    char *arguments[] = {"true", NULL};
    for (int i = 0; i < 25; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            execv("/bin/true", arguments);
            _exit(127);
        }
        CHECK_CHILD(pid);
        CHECK(posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ) == 0, "posix_spawn");
        CHECK_CHILD(pid);
    }
    CHECK(system("exit 3") >> 8 == 3, "system");
    FILE *answer = popen("echo answer", "r");
    char line[20];
    CHECK(fgets(line, sizeof line, answer) != NULL && strcmp(line, "answer\n") == 0, "popen");
    pclose(answer);
    CHECK(first_mismatch(kept, 4 * MB, 5) == 4 * MB, "the kept block changed");
    free(kept);
    atomic_store(&stop, 1);
    join_threads(threads, COUNT(threads));
}
