/* One trapezoid sum through a saddle point: what src/dptally/accounting/certified/contour does for one sampled
 * Gaussian. docs/kernel.md goes through the functions and their charges one by one.
 */
#ifndef DPTALLY_CONTOUR_H
#define DPTALLY_CONTOUR_H

#include "sampled_gaussian.h"

typedef struct {
    const double *at;
    size_t number;
} list_t;

/* ContourTuning: any values are sound */
typedef struct {
    double steady, relative, node_tolerance, furthest, fair, hopeless, most_terms, long_period, most_lost;
    list_t blocks, around, starts, closer, glance;
} tuning_t;

typedef struct {
    double theta, moment, variance, epsilon, asked, log_size;
} saddle_t;

/* what is looked for: the saddle of an epsilon, or the one where delta is about e^value */
typedef struct {
    int is_epsilon;
    double value;
} locate_t;

/* the contour of neighbouring counts, before phi is raised to one of them */
typedef struct {
    double first, middle, last; /* the cut-off holds from the first count on, the nodes up to the last */
    double asked;               /* NAN for the saddle's own */
    double step, log_bound;
    size_t number;
    double *real, *imag, *growth; /* log phi of one step on the grid, and the growth of the error */
    double log_moment, log_moment_error, centre;
    double row[5];
    table_t tilts;
} block_t;

typedef struct {
    size_t number;
    double *gap, *log;
} side_t;

typedef struct {
    double theta, log_moment, log_moment_error, centre, step, noise, phase_noise, tail, saddle;
    size_t number;
    double *real, *imag; /* phi(u_k) / ((theta + iu)(theta + 1 + iu)), the k = 0 term halved */
    side_t above, below;
} contour_t;

/* counts: first <= middle <= last of the block. ``shorter``: a smaller tilt may be taken where the period is long */
int block_new(const law_t *law, const double counts[3], locate_t locate, int shorter, const tuning_t *tuning,
              double most_work, block_t *block);
void block_free(block_t *block);
int contour_new(const block_t *block, double count, contour_t *contour);
void contour_free(contour_t *contour);
void contour_log_delta(const contour_t *contour, double epsilon, double *lower, double *upper, double *slope);
double contour_estimate(const contour_t *contour, double epsilon);
/* whether a few tilts, or a contour through one, show that delta(epsilon) is at most e^log_delta: 1 or 0, or a status */
int is_below(const law_t *law, double count, double epsilon, double log_delta, const tuning_t *tuning, double most_work,
             int *below);

#endif
