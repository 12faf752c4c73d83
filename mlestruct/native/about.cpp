// What a library says of itself: the headers it was built from.
#include "kernel.h"

extern "C" {
EXPORT const char *mlestruct_headers(void) { return MLESTRUCT_HEADERS; }
#if defined(__SANITIZE_ADDRESS__)
// Reads what lies behind an array, to show that the sanitizer sees it.
EXPORT double mlestruct_canary(int64_t size) {
    Arena arena;
    return arena.array<double>(size, 1.0)[size];
}
#endif
}
