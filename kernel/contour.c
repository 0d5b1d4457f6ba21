#include "contour.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TRIES 200 /* rounds of the search for a cut-off: each goes 1.1 times as far or more */

static double least_of(double a, double b) { return a < b ? a : b; }
static double most_of(double a, double b) { return a > b ? a : b; }
static double square(double x) { return x * x; }

/* -- tables of K --------------------------------------------------------------------------------------------------- */

/* K of ``count`` steps at these tilts; rows that are not finite are left out where ``finite`` */
static int append(const law_t *law, double count, const double *theta, size_t n, int finite, table_t *table) {
    if (table->rows + n > table->room) return REFUSED;
    size_t at = table->rows;
    int status = moment_table(law, theta, n, table->moment + at, table->error + at, table->first + at,
                              table->second + at);
    if (status) return status;
    for (size_t i = at; i < at + n; i++) {
        double moment = count * table->moment[i];
        double error = count * (table->error[i] + 2 * EPS * fabs(table->moment[i])) + EPS * fabs(moment);
        double first = count * table->first[i], second = count * table->second[i];
        if (finite && !(isfinite(moment) && isfinite(error) && isfinite(first) && isfinite(second))) continue;
        size_t to = table->rows++;
        table->theta[to] = theta[i - at];
        table->moment[to] = moment, table->error[to] = error;
        table->first[to] = first, table->second[to] = second;
    }
    return DONE;
}

static double spread(double theta, double variance) {
    return most_of(variance, 0.0) + 1 / (theta * theta) + 1 / square(1 + theta);
}

static double log_size_at(double theta, double variance) {
    return -log(theta * (1 + theta)) - 0.5 * log(2 * PI * spread(theta, variance));
}

static double saddle_epsilon(double theta, double first) { return first - 1 / theta - 1 / (1 + theta); }

/* where the value looked for, positive at first, becomes negative, by interpolation in log theta */
static double located(const table_t *table, size_t from, locate_t locate) {
    double before = 0.0;
    for (size_t i = from; i < table->rows; i++) {
        double theta = table->theta[i], own = saddle_epsilon(theta, table->first[i]);
        double value = locate.is_epsilon
                           ? locate.value - own
                           : table->moment[i] - theta * own + log_size_at(theta, table->second[i]) - locate.value;
        if (value <= 0) {
            if (i == from) return theta;
            return table->theta[i - 1] * pow(theta / table->theta[i - 1], before / (before - value));
        }
        before = value;
    }
    return table->theta[table->rows - 1];
}

static int tabulate(const law_t *law, double count, locate_t locate, const tuning_t *tuning, table_t *table) {
    double theta[256];
    for (size_t b = 0; b + 1 < tuning->blocks.number; b++) {
        double first = tuning->blocks.at[b], last = tuning->blocks.at[b + 1];
        if (!(last - first <= 256)) return REFUSED;
        size_t n = 0, before = table->rows;
        for (double k = first; k < last; k += 1.0) theta[n++] = exp2(k / 2.0);
        if (!n) continue;
        int status = append(law, count, theta, n, 1, table);
        if (status) return status;
        if (table->rows < before + n) break;
        if (3 * located(table, 0, locate) < table->theta[table->rows - 1]) break;
    }
    return DONE;
}

static void in_order(table_t *table) {
    double *columns[5] = {table->theta, table->moment, table->error, table->first, table->second};
    for (size_t i = 1; i < table->rows; i++)
        for (size_t j = i; j > 0 && table->theta[j - 1] > table->theta[j]; j--)
            for (int c = 0; c < 5; c++) {
                double kept = columns[c][j];
                columns[c][j] = columns[c][j - 1];
                columns[c][j - 1] = kept;
            }
}

static void row_of(const table_t *table, size_t i, double row[5]) {
    row[0] = table->theta[i], row[1] = table->moment[i], row[2] = table->error[i];
    row[3] = table->first[i], row[4] = table->second[i];
}

