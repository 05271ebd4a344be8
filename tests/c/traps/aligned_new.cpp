// every form of C++ new and delete works, aligned and nothrow, also when another thread deletes
#include "check.h"
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

struct alignas(4096) Page {
    unsigned char bytes[4096];
};
struct alignas(64) Line {
    double values[1000];
};

template <typename T> static void check_array(size_t count) {
    T *array = new T[count]();
    CHECK(reinterpret_cast<uintptr_t>(array) % alignof(T) == 0, "%p for alignment %zu", static_cast<void *>(array), alignof(T));
    memset(static_cast<void *>(array), 1, count * sizeof(T));
    std::thread([array] { delete[] array; }).join();
}

int main() {
    volatile size_t too_large = PTRDIFF_MAX;
    for (size_t count : {1, 10, 1000, 5000}) {
        check_array<char>(count);
        check_array<Line>(count);
        check_array<Page>(count);
    }
    for (size_t alignment = 1; alignment <= 2 * MB; alignment *= 2) {
        void *block = ::operator new(3 * alignment, std::align_val_t(alignment));
        CHECK(reinterpret_cast<uintptr_t>(block) % alignment == 0, "%p for %zu", block, alignment);
        ::operator delete(block, 3 * alignment, std::align_val_t(alignment));
    }
    CHECK(new (std::nothrow) char[too_large] == nullptr, "nothrow new of PTRDIFF_MAX is not NULL");
    bool thrown = false;
    try {
        std::vector<char> huge(size_t(PTRDIFF_MAX) - 100);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown, "no bad_alloc");
    std::vector<std::string> grown;
    for (int i = 0; i < 300000; i++)
        grown.push_back("a string that is too long to be kept inside " + std::to_string(i));
    CHECK(grown[299999].size() == 50, "%zu", grown[299999].size());
    auto shared = std::make_shared<std::vector<double>>(5000000, 1.5);
    CHECK(shared->back() == 1.5, "%f", shared->back());
}
