#include "sampled_gaussian.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CELL 0.25 /* width of the coarse cells on which bounds (not values) are computed */
#define HIGHEST 4.0
#define TALLEST 26.0
#define HALF_LOG_TAU 0.9189385332046727
#define LANES 8      /* sums that run beside one another */
#define CHUNK 256    /* nodes summed up together */
#define RESTART 16   /* after so many multiplications an exponential is computed anew */
#define TURNED 48    /* ulps of arguments, sines, multiplications and weights: docs/kernel.md */
#define NEGLIGIBLE -60.0 /* log of terms that are left out, relative to the largest */
#define MOST_CELLS 100000

static double least_of(double a, double b) { return a < b ? a : b; }
static double most_of(double a, double b) { return a > b ? a : b; }

static double *doubles(size_t n) { return calloc(n ? n : 1, sizeof(double)); }

law_t law_of(double rate, double scale, int remove) {
    law_t law = {rate, scale, remove, log(rate), log1p(-rate), 0.0};
    law.offset = law.log_rate - law.log_rest;
    return law;
}

int table_new(table_t *table, size_t room) {
    double *block = doubles(5 * room);
    if (!block) return NO_MEMORY;
    *table = (table_t){0, room, block, block + room, block + 2 * room, block + 3 * room, block + 4 * room};
    return DONE;
}

void table_free(table_t *table) {
    free(table->theta);
    memset(table, 0, sizeof *table);
}

/* -- the law at a point -------------------------------------------------------------------------------------------- */

static double log_a(const law_t *law, double t) {
    double q = law->rate, w = t / law->scale - 0.5 / (law->scale * law->scale), shifted = w + law->log_rate;
    if (shifted > 30.0) return shifted + log1p((1.0 - q) * exp(-shifted));
    double x = w < 600.0 ? q * expm1(w) : exp(shifted);
    return x < -0.5 ? log((1.0 - q) + q * exp(least_of(w, 1.0))) : log1p(x);
}

static double share_at(const law_t *law, double t) {
    return 1.0 / (1.0 + exp(-(t / law->scale - 0.5 / (law->scale * law->scale) + law->offset)));
}

static double loss_error_at(const law_t *law, double t, double loss, double share) {
    double s = law->scale, sloppy = share * (2 * fabs(t) / s + 2 / (s * s) + 2 * fabs(law->log_rate));
    return EPS * (2 * fabs(loss) + 4 * fabs(expm1(-loss)) + sloppy);
}

static double order(const law_t *law, double theta) { return law->remove ? 1.0 + theta : -theta; }

/* log of the tail beyond ``right``, less its normal factor; falls with it */
static double beyond(const law_t *law, double zeta, double log_gauss, double right) {
    double q = law->rate, s = law->scale;
    return log_gauss + zeta * log(q + (1 - q) * exp(0.5 / (s * s) - right / s)) + 0.34;
}

/* [left, right] outside of which the mass of phi(t) A^zeta, as an integral and as a sum, is below the tolerance */
static void ends(const law_t *law, double theta, double log_tolerance, double *left, double *right) {
    double s = law->scale, plain = sqrt(2 * -log_tolerance);
    if (!law->remove) {
        double first = sqrt(2 * (-log_tolerance - theta * law->log_rest));
        double mass = -theta * law->log_rate + theta * (theta + 1) / (2 * s * s);
        double second = theta / s + sqrt(2 * most_of(0.0, -log_tolerance + mass));
        *left = -most_of(plain, least_of(first, second));
        *right = most_of(plain, 0.5 / s);
        return;
    }
    double zeta = 1 + theta, top = zeta / s, log_gauss = (zeta * zeta - zeta) / (2 * s * s);
    double near = most_of(plain, 0.5 / s), base = most_of(top, near);
    double far = base + sqrt(2 * (most_of(0.0, beyond(law, zeta, log_gauss, base)) - log_tolerance));
    int exponent = 0;
    if (isfinite(far)) (void)frexp(far, &exponent);
    int halvings = 7 + (exponent > 6 ? exponent - 6 : 0);
    for (int i = 0; i < halvings; i++) {
        double middle = 0.5 * (near + far), past = most_of(0.0, middle - top);
        if (beyond(law, zeta, log_gauss, middle) - 0.5 * past * past <= log_tolerance)
            far = middle;
        else
            near = middle;
    }
    *left = -plain;
    *right = far;
}

