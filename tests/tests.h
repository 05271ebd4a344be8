// A program of several tests: TEST("sentence") { ... }. It runs the test that begins in the line TEST_LINE, or each of
// them.
#pragma once

#include "check.h"

static struct {
    long line;
    void (*run)(void);
} tests[16];
static size_t test_count;

#define TEST(sentence) TEST_IN_LINE(__LINE__)
#define TEST_IN_LINE(number) DEFINE_TEST(number)
#define DEFINE_TEST(number)                                                     \
    static void test_##number(void);                                            \
    __attribute__((constructor)) static void register_##number(void) {          \
        CHECK(test_count < COUNT(tests), "too many tests");                     \
        tests[test_count].line = number;                                        \
        tests[test_count++].run = test_##number;                                \
    }                                                                           \
    static void test_##number(void)

int main(void) {
    const char *line = getenv("TEST_LINE");
    size_t run = 0;
    for (size_t i = 0; i < test_count; i++)
        if (line == NULL || tests[i].line == atol(line))
            tests[i].run(), run++;
    CHECK(run > 0, "no test begins in line %s", line);
}
