// Rows of eight numbers: arithmetic, comparisons, sums in one order, exponentials and logarithms.
//
// A Row is as many of the processor's registers as hold eight numbers (GCC takes a wider vector
// type apart number by number). The order of every sum is written down, and products are fused with
// sums in `add_product` only, so that all compilers and all processors of a level give the same
// bits.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "kernel.h"

constexpr int64_t EIGHT = 8;
#if defined(__AVX__)
constexpr int WIDTH = 4;
#else
constexpr int WIDTH = 2;
#endif
constexpr int PARTS = EIGHT / WIDTH;
typedef double Part __attribute__((vector_size(WIDTH * 8)));
typedef int64_t PartBits __attribute__((vector_size(WIDTH * 8)));
typedef double UnalignedPart __attribute__((vector_size(WIDTH * 8), aligned(8), may_alias));

constexpr double INF = __builtin_inf();

struct Row {
    Part part[PARTS];
    double operator[](int k) const { return part[k / WIDTH][k % WIDTH]; }
};
struct Bits {
    PartBits part[PARTS];
};

INLINE int64_t whole_eights(int64_t size) { return (size + EIGHT - 1) / EIGHT * EIGHT; }

#define EACH_PART(p) for (int p = 0; p < PARTS; ++p)
#define OPERATOR(type, op)                                \
    INLINE type operator op(type x, type y) {             \
        EACH_PART (p) x.part[p] = x.part[p] op y.part[p]; \
        return x;                                         \
    }
OPERATOR(Row, +)
OPERATOR(Row, -)
OPERATOR(Row, *)
OPERATOR(Row, /)
OPERATOR(Bits, &)
OPERATOR(Bits, |)
OPERATOR(Bits, +)
#undef OPERATOR

INLINE Row row_of(double x) {
    Row found;
    EACH_PART (p) found.part[p] = Part{} + x;
    return found;
}
#define WITH_NUMBER(op)                                                \
    INLINE Row operator op(Row x, double y) { return x op row_of(y); } \
    INLINE Row operator op(double x, Row y) { return row_of(x) op y; }
WITH_NUMBER(+)
WITH_NUMBER(-)
WITH_NUMBER(*)
WITH_NUMBER(/)
#undef WITH_NUMBER
#define COMPARISON(op)                                        \
    INLINE Bits operator op(Row x, Row y) {                   \
        Bits found;                                           \
        EACH_PART (p) found.part[p] = x.part[p] op y.part[p]; \
        return found;                                         \
    }
COMPARISON(<)
COMPARISON(>)
COMPARISON(<=)
COMPARISON(>=)
COMPARISON(==)
COMPARISON(!=)
#undef COMPARISON
INLINE Row operator-(Row x) {
    EACH_PART (p) x.part[p] = -x.part[p];
    return x;
}
// total + x * y, rounded once where every processor of the level can.
INLINE Row add_product(Row total, Row x, Row y) {
#if defined(__FMA__)
    EACH_PART (p) total.part[p] = _mm256_fmadd_pd(x.part[p], y.part[p], total.part[p]);
    return total;
#else
    return total + x * y;
#endif
}
INLINE double add_product(double total, double x, double y) {
#if defined(__FMA__)
    return __builtin_fma(x, y, total);
#else
    return total + x * y;
#endif
}
INLINE Bits bits(int64_t x) {
    Bits found;
    EACH_PART (p) found.part[p] = PartBits{} + x;
    return found;
}
INLINE Bits operator&(Bits x, int64_t y) { return x & bits(y); }
INLINE Bits operator|(Bits x, int64_t y) { return x | bits(y); }
INLINE Bits operator<<(Bits x, int by) {
    EACH_PART (p) x.part[p] = x.part[p] << by;
    return x;
}
INLINE Bits operator>>(Bits x, int by) {  // zeros come in from the left
    typedef uint64_t Unsigned __attribute__((vector_size(WIDTH * 8)));
    EACH_PART (p)
        x.part[p] = reinterpret_cast<PartBits>(reinterpret_cast<Unsigned>(x.part[p]) >> by);
    return x;
}

INLINE Row load(const double *from) {
    Row found;
    EACH_PART (p) found.part[p] = *reinterpret_cast<const UnalignedPart *>(from + p * WIDTH);
    return found;
}
INLINE void store(double *to, Row x) {
    EACH_PART (p) *reinterpret_cast<UnalignedPart *>(to + p * WIDTH) = x.part[p];
}
// first, first + 1, ...
INLINE Row counted_from(double first) {
    Row found;
    EACH_PART (p)
        for (int k = 0; k < WIDTH; ++k) found.part[p][k] = first + (p * WIDTH + k);
    return found;
}

