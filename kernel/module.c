/* dptally._kernel: the compiled routines as a Python module, by the stable ABI of Python 3.11 and later.
 *
 * What comes from Python is checked here: numbers, lengths, and one-dimensional contiguous buffers of the right type.
 * The calculations run without the interpreter's lock; they see plain C arrays only.
 */
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <string.h>

#include "contour.h"
#include "noise.h"

#define MOST_COUNT 9007199254740992.0 /* 2^53: counts are exact doubles */

static PyObject *block_type, *contour_type;

/* -- checks -------------------------------------------------------------------------------------------------------- */

/* a contiguous buffer of one dimension whose items have this format (struct module); released by the caller */
static int items(PyObject *object, const char *name, char format, Py_ssize_t size, int writable, Py_buffer *view) {
    int flags = PyBUF_ND | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) < 0) return -1;
    const char *given = view->format ? view->format : "B";
    if (given[0] == '=' || given[0] == '@') given++;
    int same = given[0] == format || (format == 'q' && given[0] == 'l'); /* the same on most systems: the size decides */
    if (view->ndim != 1 || !same || given[1] || view->itemsize != size) {
        PyErr_Format(PyExc_TypeError, "%s must be a flat array of items '%c' of %zd bytes", name, format, size);
        PyBuffer_Release(view);
        return -1;
    }
    return 0;
}

static int doubles_of(PyObject *object, const char *name, int writable, Py_buffer *view) {
    return items(object, name, 'd', (Py_ssize_t)sizeof(double), writable, view);
}

static int law_from(double rate, double scale, int remove, law_t *law) {
    if (!(rate > 0 && rate < 1 && scale > 0 && isfinite(scale))) {
        PyErr_SetString(PyExc_ValueError, "the rate must lie in (0, 1) and the scale must be positive and finite");
        return -1;
    }
    *law = law_of(rate, scale, remove);
    return 0;
}

static int is_count(double count) {
    if (count >= 1 && count <= MOST_COUNT && count == floor(count)) return 1;
    PyErr_SetString(PyExc_ValueError, "a count must be a whole number from 1 to 2^53");
    return 0;
}

static int positive(const char *name, const double *values, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (!(values[i] > 0 && isfinite(values[i]))) {
            PyErr_Format(PyExc_ValueError, "%s must be positive and finite", name);
            return 0;
        }
    return 1;
}

/* the choices as one array: nine numbers, then five lists, each after its length */
static int tuning_from(const Py_buffer *view, tuning_t *tuning) {
    const double *at = view->buf;
    size_t left = (size_t)view->len / sizeof(double);
    if (left < 9) goto wrong;
    *tuning = (tuning_t){at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], {0}, {0}, {0}, {0}, {0}};
    for (size_t i = 0; i < left; i++)
        if (isnan(at[i])) goto wrong;
    at += 9, left -= 9;
    list_t *lists[5] = {&tuning->blocks, &tuning->around, &tuning->starts, &tuning->closer, &tuning->glance};
    for (int i = 0; i < 5; i++) {
        if (!left || !(at[0] >= 0 && at[0] <= 64 && at[0] == floor(at[0])) || (double)(left - 1) < at[0]) goto wrong;
        *lists[i] = (list_t){at + 1, (size_t)at[0]};
        left -= 1 + lists[i]->number;
        at += 1 + lists[i]->number;
    }
    if (left) goto wrong;
    for (size_t i = 0; i < tuning->blocks.number; i++)
        if (!(fabs(tuning->blocks.at[i]) <= 2000)) goto wrong;
    return 0;
wrong:
    PyErr_SetString(PyExc_ValueError, "the choices must be nine numbers and five lists of at most 64 numbers");
    return -1;
}

static PyObject *outcome(int status) {
    if (status == NO_MEMORY) return PyErr_NoMemory();
    Py_RETURN_NONE; /* refused: another method answers */
}

/* -- contours ------------------------------------------------------------------------------------------------------ */

