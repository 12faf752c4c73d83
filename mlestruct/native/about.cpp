// What a library says of itself: the headers it was built from, and the level its processor has.
#include <cstdint>

#include "kernel.h"

#if defined(__x86_64__)
#include <cpuid.h>

static bool has_v3() {
    unsigned a, b, c, d, saved;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
    const unsigned fma = 1u << 12, movbe = 1u << 22, osxsave = 1u << 27, avx = 1u << 28,
                   f16c = 1u << 29;
    const unsigned needed = fma | movbe | osxsave | avx | f16c;
    if ((c & needed) != needed) return false;
    __asm__("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
    if ((saved & 6) != 6) return false;  // the system saves the wide registers
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    const unsigned bmi = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8;
    if ((b & (bmi | avx2 | bmi2)) != (bmi | avx2 | bmi2)) return false;
    return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (c & (1u << 5));  // lzcnt
}
#else
static bool has_v3() { return false; }
#endif

extern "C" {
EXPORT const char *mlestruct_headers(void) { return MLESTRUCT_HEADERS; }
EXPORT int64_t mlestruct_level(void) { return has_v3() ? 3 : 1; }
#if defined(__SANITIZE_ADDRESS__)
// Reads what lies behind an array, to show that the sanitizer sees it.
EXPORT double mlestruct_canary(int64_t size) {
    Arena arena;
    return arena.array<double>(size, 1.0)[size];
}
#endif
}
