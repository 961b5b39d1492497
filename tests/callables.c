/* Compiled functions for the tests of minimize. */
#include <math.h>
#include <stdint.h>

typedef struct {
  int64_t n;
  const double* H;
  const double* c;
} quadratic;

double quadratic_partial(int64_t i, const double* x, void* user_data) {
  const quadratic* q = user_data;
  double sum = -q->c[i];
  for (int64_t j = 0; j < q->n; ++j) {
    const double h = q->H[i * q->n + j];
    if (h != 0) sum += h * x[j];
  }
  return sum;
}

double quadratic_value(int64_t n, const double* x, void* user_data) {
  const quadratic* q = user_data;
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * (0.5 * (quadratic_partial(i, x, user_data) - q->c[i]));
  return sum;
}

/* sum_j log(1 + exp(v_j)) + |x|^2/2, with B by columns */
typedef struct {
  const int64_t* starts;
  const int64_t* places;
  const double* values;
} columns;

double logistic_partial(int64_t i, double x_i, const double* v, void* user_data) {
  const columns* B = user_data;
  double sum = x_i;
  for (int64_t t = B->starts[i]; t < B->starts[i + 1]; ++t) sum += B->values[t] / (1 + exp(-v[B->places[t]]));
  return sum;
}

double soft(int64_t i, double t, double theta) {
  (void)i;
  const double size = fabs(t) - 0.3 * theta;
  return size > 0 ? copysign(size, t) : 0;
}

double clip(int64_t i, double t, double theta) {
  (void)i, (void)theta;
  return t < -0.5 ? -0.5 : t > 1.0 ? 1.0 : t;
}

double towards_one(int64_t i, const double* x) { return x[i] - 1; }

double not_a_number(int64_t i, const double* x) { return i > 0 || x[i] != 0 ? NAN : 1; }