typedef struct {
    PyObject_HEAD
    block_t block;
} BlockObject;

typedef struct {
    PyObject_HEAD
    contour_t contour;
} ContourObject;

static PyObject *made(PyObject *type) {
    PyTypeObject *t = (PyTypeObject *)type;
    allocfunc alloc = (allocfunc)PyType_GetSlot(t, Py_tp_alloc);
    return alloc(t, 0);
}

static void freed(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static void block_dealloc(PyObject *self) {
    block_free(&((BlockObject *)self)->block);
    freed(self);
}

static void contour_dealloc(PyObject *self) {
    contour_free(&((ContourObject *)self)->contour);
    freed(self);
}

static PyObject *block_contour(PyObject *self, PyObject *argument) {
    double count = PyFloat_AsDouble(argument);
    if (count == -1.0 && PyErr_Occurred()) return NULL;
    if (!is_count(count)) return NULL;
    const block_t *block = &((BlockObject *)self)->block;
    if (!(block->first <= count && count <= block->last)) {
        PyErr_SetString(PyExc_ValueError, "the block was made for other counts");
        return NULL;
    }
    ContourObject *found = (ContourObject *)made(contour_type);
    if (!found) return NULL;
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = contour_new(block, count, &found->contour);
    Py_END_ALLOW_THREADS
    if (status == DONE) return (PyObject *)found;
    Py_DECREF(found);
    return outcome(status);
}

static PyObject *block_size(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromSize_t(((BlockObject *)self)->block.number);
}

static PyObject *contour_saddle(PyObject *self, void *Py_UNUSED(closure)) {
    return PyFloat_FromDouble(((ContourObject *)self)->contour.saddle);
}

static PyObject *contour_bounds(PyObject *self, PyObject *argument) {
    double epsilon = PyFloat_AsDouble(argument), lower, upper, slope;
    if (epsilon == -1.0 && PyErr_Occurred()) return NULL;
    Py_BEGIN_ALLOW_THREADS
    contour_log_delta(&((ContourObject *)self)->contour, epsilon, &lower, &upper, &slope);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("ddd", lower, upper, slope);
}

static PyObject *contour_estimated(PyObject *self, PyObject *argument) {
    double epsilon = PyFloat_AsDouble(argument);
    if (epsilon == -1.0 && PyErr_Occurred()) return NULL;
    return PyFloat_FromDouble(contour_estimate(&((ContourObject *)self)->contour, epsilon));
}

static PyObject *contour_many(PyObject *self, PyObject *args) {
    PyObject *given, *room;
    Py_buffer epsilon, out;
    if (!PyArg_ParseTuple(args, "OO", &given, &room)) return NULL;
    if (doubles_of(given, "epsilon", 0, &epsilon) < 0) return NULL;
    if (doubles_of(room, "out", 1, &out) < 0) {
        PyBuffer_Release(&epsilon);
        return NULL;
    }
    Py_ssize_t n = epsilon.len / (Py_ssize_t)sizeof(double);
    int fits = out.len == 3 * epsilon.len;
    if (fits) {
        const double *eps = epsilon.buf;
        double *to = out.buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < n; i++)
            contour_log_delta(&((ContourObject *)self)->contour, eps[i], to + i, to + n + i, to + 2 * n + i);
        Py_END_ALLOW_THREADS
    } else
        PyErr_SetString(PyExc_ValueError, "out must be three times as long as epsilon");
    PyBuffer_Release(&epsilon);
    PyBuffer_Release(&out);
    if (!fits) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef block_methods[] = {
    {"contour", block_contour, METH_O, "The contour of this many steps."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef block_getset[] = {
    {"number", block_size, NULL, "The number of terms.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot block_slots[] = {
    {Py_tp_dealloc, (void *)block_dealloc},
    {Py_tp_methods, block_methods},
    {Py_tp_getset, block_getset},
    {0, NULL},
};
static PyType_Spec block_spec = {"dptally._kernel.Block", (int)sizeof(BlockObject), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, block_slots};

static PyMethodDef contour_methods[] = {
    {"log_delta", contour_bounds, METH_O, "(lower, upper, slope) at one epsilon."},
    {"estimate", contour_estimated, METH_O, "log delta at one epsilon, not a bound."},
    {"log_delta_many", contour_many, METH_VARARGS, "Bounds at many epsilons, into an array three times as long."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef contour_getset[] = {
    {"saddle", contour_saddle, NULL, "The epsilon whose saddle point the tilt is.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot contour_slots[] = {
    {Py_tp_dealloc, (void *)contour_dealloc},
    {Py_tp_methods, contour_methods},
    {Py_tp_getset, contour_getset},
    {0, NULL},
};
static PyType_Spec contour_spec = {"dptally._kernel.Contour", (int)sizeof(ContourObject), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, contour_slots};

static PyObject *block(PyObject *Py_UNUSED(module), PyObject *args) {
    double rate, scale, counts[3], value, most_work;
    int remove, is_epsilon, shorter;
    PyObject *choices;
    Py_buffer view;
    law_t law;
    tuning_t tuning;
    if (!PyArg_ParseTuple(args, "ddpdddpdpOd", &rate, &scale, &remove, &counts[0], &counts[1], &counts[2], &is_epsilon,
                          &value, &shorter, &choices, &most_work))
        return NULL;
    if (law_from(rate, scale, remove, &law) < 0) return NULL;
    if (!is_count(counts[0]) || !is_count(counts[1]) || !is_count(counts[2])) return NULL;
    if (!(counts[0] <= counts[1] && counts[1] <= counts[2])) {
        PyErr_SetString(PyExc_ValueError, "counts must be in order");
        return NULL;
    }
    if (!isfinite(value) || isnan(most_work)) {
        PyErr_SetString(PyExc_ValueError, "what is looked for must be finite");
        return NULL;
    }
    if (doubles_of(choices, "choices", 0, &view) < 0) return NULL;
    if (tuning_from(&view, &tuning) < 0) {
        PyBuffer_Release(&view);
        return NULL;
    }
    BlockObject *found = (BlockObject *)made(block_type);
    if (!found) {
        PyBuffer_Release(&view);
        return NULL;
    }
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = block_new(&law, counts, (locate_t){is_epsilon, value}, shorter, &tuning, most_work, &found->block);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    if (status == DONE) return (PyObject *)found;
    Py_DECREF(found);
    return outcome(status);
}

static PyObject *below(PyObject *Py_UNUSED(module), PyObject *args) {
    double rate, scale, count, epsilon, log_delta, most_work;
    int remove, answer = 0, status;
    PyObject *choices;
    Py_buffer view;
    law_t law;
    tuning_t tuning;
    if (!PyArg_ParseTuple(args, "ddpdddOd", &rate, &scale, &remove, &count, &epsilon, &log_delta, &choices, &most_work))
        return NULL;
    if (law_from(rate, scale, remove, &law) < 0 || !is_count(count)) return NULL;
    if (!(epsilon > 0 && isfinite(epsilon) && isfinite(log_delta)) || isnan(most_work)) {
        PyErr_SetString(PyExc_ValueError, "epsilon must be positive, and all numbers finite");
        return NULL;
    }
    if (doubles_of(choices, "choices", 0, &view) < 0) return NULL;
    if (tuning_from(&view, &tuning) < 0) {
        PyBuffer_Release(&view);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = is_below(&law, count, epsilon, log_delta, &tuning, most_work, &answer);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    if (status == NO_MEMORY) return PyErr_NoMemory();
    return PyBool_FromLong(status == DONE && answer);
}

/* -- the stages of a contour by themselves ------------------------------------------------------------------------- */

static PyObject *moments(PyObject *Py_UNUSED(module), PyObject *args) {
    double rate, scale;
    int remove, status = DONE;
    PyObject *given, *room;
    Py_buffer theta, out;
    law_t law;
    if (!PyArg_ParseTuple(args, "ddpOO", &rate, &scale, &remove, &given, &room)) return NULL;
    if (law_from(rate, scale, remove, &law) < 0 || doubles_of(given, "theta", 0, &theta) < 0) return NULL;
    if (doubles_of(room, "out", 1, &out) < 0) {
        PyBuffer_Release(&theta);
        return NULL;
    }
    Py_ssize_t n = theta.len / (Py_ssize_t)sizeof(double);
    double *to = out.buf;
    int good = n > 0 && out.len == 4 * theta.len;
    if (!good) PyErr_SetString(PyExc_ValueError, "out must be four times as long as theta, which must not be empty");
    good = good && positive("theta", theta.buf, n);
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        status = moment_table(&law, theta.buf, (size_t)n, to, to + n, to + 2 * n, to + 3 * n);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&theta);
    PyBuffer_Release(&out);
    if (!good) return NULL;
    return outcome(status);
}

static PyObject *decays(PyObject *Py_UNUSED(module), PyObject *args) {
    double rate, scale, theta;
    int remove, status = DONE;
    PyObject *given, *room;
    Py_buffer start, out;
    law_t law;
    if (!PyArg_ParseTuple(args, "ddpdOO", &rate, &scale, &remove, &theta, &given, &room)) return NULL;
    if (law_from(rate, scale, remove, &law) < 0 || !positive("theta", &theta, 1)) return NULL;
    if (doubles_of(given, "start", 0, &start) < 0) return NULL;
    if (doubles_of(room, "out", 1, &out) < 0) {
        PyBuffer_Release(&start);
        return NULL;
    }
    Py_ssize_t n = start.len / (Py_ssize_t)sizeof(double);
    const double *u = start.buf;
    double *to = out.buf, furthest = 0.0;
    int good = n > 0 && out.len == start.len;
    if (!good) PyErr_SetString(PyExc_ValueError, "out must be as long as start, which must not be empty");
    good = good && positive("start", u, n);
    if (good) {
        decay_t decay;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < n; i++) furthest = u[i] > furthest ? u[i] : furthest;
        status = decay_new(&law, theta, furthest, &decay);
        for (Py_ssize_t i = 0; i < n; i++) to[i] = status ? 0.0 : log_decay(&law, &decay, u[i], -INFINITY);
        decay_free(&decay);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&start);
    PyBuffer_Release(&out);
    if (!good) return NULL;
    if (status == NO_MEMORY) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *nodes(PyObject *Py_UNUSED(module), PyObject *args) {
    double rate, scale, theta, reach, log_tolerance;
    int remove, status;
    law_t law;
    nodes_t found;
    if (!PyArg_ParseTuple(args, "ddpddd", &rate, &scale, &remove, &theta, &reach, &log_tolerance)) return NULL;
    if (law_from(rate, scale, remove, &law) < 0 || !positive("theta", &theta, 1)) return NULL;
    if (!(reach >= 0 && isfinite(reach) && log_tolerance < 0 && isfinite(log_tolerance))) {
        PyErr_SetString(PyExc_ValueError, "the reach must be finite and not negative, the tolerance below one");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = characteristic(&law, theta, reach, log_tolerance, &found);
    Py_END_ALLOW_THREADS
    PyObject *answer;
    if (status)
        answer = outcome(status);
    else
        answer = Py_BuildValue("y#dddd", (const char *)found.losses, (Py_ssize_t)(4 * found.size * sizeof(double)),
                               found.defect, found.log_moment, found.log_moment_error, found.centre);
    nodes_free(&found);
    return answer;
}

/* -- noise --------------------------------------------------------------------------------------------------------- */

/* draws into ``room`` from ``given``: (draws made, bytes used) */
static PyObject *drawn(PyObject *given, PyObject *room, const gaussian_t *law, uint64_t numerator, uint64_t denominator) {
    Py_buffer pool, out;
    if (items(given, "bytes", 'B', 1, 0, &pool) < 0) return NULL;
    if (items(room, "out", 'q', 8, 1, &out) < 0) {
        PyBuffer_Release(&pool);
        return NULL;
    }
    bytes_t bytes = {pool.buf, (const uint8_t *)pool.buf + pool.len, 0, 0};
    size_t count = (size_t)out.len / sizeof(int64_t), made;
    Py_BEGIN_ALLOW_THREADS
    made = law ? gaussian_draws(&bytes, law, out.buf, count)
               : laplace_draws(&bytes, numerator, denominator, out.buf, count);
    Py_END_ALLOW_THREADS
    Py_ssize_t used = (Py_ssize_t)(bytes.at - (const uint8_t *)pool.buf);
    PyBuffer_Release(&pool);
    PyBuffer_Release(&out);
    if (bytes.wide) {
        PyErr_SetString(PyExc_OverflowError, "a draw beyond 64 bits: less likely than exp(-8,000,000)");
        return NULL;
    }
    return Py_BuildValue("nn", (Py_ssize_t)made, used);
}

static PyObject *draw_laplace(PyObject *Py_UNUSED(module), PyObject *args) {
    long long numerator, denominator;
    PyObject *given, *room;
    if (!PyArg_ParseTuple(args, "LLOO", &numerator, &denominator, &given, &room)) return NULL;
    if (numerator < 1 || denominator < 1 || (uint64_t)numerator > WIDEST_SCALE) {
        PyErr_SetString(PyExc_ValueError, "the scale must be positive, its numerator at most 2^38");
        return NULL;
    }
    return drawn(given, room, NULL, (uint64_t)numerator, (uint64_t)denominator);
}

static PyObject *draw_gaussian(PyObject *Py_UNUSED(module), PyObject *args) {
    long long numerator, scale, step, bottom;
    PyObject *given, *room;
    if (!PyArg_ParseTuple(args, "LLLLOO", &numerator, &scale, &step, &bottom, &given, &room)) return NULL;
    /* |drawn| <= scale (MOST_RUNS + 1), so that |drawn| step stays below 2^63 */
    if (numerator < 1 || scale < 1 || step < 1 || bottom < 1 || (uint64_t)scale > WIDEST_SCALE ||
        step > INT64_MAX / scale / (MOST_RUNS + 1)) {
        PyErr_SetString(PyExc_ValueError, "the variance is too wide for 64 bits");
        return NULL;
    }
    gaussian_t law = {(uint64_t)numerator, (uint64_t)scale, (uint64_t)step, (uint64_t)bottom};
    return drawn(given, room, &law, 0, 0);
}

static PyMethodDef methods[] = {
    {"block", block, METH_VARARGS,
     "block(rate, scale, remove, first, middle, last, is_epsilon, value, shorter, choices, most_work)"},
    {"is_below", below, METH_VARARGS,
     "is_below(rate, scale, remove, count, epsilon, log_delta, choices, most_work)"},
    {"moment_table", moments, METH_VARARGS, "moment_table(rate, scale, remove, theta, out)"},
    {"log_decay", decays, METH_VARARGS, "log_decay(rate, scale, remove, theta, start, out)"},
    {"characteristic", nodes, METH_VARARGS, "characteristic(rate, scale, remove, theta, reach, log_tolerance)"},
    {"laplace", draw_laplace, METH_VARARGS, "laplace(numerator, denominator, bytes, out)"},
    {"gaussian", draw_gaussian, METH_VARARGS, "gaussian(numerator, scale, step, bottom, bytes, out)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "dptally._kernel", "The compiled routines of dptally: docs/kernel.md.", -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    if (PyModule_AddStringConstant(module, "interface", DPTALLY_INTERFACE) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    block_type = PyType_FromSpec(&block_spec);
    contour_type = PyType_FromSpec(&contour_spec);
    if (!block_type || !contour_type) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
