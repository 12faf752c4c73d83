// Random numbers from NumPy's generators, one at a time where a kernel decides how many it takes.
#pragma once

#include "kernel.h"

// A generator by its addresses: of its state, and of the functions that NumPy documents for C.
struct Random {
    void *state;
    double (*next_double)(void *);
    uint32_t (*next_uint32)(void *);

    explicit Random(const int64_t *address)
        : state(reinterpret_cast<void *>(address[0])),
          next_double(reinterpret_cast<double (*)(void *)>(address[1])),
          next_uint32(reinterpret_cast<uint32_t (*)(void *)>(address[2])) {}

    // From 0 to 1, without 1.
    double number() const { return next_double(state); }

    // From 0 to count - 1, without bias, as Generator.integers draws it (Lemire 2019).
    int64_t below(int64_t count) const {
        if (count <= 1) return 0;
        const uint32_t range = static_cast<uint32_t>(count);
        uint64_t product = static_cast<uint64_t>(next_uint32(state)) * range;
        if (static_cast<uint32_t>(product) < range) {
            const uint32_t least = (0u - range) % range;
            while (static_cast<uint32_t>(product) < least)
                product = static_cast<uint64_t>(next_uint32(state)) * range;
        }
        return static_cast<int64_t>(product >> 32);
    }
};
