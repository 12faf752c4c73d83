// What every kernel starts from: annotations of headers, statuses, and memory without exceptions.
#pragma once

#include <cstdint>
#include <cstdlib>

// For functions of Rows: GCC would else pass these through memory.
#define INLINE inline __attribute__((always_inline))
#define EXPORT __attribute__((visibility("default")))
// Annotations that door.py reads, and C++ does not.
#define N(size)
#define BELOW(size)
#define MAYBE

using status = int64_t;
constexpr status OK = 0;
constexpr int64_t NO_MEMORY = INT64_MIN;

// Memory of one call, freed at its end. Reserve all of it first, then ask once whether it failed:
//
//     Arena arena;
//     double *price = arena.array<double>(n);
//     if (arena.failed) return NO_MEMORY;
class Arena {
  public:
    bool failed = false;

    Arena() = default;
    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;
    ~Arena() {
        while (last) {
            Block *before = last->before;
            std::free(last);
            last = before;
        }
    }

    // Return room for `size` numbers, not initialised, on a boundary of 64 bytes.
    template <class T>
    T *array(int64_t size) {
#if defined(__SANITIZE_ADDRESS__)  // where no array is longer than was asked for
        const uint64_t bytes = static_cast<uint64_t>(size < 1 ? 1 : size) * sizeof(T);
#else
        const uint64_t bytes =
            (static_cast<uint64_t>(size < 1 ? 1 : size) * sizeof(T) + 127) & ~63ull;
#endif
        void *found = nullptr;
        if (size > (INT64_MAX >> 4) / static_cast<int64_t>(sizeof(T)) ||
            posix_memalign(&found, 64, bytes + sizeof(Block))) {
            failed = true;
            return nullptr;
        }
        Block *block = static_cast<Block *>(found);
        block->before = last;
        last = block;
        return reinterpret_cast<T *>(block + 1);
    }

    // The same, filled with one value.
    template <class T>
    T *array(int64_t size, T value) {
        T *made = array<T>(size);
        for (int64_t k = 0; made && k < size; ++k) made[k] = value;
        return made;
    }

  private:
    struct alignas(64) Block {
        Block *before;
    };
    Block *last = nullptr;
};