/* the row at theta: by Taylor's formula from the nearest one where K'' hardly changes, else computed; it only steers */
static int row_at(const law_t *law, double count, const table_t *table, size_t from, double theta, double steady,
                  double row[5]) {
    size_t i = from;
    for (size_t j = from; j < table->rows; j++)
        if (fabs(table->theta[j] - theta) < fabs(table->theta[i] - theta)) i = j;
    double least = INFINITY, most = -INFINITY;
    for (size_t j = i > from ? i - 1 : from; j <= i + 1 && j < table->rows; j++) {
        least = least_of(least, table->second[j]);
        most = most_of(most, table->second[j]);
    }
    row_of(table, i, row);
    if (most < steady * least) {
        double gap = theta - row[0];
        row[0] += gap;
        row[1] += gap * (row[3] + 0.5 * gap * row[4]);
        row[3] += gap * row[4];
        return DONE;
    }
    row[0] = theta;
    double moment, error, first, second;
    int status = moment_table(law, &theta, 1, &moment, &error, &first, &second);
    row[1] = count * moment, row[2] = count * error, row[3] = count * first, row[4] = count * second;
    return status;
}

static saddle_t saddle_of(const double row[5], double times, double asked) {
    saddle_t saddle = {.theta = row[0], .moment = times * row[1], .variance = times * row[4]};
    saddle.epsilon = times * row[3] - 1 / row[0] - 1 / (1 + row[0]);
    saddle.asked = isnan(asked) ? saddle.epsilon : asked;
    double off = least_of(0.5 * square(saddle.asked - saddle.epsilon) / spread(row[0], saddle.variance), 60.0);
    saddle.log_size = log_size_at(row[0], saddle.variance) - off;
    return saddle;
}

/* -- period and cut-off -------------------------------------------------------------------------------------------- */

/* P for which the aliasing bound is below ``relative`` times the integral; it need not be exact */
static double alias_period(const table_t *tilts, double times, const saddle_t *saddle, double relative) {
    double need = -log(relative) - saddle->log_size - saddle->moment, theta = saddle->theta;
    double right = INFINITY, left = need / theta;
    for (size_t i = 0; i < tilts->rows; i++) {
        double at = tilts->theta[i], value = need + times * tilts->moment[i];
        if (at > theta * 1.0001) right = least_of(right, value / (at - theta));
        if (at < theta * 0.9999) left = least_of(left, value / (theta - at));
    }
    return most_of(most_of(right - saddle->asked, left + saddle->asked), 0.0) * 1.02 + 1e-3 / theta;
}

/* where K explodes just beyond the tilt, so that the period is very long, a smaller tilt: any one is sound */
static void shorter_row(const table_t *tilts, double log_delta, const tuning_t *tuning, double row[5]) {
    saddle_t saddle = saddle_of(row, 1.0, NAN);
    double period = alias_period(tilts, 1.0, &saddle, tuning->relative);
    if (!(period > tuning->long_period * sqrt(most_of(saddle.variance, 0.0)))) return;
    double epsilon = INFINITY, cheapest = INFINITY;
    size_t best = tilts->rows;
    for (size_t i = 0; i < tilts->rows; i++) {
        double t = tilts->theta[i], log_c = t * log1p(1 / t) + log1p(t);
        epsilon = least_of(epsilon, (tilts->moment[i] - log_delta - log_c) / t);
    }
    for (size_t i = 0; i < tilts->rows; i++) {
        double theta = tilts->theta[i], moment = tilts->moment[i];
        double log_size = log_delta + theta * epsilon - moment;
        if (!(theta < saddle.theta && log_size > -tuning->most_lost && tilts->second[i] > 0)) continue;
        double need = -log(tuning->relative) - log_size - moment, right = INFINITY, left = need / theta;
        for (size_t j = 0; j < tilts->rows; j++) {
            double chord = (need + tilts->moment[j]) / (tilts->theta[j] - theta);
            if (tilts->theta[j] > theta) right = least_of(right, chord);
            if (tilts->theta[j] < theta) left = least_of(left, -chord);
        }
        double cost = most_of(right - epsilon, left + epsilon) / sqrt(tilts->second[i]);
        if (cost < cheapest) cheapest = cost, best = i;
    }
    if (best < tilts->rows) row_of(tilts, best, row);
}

/* log B at u, or a value that is too large where the cells cannot be had */
typedef struct {
    const law_t *law;
    double theta, count;
} decaying_t;

