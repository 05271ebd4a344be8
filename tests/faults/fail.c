// Runs a command and makes selected system calls of all its processes fail. It uses seccomp's user notification, which
// also sees raw system calls.
//
//   fail --calls=mmap,clone,... [--error=ENOMEM] [--from=N [--to=N]] [--one-in=N --seed=N] [--armed] [--report=FILE] -- COMMAND...
//
//   fail --mappings=N ...: calls fail as they would with vm.max_map_count=N
//   fail --calls=mmap --slow=MS ...: no call fails, each takes MS milliseconds
//
// --from and --to: the calls N to M fail. --one-in: each call fails with probability 1/N. --armed: counting starts at the
// program's prctl(0x666c6172). The exit status is that of the command, 128 + N after signal N, or 77 if the kernel has no
// user notification.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARM 0x666c6172
#define MOST_CALLS 32

struct call {
    const char *name;
    int number;
};
static const struct call CALLS[] = {
    {"mmap", SYS_mmap}, {"mremap", SYS_mremap}, {"munmap", SYS_munmap}, {"madvise", SYS_madvise}, {"mprotect", SYS_mprotect},
#ifdef SYS_fork
    {"clone", SYS_fork}, {"clone", SYS_vfork},
#endif
    {"clone", SYS_clone}, {"clone", SYS_clone3},
#ifdef SYS_open
    {"open", SYS_open},
#endif
    {"open", SYS_openat}, {"write", SYS_write}, {"write", SYS_writev}, {"socket", SYS_socket}, {"prctl", SYS_prctl},
    {"poll", SYS_ppoll}, {"eventfd", SYS_eventfd2}, {"mbind", SYS_mbind}, {"mlock", SYS_munlock}, {"futex", SYS_futex},
};

static int numbers[MOST_CALLS];
static size_t number_count;
static int error = ENOMEM;
static unsigned long from, to, one_in, most_mappings, slow, chance = 1;
static int armed = 1;
static const char *report;
static unsigned long seen, failed;

static void die(const char *what) {
    fprintf(stderr, "fail: %s: %s\n", what, strerror(errno));
    exit(errno == ENOSYS || errno == EINVAL || errno == EPERM || errno == EBUSY ? 77 : 125);
}

static int install_filter(void) {
    struct sock_filter code[MOST_CALLS * 2 + 8];
    unsigned short length = 0;
    code[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < number_count; i++) {
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i], 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]));
    code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARM, 0, 1);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {length, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        die("no_new_privs");
    int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener < 0)
        die("seccomp");
    return listener;
}

// Sends the descriptor over the channel, or receives it.
static void transfer_descriptor(int channel, int *descriptor, int sending) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control = {0};
    char byte = 0;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (sending) {
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(header), descriptor, sizeof(int));
        if (sendmsg(channel, &message, 0) != 1)
            die("sendmsg");
    } else {
        if (recvmsg(channel, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == NULL)
            exit(77); // the child has printed the reason
        memcpy(descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    }
}

static int is_inside(unsigned long at, unsigned long start, unsigned long end) {
    return start < at && at < end;
}

// Whether the call would need more mappings than the process may have.
static int exceeds_mappings(const struct seccomp_notif *request) {
    const unsigned long *arguments = (const unsigned long *)request->data.args;
    unsigned long first = arguments[0], last = first + arguments[1], start, end, count = 0;
    int number = request->data.nr, is_split = 0;
    char path[40], line[512];
    snprintf(path, sizeof path, "/proc/%u/maps", request->pid);
    FILE *maps = fopen(path, "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx", &start, &end) == 2) {
            count++;
            // munmap at one end of a mapping shortens it. Every other call inside a mapping splits it.
            is_split |= number == SYS_munmap ? is_inside(first, start, end) && is_inside(last, start, end)
                                             : is_inside(first, start, end) || is_inside(last, start, end);
        }
    if (maps != NULL)
        fclose(maps);
    if (number == SYS_mmap)
        return count > most_mappings;
    if (number == SYS_mremap)
        return count >= most_mappings - 3;
    return is_split && count >= most_mappings;
}