/* the multiples of ``step`` that cover [left, right]: the first one's number, and how many */
static size_t points(double left, double right, double step, double *first) {
    *first = floor(left / step);
    double number = ceil(right / step) + 1 - *first;
    return number > 0 && number < 1e7 ? (size_t)number : 0;
}

/* -- K at many tilts ----------------------------------------------------------------------------------------------- */

static double strip_defect(const law_t *law, double theta, double h) {
    static const double lines[] = {0.03, 0.1, 0.25, 0.5, 1.0, 1.6, 2.2, 2.8};
    double best = INFINITY;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        double a = least_of(law->scale * lines[i], 2 * PI / h), log_defect = (0.5 * a - 2 * PI / h) * a;
        if (!law->remove) log_defect -= theta * log(cos((0.5 / law->scale) * a));
        best = least_of(best, log_defect);
    }
    return best < -3.0 ? exp(least_of(best, 0.0)) : INFINITY;
}

int moment_table(const law_t *law, const double *theta, size_t n, double *moment, double *error, double *first,
                 double *second) {
    double s = law->scale, largest = 0.0, left, right, start;
    for (size_t i = 0; i < n; i++) {
        largest = most_of(largest, theta[i]);
        moment[i] = error[i] = first[i] = second[i] = INFINITY;
    }
    ends(law, largest, log(1e-20), &left, &right);
    double h = least_of(0.5, 0.25 * PI * s);
    if (!law->remove) h = least_of(h, 0.9 * s / sqrt(largest)); /* the tilted mass narrows as theta grows */
    if (!(h > 1e-300)) return DONE;
    h = exp2(floor(log2(h)));
    if (!((right - left) / h <= MAX_NODES)) return DONE;
    size_t size = points(left, right, h, &start);
    if (!size) return DONE;
    double *loss = doubles(2 * size);
    if (!loss) return NO_MEMORY;
    double *gauss = loss + size;
    for (size_t j = 0; j < size; j++) {
        double t = h * (start + (double)j);
        loss[j] = log_a(law, t);
        gauss[j] = -0.5 * t * t;
    }
    double t0 = h * start, t1 = h * (start + (double)(size - 1));
    double longest = most_of(fabs(loss[0]), fabs(loss[size - 1])), furthest = most_of(t0 * t0, t1 * t1);
    double sloppy = 2 * sqrt(furthest) / s + 2 / (s * s) - 2 * law->log_rate;
    for (size_t i = 0; i < n; i++) {
        double zeta = order(law, theta[i]), top = -INFINITY, total = 0.0, one = 0.0, two = 0.0;
        for (size_t j = 0; j < size; j++) top = most_of(top, zeta * loss[j] + gauss[j]);
        for (size_t j = 0; j < size; j++) {
            double x = zeta * loss[j] + gauss[j] - top;
            if (x < NEGLIGIBLE) continue;
            double weight = exp(x);
            total += weight;
            one += weight * loss[j];
            two += weight * loss[j] * loss[j];
        }
        one /= total;
        double k = top + log(total) + (log(h) - HALF_LOG_TAU);
        double rounding =
            (double)size + 8 + (4 + 4 * longest + sloppy) * fabs(zeta) + furthest + 4 * fabs(k);
        moment[i] = k;
        error[i] = 2.2 * strip_defect(law, theta[i], h) + 1e-18 + EPS * rounding;
        first[i] = law->remove ? one : -one;
        second[i] = two / total - one * one;
    }
    free(loss);
    return DONE;
}

/* -- nodes that represent phi -------------------------------------------------------------------------------------- */

typedef struct {
    size_t cells;
    double *share, *middle, *mass; /* right end of each cell; sup of share(1-share); log of the mass, relative */
    double log_mass, tolerance, reach, zeta, scale;
} strip_t;