/* (U, log B) with |phi| <= B for every u >= U: the first U that was tried with B / U below the tolerance */
static int cut_off(decaying_t parts, double guess, double log_tolerance, const tuning_t *tuning, double most,
                   double *cut, double *log_bound) {
    double u[64], last = INFINITY, modest = -1.0, modest_bound = 0.0, best = -1.0, best_bound = 0.0;
    size_t n = tuning->starts.number, closer = tuning->closer.number;
    if (!n || n > 64 || !closer || closer > 64) return REFUSED;
    for (size_t i = 0; i < n; i++) u[i] = guess * tuning->starts.at[i];
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        decay_t decay;
        double furthest = 0.0, found = 0.0;
        for (size_t i = 0; i < n; i++) furthest = most_of(furthest, u[i]);
        if (!isfinite(furthest)) return REFUSED;
        int status = decay_new(parts.law, parts.theta, furthest, &decay);
        if (status) {
            decay_free(&decay);
            return status;
        }
        size_t good = n;
        for (size_t i = 0; i < n && good == n; i++) {
            double allowed = log_tolerance + log(u[i]);
            found = parts.count * log_decay(parts.law, &decay, u[i], allowed / parts.count);
            if (modest < 0 && found <= allowed + tuning->fair) modest = u[i], modest_bound = found;
            if (found <= allowed) good = i, best = u[i], best_bound = found;
        }
        decay_free(&decay);
        if (best >= 0) {
            if (!(good == 0 && u[0] > 1.5 * last)) {
                *cut = best, *log_bound = best_bound;
                return DONE;
            }
            double ratio = pow(u[0] / last, 1.0 / 7.0); /* the step was a long one: look in between */
            u[0] = last * ratio;
            for (n = 1; n < 6; n++) u[n] = u[n - 1] * ratio;
            last = INFINITY;
            continue;
        }
        last = u[n - 1];
        if (last > least_of(most, tuning->furthest * guess)) { /* phi does not decay any further */
            *cut = modest < 0 ? last : modest, *log_bound = modest < 0 ? found : modest_bound;
            return DONE;
        }
        double missing = found < 0 ? (log_tolerance + log(last)) / found : INFINITY;
        double far = least_of(most_of(sqrt(most_of(missing, 0.0)), 1.1), 5.0);
        n = closer;
        for (size_t i = 0; i < n; i++) u[i] = last * far * most_of(tuning->closer.at[i], 1.0);
    }
    return REFUSED;
}

/* -- the nodes of a contour ---------------------------------------------------------------------------------------- */

void block_free(block_t *block) {
    table_free(&block->tilts);
    free(block->real);
    memset(block, 0, sizeof *block);
}

/* log(1 + x), principal branch, to 12 ulps of |x| + |log(1 + x)| */
static void log1p_complex(double re, double im, double *real, double *imag) {
    *real = re > -0.5 ? 0.5 * log1p(re * (2.0 + re) + im * im) : log(hypot(1.0 + re, im));
    *imag = atan2(im, 1.0 + re);
}

static int fill(const nodes_t *nodes, block_t *block) {
    size_t n = block->number;
    double flat, steep, *room = calloc(3 * n, sizeof(double));
    if (!room) return NO_MEMORY;
    block->real = room, block->imag = room + n, block->growth = room + 2 * n;
    int status = on_grid(nodes, block->step, n, block->real, block->imag, &flat, &steep);
    if (status) return status;
    for (size_t k = 0; k < n; k++) {
        double re = block->real[k], im = block->imag[k], real, imag, size = hypot(re, im);
        double error = flat + steep * (block->step * (double)k);
        log1p_complex(re, im, &real, &imag);
        real = most_of(real, -300.0); /* where phi vanishes the logarithm is cut; the difference joins the error */
        block->growth[k] = log1p((error + 1e-130) * exp(-real)) + 18 * EPS * (fabs(real) + fabs(imag) + size);
        block->real[k] = real, block->imag[k] = imag;
        if (!(isfinite(real) && isfinite(imag) && isfinite(block->growth[k]))) return REFUSED;
    }
    block->log_moment = nodes->log_moment;
    block->log_moment_error = nodes->log_moment_error;
    block->centre = nodes->centre;
    return DONE;
}

