#include "noise.h"

__extension__ typedef unsigned __int128 wide_t;

static unsigned next(bytes_t *bytes) {
    if (bytes->at == bytes->end) {
        bytes->dry = 1;
        return 0;
    }
    return *bytes->at++;
}

/* true with probability numerator / denominator <= 1: a uniform number of [0, 1) lies below it, byte by byte; each byte
 * settles 255 of 256 */
static int coin(bytes_t *bytes, uint64_t numerator, uint64_t denominator) {
    if (numerator >= denominator) return 1;
    while (numerator && !bytes->dry) {
        unsigned digit;
        if (denominator <= (uint64_t)1 << 55) {
            digit = (unsigned)((numerator << 8) / denominator);
            numerator = (numerator << 8) % denominator;
        } else {
            wide_t shifted = (wide_t)numerator << 8;
            digit = (unsigned)(shifted / denominator);
            numerator = (uint64_t)(shifted % denominator);
        }
        unsigned drawn = next(bytes);
        if (drawn != digit) return drawn < digit;
    }
    return 0;
}

/* uniform on {0, ..., bound - 1}, 1 <= bound <= 2^56: the high part of word * bound, redrawn where the low part is
 * among the 2^bits mod bound left over [Lemire 2019, Alg. 5] */
static uint64_t below(bytes_t *bytes, uint64_t bound) {
    unsigned bits = 0;
    while (bits < 56 && (bound - 1) >> bits) bits += 8;
    if (!bits) return 0;
    uint64_t span = (uint64_t)1 << bits, left_over = span % bound;
    while (!bytes->dry) {
        uint64_t word = 0;
        for (unsigned i = 0; i < bits; i += 8) word = word << 8 | next(bytes);
        wide_t product = (wide_t)word * bound;
        if (((uint64_t)product & (span - 1)) >= left_over) return (uint64_t)(product >> bits);
    }
    return 0;
}

/* true with probability exp(-x), x = numerator / denominator in [0, 1]: von Neumann's series, which stops at k with
 * probability x^(k-1)/(k-1)! - x^k/k!; true where that is odd */
static int exp_of_fraction(bytes_t *bytes, uint64_t numerator, uint64_t denominator) {
    uint64_t k = 1;
    while (!bytes->dry && coin(bytes, 1, k) && coin(bytes, numerator, denominator)) k++;
    return k & 1;
}

static int exp_of_one(bytes_t *bytes) {
    uint64_t k = 2;
    while (!bytes->dry && coin(bytes, 1, k)) k++;
    return k & 1;
}

/* true with probability exp(-(whole + rest / denominator)) */
static int exp_of_sum(bytes_t *bytes, uint64_t whole, uint64_t rest, uint64_t denominator) {
    int result = exp_of_fraction(bytes, rest, denominator);
    while (result && whole-- && !bytes->dry) result = exp_of_one(bytes);
    return result;
}

/* one draw of scale numerator / denominator [Canonne, Kamath, Steinke 2020, Alg. 2] */
static int64_t laplace(bytes_t *bytes, uint64_t numerator, uint64_t denominator) {
    while (!bytes->dry) {
        uint64_t low = below(bytes, numerator), high = 0;
        if (!exp_of_fraction(bytes, low, numerator)) continue;
        while (!bytes->dry && exp_of_one(bytes))
            if (++high == MOST_RUNS) {
                bytes->wide = bytes->dry = 1;
                return 0;
            }
        int64_t size = (int64_t)((low + numerator * high) / denominator);
        int negative = (int)(next(bytes) & 1);
        if (!(negative && size == 0)) return negative ? -size : size; /* zero has one sign only */
    }
    return 0;
}

size_t laplace_draws(bytes_t *bytes, uint64_t numerator, uint64_t denominator, int64_t *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const uint8_t *start = bytes->at;
        out[i] = laplace(bytes, numerator, denominator);
        if (bytes->dry) {
            bytes->at = start;
            return i;
        }
    }
    return count;
}

/* ibid., Alg. 3 */
static int64_t gaussian(bytes_t *bytes, const gaussian_t *law) {
    while (!bytes->dry) {
        int64_t drawn = laplace(bytes, law->scale, 1);
        uint64_t moved = (uint64_t)(drawn < 0 ? -drawn : drawn) * law->step;
        uint64_t gap = moved > law->numerator ? moved - law->numerator : law->numerator - moved;
        uint64_t whole, rest;
        if (gap <= UINT32_MAX) {
            whole = gap * gap / law->bottom, rest = gap * gap % law->bottom;
        } else {
            wide_t square = (wide_t)gap * gap;
            wide_t quotient = square / law->bottom;
            whole = quotient > UINT64_MAX ? UINT64_MAX : (uint64_t)quotient, rest = (uint64_t)(square % law->bottom);
        }
        if (exp_of_sum(bytes, whole, rest, law->bottom) && !bytes->dry) return drawn;
    }
    return 0;
}

size_t gaussian_draws(bytes_t *bytes, const gaussian_t *law, int64_t *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const uint8_t *start = bytes->at;
        out[i] = gaussian(bytes, law);
        if (bytes->dry) {
            bytes->at = start;
            return i;
        }
    }
    return count;
}