// A kernel that resizes in place checks the mapping before it finds that memory is short. The library uses this call to
// detect whether a range is one mapping, so that an injected ENOMEM would be a wrong answer.
static int is_mapping_probe(const struct seccomp_notif *request) {
    return request->data.nr == SYS_mremap && error == ENOMEM && !(request->data.args[3] & MREMAP_MAYMOVE);
}

static int should_fail(const struct seccomp_notif *request) {
    if (is_mapping_probe(request))
        return 0;
    seen++;
    if (most_mappings > 0)
        return exceeds_mappings(request);
    if (one_in > 0) {
        chance = chance * 6364136223846793005u + 1442695040888963407u;
        return (chance >> 33) % one_in == 0;
    }
    return seen >= from && seen <= to;
}

static void answer_request(int listener) {
    struct seccomp_notif request = {0};
    struct seccomp_notif_resp answer = {0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0)
        return; // the thread has ended, or a signal interrupted the call
    answer.id = request.id;
    if (request.data.nr == SYS_prctl && (unsigned)request.data.args[0] == ARM) {
        armed = 1;
        answer.error = 0;
    } else if (armed && should_fail(&request)) {
        failed++;
        answer.error = -error;
    } else {
        if (armed && slow > 0)
            usleep((useconds_t)(slow * 1000));
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

static void choose_calls(char *names) {
    for (char *name = strtok(names, ","); name != NULL; name = strtok(NULL, ",")) {
        size_t before = number_count;
        for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS && number_count < MOST_CALLS; i++)
            if (strcmp(CALLS[i].name, name) == 0)
                numbers[number_count++] = CALLS[i].number;
        if (number_count == before)
            fprintf(stderr, "fail: unknown call %s\n", name), exit(125);
    }
}

static void choose_error(const char *name) {
    for (error = 1; strerrorname_np(error) == NULL || strcmp(strerrorname_np(error), name) != 0; error++)
        if (error > 200)
            fprintf(stderr, "fail: unknown error %s\n", name), exit(125);
}

static char **read_options(char **argv) {
    const struct {
        const char *name;
        unsigned long *number;
    } options[] = {{"--from", &from},     {"--to", &to},       {"--mappings", &most_mappings},
                   {"--one-in", &one_in}, {"--seed", &chance}, {"--slow", &slow}};
    for (argv++; *argv != NULL && strcmp(*argv, "--") != 0; argv++) {
        char *name = *argv, *value = strchr(name, '=');
        if (strcmp(name, "--armed") == 0) {
            armed = 0;
            continue;
        }
        if (value == NULL)
            exit(125);
        *value++ = '\0';
        if (strcmp(name, "--calls") == 0)
            choose_calls(value);
        else if (strcmp(name, "--error") == 0)
            choose_error(value);
        else if (strcmp(name, "--report") == 0)
            report = value;
        for (size_t i = 0; i < sizeof options / sizeof *options; i++)
            if (strcmp(name, options[i].name) == 0)
                *options[i].number = strtoul(value, NULL, 0);
    }
    to = to > from ? to : from;
    return *argv == NULL ? argv : argv + 1;
}

int main(int argc, char **argv) {
    (void)argc;
    int channel[2], listener, status;
    char **command = read_options(argv);
    if (*command == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) != 0)
        die("no command");
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const char *library = getenv("FAIL_PRELOAD"); // the LD_PRELOAD of the command, not of this program
        if (library != NULL)
            setenv("LD_PRELOAD", library, 1);
        unsetenv("FAIL_PRELOAD");
        listener = install_filter();
        transfer_descriptor(channel[1], &listener, 1);
        close(listener);
        execvp(*command, command);
        _exit(127);
    }
    close(channel[1]);
    transfer_descriptor(channel[0], &listener, 0);
    for (struct pollfd polled = {.fd = listener, .events = POLLIN};;) {
        if (poll(&polled, 1, -1) < 0 && errno != EINTR)
            break;
        if (polled.revents & POLLIN)
            answer_request(listener);
        else if (polled.revents & (POLLHUP | POLLERR))
            break;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    FILE *to_file = report != NULL ? fopen(report, "w") : NULL;
    if (to_file != NULL) {
        fprintf(to_file, "%lu %lu\n", seen, failed);
        fclose(to_file);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