/* period, cut-off and nodes for the row and the tilts that the block holds already */
static int inverted(const law_t *law, const double counts[3], const tuning_t *tuning, double most_work,
                    block_t *block) {
    double theta = block->row[0], period = -INFINITY, log_size = INFINITY, variance = 0.0, cut;
    if (!(theta > 0 && isfinite(theta))) return REFUSED;
    for (int end = 0; end < 3; end += 2) { /* the first count and the last */
        double times = counts[end] / block->middle;
        saddle_t saddle = saddle_of(block->row, times, block->asked);
        double needed = alias_period(&block->tilts, times, &saddle, tuning->relative);
        if (!isfinite(needed)) return REFUSED;
        period = most_of(period, needed);
        log_size = least_of(log_size, saddle.log_size);
        if (end == 0) variance = saddle.variance;
    }
    double log_cut = log(tuning->relative) + log_size;
    double guess = sqrt(2 * most_of(1.0, -log_cut) / most_of(variance, 1e-300));
    double step = block->step = 2 * PI / period;
    if (!(isfinite(guess) && guess > 0 && step > 0 && isfinite(step))) return REFUSED;
    decaying_t parts = {law, theta, counts[0]}; /* what decays for the fewest steps decays for all */
    int status = cut_off(parts, guess, log_cut, tuning, step * tuning->most_terms, &cut, &block->log_bound);
    if (status) return status;
    if (!(cut > 0 && ceil(cut / step) + 1 <= tuning->most_terms && cut / step < 1e8)) return REFUSED;
    if (!(block->log_bound - log(cut) <= log_cut + tuning->hopeless)) return REFUSED;
    block->number = (size_t)ceil(cut / step) + 1;
    double log_tolerance = log(tuning->node_tolerance) - log(counts[2]);
    nodes_t nodes;
    status = characteristic(law, theta, step * (double)block->number, log_tolerance, &nodes);
    if (!status && (double)block->number * (double)nodes.size > most_work) status = REFUSED;
    if (!status) status = fill(&nodes, block);
    nodes_free(&nodes);
    return status;
}

static size_t rooms(const tuning_t *tuning) {
    double number = (double)(tuning->around.number + tuning->glance.number);
    size_t n = tuning->blocks.number;
    if (n) number += most_of(0.0, tuning->blocks.at[n - 1] - tuning->blocks.at[0]);
    return number < 4096 ? (size_t)number + 8 : 4096;
}

int block_new(const law_t *law, const double counts[3], locate_t locate, int shorter, const tuning_t *tuning,
              double most_work, block_t *block) {
    double theta[64];
    memset(block, 0, sizeof *block);
    block->first = counts[0], block->middle = counts[1], block->last = counts[2];
    block->asked = locate.is_epsilon ? locate.value : NAN;
    int status = table_new(&block->tilts, rooms(tuning));
    if (!status) status = tabulate(law, counts[1], locate, tuning, &block->tilts);
    size_t from = block->tilts.rows, n = tuning->around.number;
    if (!status && (from < 2 || !n || n > 64)) status = REFUSED;
    if (status) return status;
    double middle = located(&block->tilts, 0, locate);
    for (size_t i = 0; i < n; i++) {
        theta[i] = middle * tuning->around.at[i];
        if (!(theta[i] > 0 && isfinite(theta[i]))) return REFUSED;
    }
    status = append(law, counts[1], theta, n, 0, &block->tilts);
    if (status) return status;
    for (size_t i = from; i < block->tilts.rows; i++)
        if (!isfinite(block->tilts.moment[i])) return REFUSED;
    middle = located(&block->tilts, from, locate);
    status = row_at(law, counts[1], &block->tilts, from, middle, tuning->steady, block->row);
    if (status) return status;
    in_order(&block->tilts);
    if (shorter) shorter_row(&block->tilts, locate.value, tuning, block->row);
    return inverted(law, counts, tuning, most_work, block);
}

/* -- the sum and its bounds ---------------------------------------------------------------------------------------- */

void contour_free(contour_t *contour) {
    free(contour->real);
    free(contour->above.gap);
    memset(contour, 0, sizeof *contour);
}