// The first `count` of eight numbers, and `fill` after them. Reads nothing from `end` on.
INLINE Row load_some(const double *from, int64_t count, const double *end, double fill) {
    Row found = row_of(fill);
    if (from + EIGHT <= end) {
        const Row x = load(from), limit = row_of(static_cast<double>(count));
        EACH_PART (p)
            found.part[p] = counted_from(0.0).part[p] < limit.part[p] ? x.part[p] : found.part[p];
        return found;
    }
    double some[EIGHT];
    store(some, found);
    for (int64_t k = 0; k < count && k < EIGHT; ++k) some[k] = from[k];
    return load(some);
}

// Lane by lane, x where the comparison holds, else y: select(a < b, x, y).
INLINE Row select(Bits mask, Row x, Row y) {
    EACH_PART (p) x.part[p] = mask.part[p] ? x.part[p] : y.part[p];
    return x;
}
INLINE double select(bool mask, double x, double y) { return mask ? x : y; }

INLINE bool any(Bits mask) {
    PartBits found = mask.part[0];
    for (int p = 1; p < PARTS; ++p) found = found | mask.part[p];
    int64_t all = found[0];
    for (int k = 1; k < WIDTH; ++k) all |= found[k];
    return all != 0;
}

#if defined(__AVX__)  // one instruction each, which compilers choose with -ffast-math only
INLINE Row larger(Row x, Row y) {
    EACH_PART (p) x.part[p] = _mm256_max_pd(x.part[p], y.part[p]);
    return x;
}
INLINE Row smaller(Row x, Row y) {
    EACH_PART (p) x.part[p] = _mm256_min_pd(x.part[p], y.part[p]);
    return x;
}
#else
INLINE Row larger(Row x, Row y) { return select(x > y, x, y); }
INLINE Row smaller(Row x, Row y) { return select(y > x, x, y); }
#endif
INLINE double larger(double x, double y) { return x > y ? x : y; }
INLINE double smaller(double x, double y) { return y > x ? x : y; }

// Halves with halves: the order in which eight lanes become one number.
INLINE double sum(Row x) {
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}
// The sums of eight Rows, each in that order; row(k) makes them one by one.
template <class Make>
INLINE Row sums(const Make &row) {
    Row found;
#if defined(__AVX__)
    EACH_PART (p) {
        Part half[WIDTH];
        for (int k = 0; k < WIDTH; ++k) {
            const Row x = row(WIDTH * p + k);
            half[k] = x.part[0] + x.part[1];
        }
        const Part a = __builtin_shufflevector(half[0], half[2], 0, 1, 4, 5) +
                       __builtin_shufflevector(half[0], half[2], 2, 3, 6, 7);
        const Part b = __builtin_shufflevector(half[1], half[3], 0, 1, 4, 5) +
                       __builtin_shufflevector(half[1], half[3], 2, 3, 6, 7);
        found.part[p] =
            __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
    }
#else
    for (int k = 0; k < EIGHT; ++k) found.part[k / WIDTH][k % WIDTH] = sum(row(k));
#endif
    return found;
}
// Of the first four numbers, as if the others were 0.
INLINE double half_sum(Row x) { return (x[0] + x[2]) + (x[1] + x[3]); }
INLINE void store_half(double *to, Row x) {
    for (int p = 0; p < PARTS / 2; ++p)
        *reinterpret_cast<UnalignedPart *>(to + p * WIDTH) = x.part[p];
}
INLINE double largest(Row x) {
    const double a = larger(larger(x[0], x[4]), larger(x[2], x[6]));
    const double b = larger(larger(x[1], x[5]), larger(x[3], x[7]));
    return larger(a, b);
}

INLINE double smallest(Row x) { return -largest(-x); }

INLINE Bits bits_of(Row x) {
    Bits found;
    EACH_PART (p) found.part[p] = reinterpret_cast<PartBits>(x.part[p]);
    return found;
}
INLINE Row from_bits(Bits x) {
    Row found;
    EACH_PART (p) found.part[p] = reinterpret_cast<Part>(x.part[p]);
    return found;
}
INLINE int64_t bits_of(double x) {
    int64_t found;
    std::memcpy(&found, &x, sizeof found);
    return found;
}
INLINE double from_bits(int64_t x) {
    double found;
    std::memcpy(&found, &x, sizeof found);
    return found;
}
INLINE Bits shifted_left(Bits x, int by) { return x << by; }
INLINE int64_t shifted_left(int64_t x, int by) {  // what leaves on the left is lost
    return static_cast<int64_t>(static_cast<uint64_t>(x) << by);
}
template <class T>
T everywhere(double x);
template <>
INLINE double everywhere<double>(double x) {
    return x;
}
template <>
INLINE Row everywhere<Row>(double x) {
    return row_of(x);
}

