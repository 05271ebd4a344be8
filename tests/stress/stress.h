// The stress program's parts: blocks that know what they must hold (model.c), the malloc family
// (family.c), what a program may do to its own blocks (marks.c), other processes (processes.c), and the
// threads that do all that in random order (stress.c). Whoever has a block's lock may touch it.
#pragma once
#include "check.h"
#include <stdatomic.h>
#include <stdbool.h>

struct block {
    atomic_int locked;
    unsigned char *start;
    size_t size, alignment, step; // a word of the pattern at every step
    uint64_t key;                 // of the pattern: the address at which it was filled, and chance
    bool hidden;                  // by MADV_DONTFORK or WIPEONFORK: a child must not look
};

struct worker {
    uint64_t random;
    size_t first, count; // the part of the table that this worker prefers
    unsigned id;
    long done;
    bool in_child;
};

// Classes of operations, each to be left out or put in by its name.
enum class { FORK, SPAWN, CANCEL, CHURN, SIGNALS, SIGNAL_FORKS, ADVISE, HIDE, LOCK, PROTECT, MAP, TRIM, OUTSIDE, HUGE_SIZES, CLASSES };
extern bool wanted[CLASSES];
extern bool refusals_expected; // somebody makes the kernel refuse: NULL with ENOMEM is right for any size
extern uint64_t first_seed;
extern const char *replay; // the command line again, with the seed
extern size_t thread_count, live_bytes;
extern long operations, seconds;
enum { MOST_THREADS = 256 };
extern struct block *blocks;
extern size_t block_count;
extern _Thread_local struct worker *self;
extern _Thread_local volatile bool in_malloc; // a thread that is cancelled or forks must not be there; volatile: the compiler knows malloc

// As CHECK, and says how to see it again.
#define MUST(condition, format, ...)                                                                                   \
    CHECK(condition, "seed %llu, worker %u, operation %ld%s: " format "; again: %s", (unsigned long long)first_seed,   \
          self ? self->id : 0, self ? self->done : 0, self && self->in_child ? " of a child" : "", ##__VA_ARGS__, replay)

// A call of the family, with errno kept apart from what the call left.
#define CALL(expression) (in_malloc = true, (expression), in_malloc = false)

uint64_t next(struct worker *worker);
size_t below(struct worker *worker, size_t bound);
bool one_in(struct worker *worker, unsigned n);

// model.c
size_t random_size(struct worker *worker);
size_t touched_bytes(void);
struct block *take(struct worker *worker);
bool try_take(struct block *block);
void give(struct block *block);
void fill_block(struct worker *worker, struct block *block);
void check_block(const struct block *block, size_t bytes, const char *when);
void adopt(struct worker *worker, struct block *block, void *start, size_t size, size_t alignment);
void forget(struct block *block);

// family.c
void find_family(void);
void obtain(struct worker *worker, struct block *block);
void resize(struct worker *worker, struct block *block);
void release(struct worker *worker, struct block *block);
bool is_recyclers(const struct block *block);
void ask(struct worker *worker);

// marks.c
void mark(struct worker *worker, struct block *block);

// processes.c
void fork_and_check(struct worker *worker);
void start_another(struct worker *worker);
void fork_in_handler(int signal);
pid_t start_outsider(void);
pid_t start_interrupter(void);
void end_helper(pid_t helper);

// refusals.c
extern size_t mappings_held;
void expect_refusals(void);

// options.c
void read_options(int argc, char **argv);

// stress.c
void step(struct worker *worker);