/* what the other terms of Poisson's sum add up to, at most: gaps |s - theta|, and the log of the bound at eps = 0 */
static int aliasing(const block_t *block, double times, contour_t *contour) {
    size_t room = block->tilts.rows + 1;
    double *all = calloc(4 * room, sizeof(double));
    if (!all) return NO_MEMORY;
    side_t *above = &contour->above, *below = &contour->below;
    above->gap = all, above->log = all + room, below->gap = all + 2 * room, below->log = all + 3 * room;
    double period = 2 * PI / contour->step, theta = contour->theta;
    double least = contour->log_moment - contour->log_moment_error;
    for (size_t i = 0; i < room; i++) {
        int last = i + 1 == room; /* K(0) <= 0 */
        double once = last ? 0.0 : block->tilts.moment[i], moment = times * once;
        double error = last ? 0.0 : (block->tilts.error[i] + 4 * EPS * fabs(once)) * times;
        double gap = last ? -theta : block->tilts.theta[i] - theta, away = fabs(gap), fall = away * period;
        double series = log(-expm1(-fall)), size = fabs(moment) + error + fabs(least);
        double bound = moment + error - least - fall - series + 8 * EPS * (size + fall + fabs(series));
        if (gap == 0 || isnan(bound)) continue;
        side_t *side = gap > 0 ? above : below;
        side->gap[side->number] = away, side->log[side->number++] = bound;
    }
    return DONE;
}

int contour_new(const block_t *block, double count, contour_t *contour) {
    size_t n = block->number;
    double theta = block->row[0], step = block->step, times = count / block->middle, noise = 0.0, phase = 0.0;
    double centre = count * block->centre, moment = count * block->log_moment;
    memset(contour, 0, sizeof *contour);
    contour->real = calloc(2 * n, sizeof(double));
    if (!contour->real) return NO_MEMORY;
    contour->imag = contour->real + n;
    contour->number = n;
    for (size_t k = 0; k < n; k++) {
        double u = step * (double)k, real = count * block->real[k], imag = count * block->imag[k];
        double growth = count * block->growth[k], phi = exp(real);
        /* 1 / (z (z + 1)), z = theta + iu */
        double re = theta * (theta + 1) - u * u, im = u * (2 * theta + 1);
        double size = (theta * theta + u * u) * (square(theta + 1) + u * u), half = k ? 1.0 : 0.5;
        double kernel_re = half * (re / size), kernel_im = half * (-im / size), weight = half / sqrt(size);
        double c = phi * cos(imag), s = phi * sin(imag);
        contour->real[k] = c * kernel_re - s * kernel_im;
        contour->imag[k] = c * kernel_im + s * kernel_re;
        /* the true product is at most one, so an error never counts for more than two */
        double blur = least_of(exp(least_of(real + growth, 0.7)) - phi, 2.0);
        double rounding = blur + phi * (EPS * ((double)n + 24 + fabs(real) + 2 * fabs(imag)) + 4 * EPS * u * fabs(centre));
        noise += weight * rounding;
        phase += weight * phi * (4 * EPS * u);
    }
    contour->theta = theta;
    contour->step = step;
    contour->centre = centre;
    contour->log_moment = moment;
    contour->log_moment_error = count * block->log_moment_error + EPS * fabs(moment) + 2 * EPS * fabs(moment);
    contour->noise = step / PI * noise * 1.02;
    contour->phase_noise = step / PI * phase * 1.02;
    contour->tail = exp(least_of(block->log_bound, 0.0)) / (PI * (step * (double)(n - 1))) * 1.02;
    contour->saddle = saddle_of(block->row, times, block->asked).epsilon;
    return aliasing(block, times, contour);
}

static double alias_bound(const contour_t *contour, double epsilon) {
    double total = 0.0;
    if (!contour->above.number || !contour->below.number) return INFINITY;
    for (int sign = -1; sign <= 1; sign += 2) {
        const side_t *side = sign < 0 ? &contour->above : &contour->below;
        double least = INFINITY;
        for (size_t i = 0; i < side->number; i++) {
            double start = side->log[i], move = sign * epsilon * side->gap[i];
            double bound = start + move + 4 * EPS * (fabs(start) + fabs(move));
            least = least_of(least, bound);
        }
        total += exp(least_of(700.0, least));
    }
    return total * (1 + 16 * EPS);
}

