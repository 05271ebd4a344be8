// a process that stays small never gets a second thread
#include "../check.h"
#include <dirent.h>

int main(void) {
    for (int i = 0; i < 2000; i++) {
        free(malloc(1000));
        char *block = malloc(2 * MB);
        block[0] = 1;
        free(block);
    }
    malloc_trim(0);
    usleep(100000);
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    CHECK(count == 1, "%d threads", count);
    closedir(tasks);
}