/* the largest step that the line Im t = a proves */
static double step_of_line(const strip_t *strip, double a, double *exponent) {
    double angle = a / strip->scale, less = 1 - cos(angle), sine = sin(angle), peak = -INFINITY, total = 0.0;
    for (size_t i = 0; i < strip->cells; i++) {
        double share = strip->share[i];
        double x = strip->reach * atan2(share * sine, 1 - share * less) + strip->mass[i];
        if (strip->zeta < 0) x += 0.5 * strip->zeta * log1p(-2 * strip->middle[i] * less);
        exponent[i] = x;
        peak = most_of(peak, x);
    }
    for (size_t i = 0; i < strip->cells; i++) total += exp(exponent[i] - peak);
    double log_n = peak + log(total) + 0.5 * a * a, outside = exponent[0] - strip->mass[0] + 0.5 * a * a;
    if (strip->zeta < 0 && strip->share[0] > 0.5)
        outside = strip->reach * atan2(strip->share[0] * sine, 1 - strip->share[0] * less) +
                  0.5 * strip->zeta * log(0.5 + 0.5 * cos(angle)) + 0.5 * a * a;
    /* log(e^x + e^y + e^z), rounded: 0.1 is given away below */
    double x = strip->tolerance + outside, y = strip->tolerance, z = most_of(log_n, most_of(x, y));
    log_n = z + log(exp(log_n - z) + exp(x - z) + exp(y - z));
    return 2 * PI * a / (log(2.0) + log_n - strip->tolerance + 0.1);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* the largest step whose trapezoid error at |u| <= reach is certainly below the tolerance times e^log_mass */
static int step_for(const law_t *law, double left, double right, double zeta, double reach, double log_tolerance,
                    double *step, double *log_mass) {
    static const double angles[] = {0.01, 0.03, 0.08, 0.15, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5};
    static const double heights[] = {0.5, 1.0, 2.0, 3.0, 4.5, 6.0};
    double s = law->scale, lines[16], start;
    double highest = reach > 0 ? least_of(2.5, most_of(3000.0 / reach, 0.01)) * s : 2.5 * s;
    size_t number = 0;
    for (size_t i = 0; i < 10; i++)
        if (angles[i] * least_of(s, TALLEST) <= highest) lines[number++] = angles[i] * least_of(s, TALLEST);
    for (size_t i = 0; i < 6; i++)
        if (heights[i] <= highest) lines[number++] = heights[i];
    if (!number) return REFUSED;
    qsort(lines, number, sizeof *lines, by_size);
    double tallest = lines[number - 1];
    double most = tallest / s * reach + 0.5 * tallest * tallest + most_of(0.0, -zeta) * 1.2;
    double far = most_of(right, zeta / s) + sqrt(2 * (most - log_tolerance));
    size_t size = points(left, far, CELL, &start);
    if (size < 2 || size > MOST_CELLS) return REFUSED;
    double *room = doubles(5 * size);
    if (!room) return NO_MEMORY;
    double *log_f = room, *share = room + size, *exponent = room + 4 * size;
    strip_t strip = {size - 1, share + 1, room + 2 * size, room + 3 * size, 0.0, log_tolerance, reach, zeta, s};
    double top = -INFINITY, total = 0.0;
    for (size_t i = 0; i < size; i++) {
        double t = CELL * (start + (double)i);
        log_f[i] = -0.5 * t * t + zeta * log_a(law, t) - HALF_LOG_TAU;
        share[i] = share_at(law, t);
        top = most_of(top, log_f[i]);
    }
    for (size_t i = 0; i < size; i++) total += exp(log_f[i] - top);
    *log_mass = top + log(total * CELL);
    for (size_t i = 0; i + 1 < size; i++) {
        double middle = least_of(0.25, share[i + 1] * (1 - share[i]));
        strip.middle[i] = middle;
        strip.mass[i] = most_of(log_f[i], log_f[i + 1]) +
                        (1.0 + most_of(0.0, -zeta) * middle / (s * s)) * (CELL * CELL / 8) + log(CELL) - *log_mass;
    }
    /* any line proves its step: from the middle one on towards larger steps */
    double steps[16], best = 0.0;
    size_t at = number / 2;
    steps[at] = best = step_of_line(&strip, lines[at], exponent);
    for (size_t i = at + 1; i < number; i++) {
        steps[i] = step_of_line(&strip, lines[i], exponent);
        if (!(steps[i] > best)) break;
        best = steps[i];
    }
    for (size_t i = at; i-- > 0;) {
        steps[i] = step_of_line(&strip, lines[i], exponent);
        if (!(steps[i] > best)) break;
        best = steps[i];
    }
    free(room);
    best = least_of(0.5, best);
    *step = most_of(floor(best * 4096), 1.0) / 4096.0;
    return isfinite(*step) && isfinite(*log_mass) ? DONE : REFUSED;
}

/* (w, w (e^x - 1)) for w = exp(log_weight), also where e^x overflows and the product does not */
static double weighted_expm1(double weight, double log_weight, double x) {
    return x > 500.0 ? exp(least_of(log_weight + x, 700.0)) : weight * expm1(x);
}

/* K and its rounding error; by expm1 where K is small, so that the error is relative to E|theta L|, not to 1 */
static void log_moment(const law_t *law, nodes_t *nodes, const double *loss, double first, double step, double theta,
                       double top, double total) {
    size_t n = nodes->size;
    double k = top + log(total * step) - HALF_LOG_TAU, mean = 0.0;
    if (!(fabs(k) < 0.5)) {
        for (size_t j = 0; j < n; j++) mean += nodes->weights[j] * nodes->weight_error[j];
        nodes->log_moment = k;
        nodes->log_moment_error = mean * 1.01 + ((double)n + 8) * EPS + 4 * EPS * (fabs(k) + fabs(top));
        return;
    }
    double tilt = law->remove ? theta : -theta, sum = 0.0, rest = 0.0, error = 0.0, drift = 0.0, log_step = log(step);
    for (size_t j = 0; j < n; j++) {
        double t = step * (first + (double)j);
        double log_weight = log_step - 0.5 * t * t - HALF_LOG_TAU + (law->remove ? loss[j] : 0.0);
        double base = exp(log_weight), lifted = weighted_expm1(base, log_weight, tilt * loss[j]), size = fabs(lifted);
        /* the sum and the exact errors of its additions (Knuth): together right to (n 2^-53)^2 of the sizes */
        double next = sum + lifted, part = next - sum;
        rest += (sum - (next - part)) + (lifted - part);
        sum = next;
        error += size * (nodes->weight_error[j] + 10 * EPS);
        drift += (base + size) * (nodes->loss_error[j] + EPS * fabs(loss[j]));
    }
    sum += rest;
    error += fabs(tilt) * drift;
    nodes->log_moment = log1p(sum);
    nodes->log_moment_error = 1.05 * error / (1 + sum) + 4 * EPS * fabs(sum);
}

void nodes_free(nodes_t *nodes) {
    free(nodes->losses);
    memset(nodes, 0, sizeof *nodes);
}

int characteristic(const law_t *law, double theta, double reach, double log_tolerance, nodes_t *nodes) {
    double zeta = order(law, theta), left, right, step, log_mass, first;
    memset(nodes, 0, sizeof *nodes);
    ends(law, theta, log_tolerance, &left, &right);
    if (!(right - left <= 0.25 * MAX_NODES)) return REFUSED;
    int status = step_for(law, left, right, zeta, reach, log_tolerance, &step, &log_mass);
    if (status) return status;
    if (!((right - left) / step <= MAX_NODES)) return REFUSED;
    size_t n = points(left, right, step, &first);
    double *room = n ? doubles(4 * n) : NULL;
    if (!room) return n ? NO_MEMORY : REFUSED;
    *nodes = (nodes_t){.size = n, .losses = room, .weights = room + n, .loss_error = room + 2 * n,
                       .weight_error = room + 3 * n};
    double top = -INFINITY, total = 0.0, centre = 0.0;
    for (size_t j = 0; j < n; j++) {
        double t = step * (first + (double)j), loss = log_a(law, t);
        double error = loss_error_at(law, t, loss, share_at(law, t));
        nodes->losses[j] = loss;
        nodes->loss_error[j] = error;
        nodes->weights[j] = -0.5 * t * t + zeta * loss;
        nodes->weight_error[j] = EPS * (t * t + 3 * fabs(zeta * loss) + 8) + fabs(zeta) * error;
        top = most_of(top, nodes->weights[j]);
    }
    for (size_t j = 0; j < n; j++) {
        nodes->weights[j] = exp(nodes->weights[j] - top);
        total += nodes->weights[j];
    }
    for (size_t j = 0; j < n; j++) {
        nodes->weights[j] /= total;
        centre += nodes->weights[j] * nodes->losses[j];
    }
    log_moment(law, nodes, nodes->losses, first, step, theta, top, total);
    /* the step was chosen relative to exp(log_mass): what that exceeds M by, the tolerance is missed by */
    double missed = most_of(0.0, log_mass - nodes->log_moment + 1e-6);
    double defect = 2.2 * exp(log_tolerance + missed), tails = 4 * exp(log_tolerance);
    nodes->defect = defect + tails;
    nodes->log_moment_error += defect + tails;
    for (size_t j = 0; j < n; j++) {
        double loss = nodes->losses[j], centred = loss - centre;
        nodes->loss_error[j] += EPS * (fabs(loss) + fabs(centre));
        nodes->losses[j] = law->remove ? centred : -centred;
    }
    nodes->centre = law->remove ? centre : -centre;
    return isfinite(nodes->log_moment) && isfinite(nodes->log_moment_error) && isfinite(centre) ? DONE : REFUSED;
}

double slope_error(const nodes_t *nodes, size_t depth) {
    double mean = 0.0, total = 0.0;
    for (size_t j = 0; j < nodes->size; j++) mean += nodes->weights[j] * nodes->weight_error[j];
    for (size_t j = 0; j < nodes->size; j++)
        total += nodes->weights[j] * (fabs(nodes->losses[j]) *
                                          (nodes->weight_error[j] + mean + (5 * (double)depth + TURNED) * EPS) +
                                      nodes->loss_error[j]);
    return 1.01 * total;
}

/* -- phi on the grid ----------------------------------------------------------------------------------------------- */

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && !defined(DPTALLY_PLAIN)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

/* x + iy becomes (x + iy)(p + iq) + (x + iy) + (p + iq) for n numbers: from e^{imx} - 1 to e^{i(m+1)x} - 1 */
WIDE static void turn_on(const double *restrict p, const double *restrict q, const double *restrict x,
                         const double *restrict y, double *restrict to_x, double *restrict to_y, size_t n) {
    for (size_t j = 0; j < n; j++) {
        double re = x[j] * p[j] - y[j] * q[j], im = x[j] * q[j] + y[j] * p[j];
        to_x[j] = re + x[j] + p[j];
        to_y[j] = im + y[j] + q[j];
    }
}

/* eight doubles at once, as wide as the machine has them (gcc, clang); may start at any double */
typedef double lanes_t __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

/* sums over a chunk of (rows of a) x (rows of b), complex, added to the totals: each product passes CHUNK / LANES + 3
 * additions before that */
WIDE static void add_products(const double *a, const double *b, size_t here, size_t rows, size_t columns, double *re,
                              double *im) {
    for (size_t g = 0; g < rows; g++)
        for (size_t k = 0; k < columns; k++) {
            const double *ar = a + 2 * g * CHUNK, *ai = ar + CHUNK, *br = b + 2 * k * CHUNK, *bi = br + CHUNK;
            lanes_t sr = {0}, si = {0};
            for (size_t j = 0; j < here; j += LANES) {
                lanes_t p = *(const lanes_t *)(ar + j), q = *(const lanes_t *)(ai + j);
                lanes_t x = *(const lanes_t *)(br + j), y = *(const lanes_t *)(bi + j);
                sr += p * x - q * y;
                si += p * y + q * x;
            }
            re[g * columns + k] += ((sr[0] + sr[1]) + (sr[2] + sr[3])) + ((sr[4] + sr[5]) + (sr[6] + sr[7]));
            im[g * columns + k] += ((si[0] + si[1]) + (si[2] + si[3])) + ((si[4] + si[5]) + (si[6] + si[7]));
        }
}

/* rows k = 1..number-1 of e^{i k turn x_j} - 1: sines at every RESTART-th, the others each from the one before */
static void powers(const double *losses, size_t n, double turn, size_t number, double *rows) {
    double *unit = rows + 2 * CHUNK;
    for (size_t k = 1; k < number; k++) {
        double *re = rows + 2 * k * CHUNK, *im = re + CHUNK;
        if (k == 1 || k % RESTART == 0)
            for (size_t j = 0; j < n; j++) {
                double half = 0.5 * (turn * (double)k * losses[j]), sine = sin(half), cosine = cos(half);
                re[j] = -2.0 * sine * sine;
                im[j] = 2.0 * sine * cosine;
            }
        else
            turn_on(unit, unit + CHUNK, re - 2 * CHUNK, im - 2 * CHUNK, re, im, n);
    }
}

int on_grid(const nodes_t *nodes, double step, size_t number, double *real, double *imag, double *flat, double *steep) {
    size_t n = nodes->size, block = (size_t)sqrt((double)(number - 1)) + 1, giants = (number + block - 1) / block;
    size_t chunks = (n + CHUNK - 1) / CHUNK;
    double *room = doubles(2 * (block + giants + 2) * CHUNK + 2 * giants * block);
    if (!room) return NO_MEMORY;
    double *small = room, *large = small + 2 * (block + 1) * CHUNK;
    double *sum_re = large + 2 * (giants + 1) * CHUNK, *sum_im = sum_re + giants * block;
    for (size_t c = 0; c < chunks; c++) {
        size_t first = c * CHUNK, here = n - first < CHUNK ? n - first : CHUNK;
        const double *losses = nodes->losses + first, *weights = nodes->weights + first;
        /* e^{i(a+b)} - 1 = E_a E_b + E_a + E_b: row 0 of the giants is 1, so that it sums E_b, and row 0 of the small
         * ones is 1, so that it sums E_a; the weights are in the small ones, and nothing beyond the nodes */
        memset(small, 0, 2 * (block + giants + 2) * CHUNK * sizeof(double));
        powers(losses, here, step, block, small);
        powers(losses, here, step * (double)block, giants, large);
        for (size_t j = 0; j < here; j++) large[j] = small[j] = 1.0;
        for (size_t b = 0; b < 2 * block; b++)
            for (size_t j = 0; j < CHUNK; j++) small[b * CHUNK + j] *= j < here ? weights[j] : 0.0;
        add_products(large, small, here, giants, block, sum_re, sum_im);
    }
    for (size_t i = 0; i < number; i++) {
        size_t g = i / block, b = i % block;
        real[i] = (g && b ? sum_re[i] : 0.0) + (g ? sum_re[g * block] : 0.0) + (b ? sum_re[b] : 0.0);
        imag[i] = (g && b ? sum_im[i] : 0.0) + (g ? sum_im[g * block] : 0.0) + (b ? sum_im[b] : 0.0);
    }
    free(room);
    *flat = nodes->defect;
    *steep = slope_error(nodes, CHUNK / LANES + 3 + chunks);
    return DONE;
}

/* -- how phi decays ------------------------------------------------------------------------------------------------ */

/* cells: coarse everywhere, fine where share(t) grows from nothing towards one */
static int decay_edges(const law_t *law, double theta, double log_tolerance, double **edges, size_t *number) {
    double left, right, start, s = law->scale;
    ends(law, theta, log_tolerance, &left, &right);
    size_t size = points(left, right, CELL, &start);
    if (size < 2 || size > MOST_CELLS) return REFUSED;
    double *t = *edges = doubles(size + 130);
    if (!t) return NO_MEMORY;
    double first = CELL * start, last = CELL * (start + (double)(size - 1));
    double centre = 0.5 / s - s * law->offset;
    size_t n = 0, coarse = 0;
    double begun = INFINITY, ended = -INFINITY; /* the first and the last fine edge */
    if (s < 8 * CELL)
        for (int i = 0; i < 128; i++) {
            double edge = centre + s * (-12.0 + 0.125 * i);
            if (!(edge > first && edge < last)) continue;
            if (begun == INFINITY) {
                begun = edge;
                for (; coarse < size && CELL * (start + (double)coarse) < begun; coarse++)
                    t[n++] = CELL * (start + (double)coarse);
            }
            if (edge > ended) t[n++] = ended = edge;
        }
    for (; coarse < size; coarse++) {
        double edge = CELL * (start + (double)coarse);
        if (edge > ended) t[n++] = edge;
    }
    *number = n;
    return n >= 2 ? DONE : REFUSED;
}

/* the kappa that are worth trying: the best one for share near 0, and the best one for the mean of the law */
static void shapes(const law_t *law, decay_t *decay) {
    double s2 = law->scale * law->scale, gentle = s2 / (1 + s2), total = 0.0, mean = 0.0;
    for (size_t i = 0; i < decay->cells; i++) {
        double share = decay->share[i], rest = 1 - share, weight = decay->least[i] * share * share;
        total += weight;
        mean += weight * rest * (rest - decay->zeta * share);
    }
    decay->kappa[0] = gentle;
    decay->shapes = 1;
    if (!(total > 0)) return;
    double mixed = 1 / most_of(2.0 / 3.0, 1 + mean / (total * s2));
    if (mixed > 0 && !(0.8 < mixed / gentle && mixed / gentle < 1.25)) decay->kappa[decay->shapes++] = mixed;
}

void decay_free(decay_t *decay) {
    free(decay->share);
    memset(decay, 0, sizeof *decay);
}

int decay_new(const law_t *law, double theta, double furthest, decay_t *decay) {
    double s = law->scale, zeta = order(law, theta), reach = least_of(1.5 * s, HIGHEST);
    double ceiling = 0.5 * reach * reach + most_of(0.0, -zeta) * 0.32 + log1p(furthest / (s * s));
    double *edges = NULL;
    size_t number;
    memset(decay, 0, sizeof *decay);
    int status = decay_edges(law, theta, -40.0 - ceiling, &edges, &number);
    double *room = status ? NULL : doubles(6 * number);
    if (!room) {
        free(edges);
        return status ? status : NO_MEMORY;
    }
    double *log_f = room + 4 * number, *f = room + 5 * number, top = -INFINITY, size = 0.0, all = 0.0, sure = 0.0;
    *decay = (decay_t){.cells = number - 1, .share = room, .most = room + number, .least = room + 2 * number,
                       .product = room + 3 * number, .zeta = zeta};
    for (size_t i = 0; i < number; i++) {
        double t = edges[i], loss = log_a(law, t);
        log_f[i] = -0.5 * t * t + zeta * loss - HALF_LOG_TAU;
        decay->share[i] = share_at(law, t);
        top = most_of(top, log_f[i]);
        size = most_of(size, t * t + fabs(zeta * loss));
    }
    for (size_t i = 0; i < number; i++) f[i] = exp(log_f[i] - top);
    for (size_t i = 0; i < decay->cells; i++) {
        double width = edges[i + 1] - edges[i];
        double product = least_of(0.25, decay->share[i + 1] * (1 - decay->share[i]));
        double bulge = (1.0 + most_of(0.0, -zeta) / (s * s) * product) * (width * width / 8);
        double dip = most_of(0.0, zeta / (s * s) * product - 1.0) * (width * width / 12);
        decay->product[i] = product;
        decay->most[i] = (0.5 * width) * (f[i] + f[i + 1]) * exp(bulge);
        decay->least[i] = exp(0.5 * (log_f[i] + log_f[i + 1]) - (dip + top)) * width;
        all += decay->most[i];
        sure += decay->least[i];
    }
    for (size_t i = 0; i < decay->cells; i++) { /* the cells bound M themselves */
        decay->most[i] /= sure;
        decay->least[i] /= all;
        decay->whole += decay->most[i];
    }
    decay->slack = 1e-9 + 16 * EPS * size;
    shapes(law, decay);
    free(edges);
    return isfinite(decay->whole) && isfinite(size) ? DONE : REFUSED;
}

double log_decay(const law_t *law, const decay_t *decay, double start, double enough) {
    double s = law->scale, zeta = decay->zeta, beta = least_of(1.1, HIGHEST / s), best = INFINITY;
    for (int shape = 0; shape < decay->shapes; shape++) {
        double push = decay->kappa[shape] * start / (s * s), up = 0.0, down = 0.0, plain = 0.0;
        double angle = beta * tanh(push / beta * decay->share[0]), cosine = cos(angle), sine = sin(angle);
        for (size_t i = 0; i < decay->cells; i++) {
            double low = decay->share[i], high = decay->share[i + 1], product = decay->product[i];
            double next = beta * tanh(push / beta * high), bent = angle / beta;
            double next_cosine = cos(next), next_sine = sin(next);
            double slope = push * product * (1 - bent * bent), far = s * next;
            double x = 0.5 * far * far - start * atan2(low * sine, 1 - low + low * cosine) + 0.5 * log1p(slope * slope);
            if (zeta >= 0)
                x += 0.5 * zeta * log1p(-2 * least_of(low * (1 - low), high * (1 - high)) * (1 - cosine));
            else
                x += 0.5 * zeta * log1p(-2 * product * (1 - next_cosine));
            double gain = expm1(least_of(x, 700.0));
            plain += gain * decay->most[i];
            if (gain > 0)
                up += gain * decay->most[i];
            else
                down -= gain * decay->least[i];
            angle = next, cosine = next_cosine, sine = next_sine;
        }
        double near_one = up - down + decay->slack * (up + down);
        double small = (plain + decay->whole * (1 + 8 * EPS * (double)decay->cells)) * (1 + decay->slack) - 1.0;
        if (isnan(near_one) || isnan(small)) return 0.0;
        best = least_of(best, least_of(near_one, small));
        double bound = log1p(least_of(most_of(best + 3 * exp(-40.0), 1e-12 - 1.0), 0.0));
        if (bound <= enough || shape + 1 == decay->shapes) return bound;
    }
    return 0.0;
}
