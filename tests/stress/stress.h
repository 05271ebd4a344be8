// The parts of the stress program: the expected contents of blocks (model.c), the malloc family (family.c), attributes of
// pages (attributes.c), other processes (processes.c), and the threads that do all this in random order (stress.c).
// A thread must hold a block's lock to use the block.
#pragma once
#include "check.h"
#include <stdatomic.h>
#include <stdbool.h>

struct block {
    atomic_int locked;
    unsigned char *start;
    size_t size, alignment, step; // a word of the pattern at every step
    uint64_t key;                 // of the pattern: the address at which the block was filled, and random bits
    bool hidden;                  // has MADV_DONTFORK or MADV_WIPEONFORK: a child must not read it
};

struct worker {
    uint64_t random;
    size_t first, count; // the part of the table that this worker prefers
    unsigned id;
    long done;
    bool in_child;
};

// Classes of operations, which options switch on and off by name.
enum class { FORK, SPAWN, CANCEL, CHURN, SIGNALS, SIGNAL_FORKS, ADVISE, HIDE, LOCK, PROTECT, MAP, TRIM, OUTSIDE, HUGE_SIZES, CLASSES };
extern bool enabled[CLASSES];
extern bool failures_expected; // system calls are made to fail: NULL with ENOMEM is allowed for any size
extern uint64_t first_seed;
extern const char *replay; // the command line that repeats the run
extern size_t thread_count, live_bytes;
extern long operations, seconds;
enum { MOST_THREADS = 256 };
extern struct block *blocks;
extern size_t block_count;
extern _Thread_local struct worker *self;
extern _Thread_local volatile bool in_malloc; // a cancellation or a fork must not happen inside; volatile, because the compiler knows malloc

// As CHECK, and prints the command that repeats the run.
#define MUST(condition, format, ...)                                                                                   \
    CHECK(condition, "seed %llu, worker %u, operation %ld%s: " format "; repeat: %s", (unsigned long long)first_seed,   \
          self ? self->id : 0, self ? self->done : 0, self && self->in_child ? " of a child" : "", ##__VA_ARGS__, replay)

// A call of the family, during which in_malloc is set.
#define CALL(expression) (in_malloc = true, (expression), in_malloc = false)

uint64_t next(struct worker *worker);
size_t below(struct worker *worker, size_t bound);
bool one_in(struct worker *worker, unsigned n);

// model.c
size_t random_size(struct worker *worker);
size_t touched_bytes(void);
struct block *lock_block(struct worker *worker);
bool try_lock(struct block *block);
void unlock_block(struct block *block);
void fill_block(struct worker *worker, struct block *block);
void check_block(const struct block *block, size_t bytes, const char *when);
void set_block(struct worker *worker, struct block *block, void *start, size_t size, size_t alignment);
void clear_block(struct block *block);

// family.c
void obtain(struct worker *worker, struct block *block);
void resize(struct worker *worker, struct block *block);
void release(struct worker *worker, struct block *block);
bool is_from_recycler(const struct block *block);
void read_statistics(struct worker *worker);

// attributes.c
void change_attributes(struct worker *worker, struct block *block);

// processes.c
void fork_and_check(struct worker *worker);
void start_another(struct worker *worker);
void fork_in_handler(int signal);
pid_t start_requester(void);
pid_t start_interrupter(void);
void end_helper(pid_t helper);

// failures.c
extern size_t mappings_held;
void prepare_for_failures(void);

// options.c
void read_options(int argc, char **argv);

// stress.c
void step(struct worker *worker);