/* the sum for h, and the same without the factor 1/(theta + iu) */
static double sum_at(const contour_t *contour, double epsilon, double *slope) {
    double turn = contour->step * (epsilon - contour->centre), total = 0.0, moved = 0.0;
    for (size_t k = 0; k < contour->number; k++) {
        double angle = turn * (double)k, c = cos(angle), s = sin(angle); /* e^{-i angle} */
        total += contour->real[k] * c + contour->imag[k] * s;
        moved += (double)k * (contour->imag[k] * c - contour->real[k] * s);
    }
    double value = contour->step / PI * total;
    *slope = contour->theta * value - contour->step * contour->step / PI * moved;
    return value;
}

double contour_estimate(const contour_t *contour, double epsilon) {
    double slope, value = sum_at(contour, epsilon, &slope);
    return value > 0 ? contour->log_moment - contour->theta * epsilon + log(value) : -INFINITY;
}

void contour_log_delta(const contour_t *contour, double epsilon, double *lower, double *upper, double *slope) {
    double fall, value = sum_at(contour, epsilon, &fall);
    *lower = -INFINITY, *upper = 0.0, *slope = NAN;
    if (!isfinite(value)) return; /* beyond the doubles: nothing is known */
    double error = contour->tail + contour->noise + contour->phase_noise * (fabs(epsilon) + fabs(contour->centre));
    double most = value + error, least = value - error - alias_bound(contour, epsilon);
    double tilt = contour->theta * epsilon, base = contour->log_moment - tilt;
    double blur = contour->log_moment_error + 4 * EPS * (fabs(contour->log_moment) + fabs(tilt));
    if (isnan(most) || isnan(base) || isnan(blur)) return;
    double high = most > 0 ? base + log(most) + blur + 4 * EPS * fabs(log(most)) : -INFINITY;
    *upper = least_of(high, 0.0);
    if (least > 0) *lower = base + log(least) - blur - 4 * EPS * fabs(log(least));
    *slope = value > 0 && fall > 0 ? fall / value : contour->theta;
}

/* -- below another direction --------------------------------------------------------------------------------------- */

int is_below(const law_t *law, double count, double epsilon, double log_delta, const tuning_t *tuning, double most_work,
             int *below) {
    double theta[64], guess = least_of(most_of(2.0 * -log_delta / epsilon, 1e-6), 1e6), least = INFINITY;
    double counts[3] = {count, count, count};
    size_t n = tuning->glance.number, best = 0;
    block_t block = {.first = count, .middle = count, .last = count, .asked = epsilon};
    *below = 0;
    if (!n || n > 64) return REFUSED;
    for (size_t i = 0; i < n; i++) {
        theta[i] = guess * tuning->glance.at[i];
        if (!(theta[i] > 0 && isfinite(theta[i]))) return REFUSED;
    }
    int status = table_new(&block.tilts, n);
    if (!status) status = append(law, count, theta, n, 0, &block.tilts);
    for (size_t i = 0; !status && i < n; i++) {
        double t = theta[i], log_c = t * log1p(1 / t) + log1p(t), moment = block.tilts.moment[i];
        double size = fabs(moment) + fabs(log_delta) + log_c;
        double bound = (moment + block.tilts.error[i] - log_delta - log_c + 8 * EPS * size) / t * (1 + 4 * EPS);
        if (!isfinite(bound)) status = REFUSED;
        if (bound < least) least = bound, best = i;
    }
    if (!status && least <= epsilon) {
        *below = 1;
    } else if (!status) {
        contour_t contour;
        double lower, upper, slope;
        memset(&contour, 0, sizeof contour);
        row_of(&block.tilts, best, block.row);
        status = inverted(law, counts, tuning, most_work, &block);
        if (!status) status = contour_new(&block, count, &contour);
        if (!status) {
            contour_log_delta(&contour, epsilon, &lower, &upper, &slope);
            *below = upper <= log_delta;
        }
        contour_free(&contour);
    }
    block_free(&block);
    return status;
}
