// a descriptor that the program opens gets the lowest free number while the governor reads files near a limit
#include "../lowest.h"

int main(void) {
    free_most(small_heap(100 * MB));
    char *live = malloc_touched(100 * MB, 1); // near the limit the governor reads files four times a second
    await_governor();
    sleep_ms(500);
    check_lowest_descriptor_for(8);
    free(live);
}
