/* The Poisson-sampled Gaussian: moments, nodes and decay, as in src/dptally/laws/sampled/gaussian/kernel.py.
 *
 * Every function has the name of the numpy code that it repeats, the same operations in the same order or with fewer
 * roundings, and the same charges for them. docs/kernel.md goes through them one by one. No function allocates more
 * than it frees, none knows of Python.
 */
#ifndef DPTALLY_SAMPLED_GAUSSIAN_H
#define DPTALLY_SAMPLED_GAUSSIAN_H

#include <float.h>
#include <stddef.h>

#if FLT_EVAL_METHOD != 0 || FLT_RADIX != 2 || DBL_MANT_DIG != 53
#error "the error bounds are derived for IEEE doubles without excess precision"
#endif
#ifdef __FAST_MATH__
#error "the error bounds do not hold under -ffast-math"
#endif

#define EPS 2.220446049250313e-16 /* 2^-52 */
#define PI 3.141592653589793
#define MAX_NODES 20000

enum { DONE = 0, REFUSED = 1, NO_MEMORY = -1 };

typedef struct {
    double rate, scale;
    int remove;
    double log_rate, log_rest, offset; /* log q, log(1 - q), their difference */
} law_t;

/* K at tilts, bounds of its error, K' and K'': columns of equal length */
typedef struct {
    size_t rows, room;
    double *theta, *moment, *error, *first, *second;
} table_t;

/* phi of one step at one tilt: losses and weights on nodes, with their errors */
typedef struct {
    size_t size;
    double *losses, *weights, *loss_error, *weight_error;
    double defect, log_moment, log_moment_error, centre;
} nodes_t;

/* cells on which the decay of phi is bounded */
typedef struct {
    size_t cells;
    double *share, *most, *least, *product; /* share at cells + 1 edges */
    double zeta, slack, whole, kappa[2];
    int shapes;
} decay_t;

law_t law_of(double rate, double scale, int remove);

int table_new(table_t *table, size_t room);
void table_free(table_t *table);

/* K at n tilts; infinite where that takes too many nodes */
int moment_table(const law_t *law, const double *theta, size_t n, double *moment, double *error, double *first,
                 double *second);

int characteristic(const law_t *law, double theta, double reach, double log_tolerance, nodes_t *nodes);
void nodes_free(nodes_t *nodes);
double slope_error(const nodes_t *nodes, size_t depth);
/* phi(k step) - 1 for k < number, and (a, b): each errs by at most a + b u */
int on_grid(const nodes_t *nodes, double step, size_t number, double *real, double *imag, double *flat, double *steep);

int decay_new(const law_t *law, double theta, double furthest, decay_t *decay);
void decay_free(decay_t *decay);
/* a bound of log |phi(u)| for every u >= start, start at most ``furthest``; ``enough``: a bound that needs no better */
double log_decay(const law_t *law, const decay_t *decay, double start, double enough);

#endif
