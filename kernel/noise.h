/* Exact noise from given random bytes: the algorithms of src/dptally/noise/scalar.py, in integers alone.
 *
 * No byte is used twice, and none is thrown away half used: where they run out in the middle of a draw, the draw is
 * undone, and the caller tries again with the same bytes and more behind them. So the bytes decide the draws, however
 * they were cut. docs/kernel.md, "Noise".
 */
#ifndef DPTALLY_NOISE_H
#define DPTALLY_NOISE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const uint8_t *at, *end;
    int dry;  /* a byte was asked for and there was none: what was decided since is void */
    int wide; /* a run of more than MOST_RUNS coins: less likely than exp(-8,000,000) */
} bytes_t;

#define MOST_RUNS (1 << 23)
#define WIDEST_SCALE ((uint64_t)1 << 38) /* of a Laplace scale's numerator: times MOST_RUNS it stays below 2^62 */

/* the number of draws made; ``bytes->at`` is where the next one begins */
size_t laplace_draws(bytes_t *bytes, uint64_t numerator, uint64_t denominator, int64_t *out, size_t count);

/* variance numerator / denominator, scale = isqrt(numerator / denominator) + 1, step = denominator * scale,
 * bottom = 2 numerator denominator scale^2; the caller has checked the widths */
typedef struct {
    uint64_t numerator, scale, step, bottom;
} gaussian_t;

size_t gaussian_draws(bytes_t *bytes, const gaussian_t *law, int64_t *out, size_t count);

#endif
