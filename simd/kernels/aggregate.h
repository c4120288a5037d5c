// Aggregates over the selected rows of a lane. A null selection selects all rows.

#ifndef LANES_SIMD_AGGREGATE_H_
#define LANES_SIMD_AGGREGATE_H_

#include "kernels/numbers.h"

namespace lanes {
namespace simd {

// Sums of the narrow integers cannot overflow: rows are fewer than 2^32.
int64_t sum(const int16_t* values, size_t rows, const uint64_t* selection) noexcept;
int64_t sum(const int32_t* values, size_t rows, const uint64_t* selection) noexcept;
int64_t sum(const uint32_t* values, size_t rows, const uint64_t* selection) noexcept;

// The sum of int64 values as `high * 2^32 + low`; returns `low`.
uint64_t sum_split(const int64_t* values, size_t rows, const uint64_t* selection, int64_t* high) noexcept;

// Sums of floats, in the order of addition that stripes-inl.h fixes. Of no rows: -0.
float sum(const float* values, size_t rows, const uint64_t* selection) noexcept;
double sum(const double* values, size_t rows, const uint64_t* selection) noexcept;
double sum_wide(const float* values, size_t rows, const uint64_t* selection) noexcept;
double sum_squares(const double* values, size_t rows, const uint64_t* selection) noexcept;
double sum_squares_wide(const float* values, size_t rows, const uint64_t* selection) noexcept;
double sum_squared_deviations(const double* values, size_t rows, const uint64_t* selection, double center) noexcept;
double sum_products(const double* left, const double* right, size_t rows, const uint64_t* selection) noexcept;

// The least and the greatest value; false, and `out` not written, if no row is selected. Of values that compare equal but
// differ in bits (zeros, NaNs) the last, as PostgreSQL's float8smaller and float8larger have it.
#define LANES_DECLARE(T, Suffix)                                                                    \
  bool minimum(const T* values, size_t rows, const uint64_t* selection, T* out) noexcept;           \
  bool maximum(const T* values, size_t rows, const uint64_t* selection, T* out) noexcept;
LANES_NUMBERS(LANES_DECLARE)
#undef LANES_DECLARE

// Whether all |x| <= bound: false if there is a NaN.
// The sum, and whether all |value| <= bound, selected or not; without, the sum means nothing.
bool sum_within(const float* values, size_t rows, const uint64_t* selection, float bound, float* sum) noexcept;
bool sum_within(const double* values, size_t rows, const uint64_t* selection, double bound, double* sum) noexcept;
bool sum_wide_within(const float* values, size_t rows, const uint64_t* selection, float bound, double* sum) noexcept;
// The sums of values * weights and of weights, and whether all of both are within the bound, selected or not, and no selected
// product of two that are not zero is zero; without, the sums mean nothing.
bool weighted_sums_within(const double* values, const double* weights, size_t rows, const uint64_t* selection, double bound,
                          double* products_sum, double* weights_sum) noexcept;

bool magnitude_within(const float* values, size_t rows, float bound) noexcept;
bool magnitude_within(const double* values, size_t rows, double bound) noexcept;

}  // namespace simd
}  // namespace lanes

#endif  // LANES_SIMD_AGGREGATE_H_