// Exponentials and logarithms after FreeBSD's msun (e_exp.c, e_log.c; Sun Microsystems 1993)
// without branches, for a Row or one number: an error of 1.02 units in the last place at most.
constexpr double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
constexpr double LEAST_EXPONENT = -708.0;  // exponents from this one down give 0

// total + x * y where x or y is one number for all lanes.
template <class T>
INLINE T add_times(T total, T x, double y) {
    return add_product(total, x, everywhere<T>(y));
}
// first + x * second
template <class T>
INLINE T line(double first, T x, double second) {
    return add_product(everywhere<T>(first), x, everywhere<T>(second));
}

// e^x for exponents up to 700; 0 from LEAST_EXPONENT down.
template <class T>
INLINE T exponential(T x) {
    const T least = everywhere<T>(LEAST_EXPONENT);
    const T kept = larger(x, least);
    const T turned = line(6755399441055744.0, kept, 1.4426950408889634);  // 1.5 * 2^52: it rounds
    const T power = turned - 6755399441055744.0;
    const T r = add_times(add_times(kept, power, -LN2_HIGH), power, -LN2_LOW);
    const T r2 = r * r, r4 = r2 * r2;
    const T a = add_product(line(1.0 / 2, r, 1.0 / 6), r2, line(1.0 / 24, r, 1.0 / 120));
    const T b = add_product(line(1.0 / 720, r, 1.0 / 5040), r2, line(1.0 / 40320, r, 1.0 / 362880));
    const T c = add_product(line(1.0 / 3628800, r, 1.0 / 39916800), r2,
                            line(1.0 / 479001600, r, 1.0 / 6227020800.0));
    const T series = add_product(add_product(a, r4, b), r4 * r4, c);
    const T y = 1.0 + add_product(r, r2, series);
    return select(x > least, from_bits(bits_of(y) + shifted_left(bits_of(turned), 52)),
                  everywhere<T>(0.0));
}

// ln x of positive normal numbers.
template <class T>
INLINE T logarithm(T x) {
    const auto all = bits_of(x);
    const T part = from_bits((all & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000);
    const T whole = from_bits((all >> 52) | 0x4330000000000000) - (4503599627370496.0 + 1023.0);
    const auto above = part > everywhere<T>(1.4142135623730951);
    const T power = select(above, whole + 1.0, whole), f = select(above, 0.5 * part, part) - 1.0;
    const T s = f / (2.0 + f), half = 0.5 * f * f, z = s * s, z2 = z * z;
    const T a = add_product(line(6.666666666666735130e-01, z, 3.999999999940941908e-01), z2,
                            line(2.857142874366239149e-01, z, 2.222219843214978396e-01));
    const T b = add_times(line(1.818357216161805012e-01, z, 1.531383769920937332e-01), z2,
                          1.479819860511658591e-01);
    const T rest = add_product(half, z, add_product(a, z2 * z2, b));
    const T low = add_product(power * LN2_LOW, s, rest);
    return add_times(everywhere<T>(0.0) - ((half - low) - f), power, LN2_HIGH);
}

// ln(1 + x) for x > -1 with all digits: the second term is what 1 + x has lost.
template <class T>
INLINE T logarithm_of_one_and(T x) {
    const T u = 1.0 + x;
    return logarithm(u) + (x - (u - 1.0)) / u;
}

INLINE void copy(double *to, const double *from, int64_t size) {
    for (int64_t k = 0; k < size; ++k) to[k] = from[k];
}
INLINE double square_root(double x) { return __builtin_sqrt(x); }
INLINE Row square_root(Row x) {
    for (int p = 0; p < PARTS; ++p)
        for (int k = 0; k < WIDTH; ++k) x.part[p][k] = __builtin_sqrt(x.part[p][k]);
    return x;
}

// sums[k] = sum over x of values[x] * (eight entries of row x of the table), even rows and odd ones
// apart: few products wait for one another.
template <int ROWS>
INLINE void multiply(const double *values, int64_t count, const double *table, int64_t step,
                     Row *sums) {
    Row odd[ROWS];
    for (int k = 0; k < ROWS; ++k) sums[k] = odd[k] = row_of(0.0);
    int64_t x = 0;
    for (; x + 1 < count; x += 2) {
        const Row one = row_of(values[x]), other = row_of(values[x + 1]);
        const double *row = table + x * step;
        for (int k = 0; k < ROWS; ++k) {
            sums[k] = add_product(sums[k], load(row + k * EIGHT), one);
            odd[k] = add_product(odd[k], load(row + step + k * EIGHT), other);
        }
    }
    if (x < count)
        for (int k = 0; k < ROWS; ++k)
            sums[k] = add_product(sums[k], load(table + x * step + k * EIGHT), row_of(values[x]));
    for (int k = 0; k < ROWS; ++k) sums[k] = sums[k] + odd[k];
}

#undef EACH_PART