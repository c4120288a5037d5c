// Element-wise arithmetic of floats, plain IEEE: the caller looks for overflow and division by zero. `out` may be an input.

#ifndef LANES_SIMD_ARITHMETIC_H_
#define LANES_SIMD_ARITHMETIC_H_

#include "kernels/numbers.h"

namespace lanes {
namespace simd {

enum class Arithmetic : uint8_t { Add, Subtract, Multiply, Divide };

#define LANES_DECLARE(T, Suffix)                                                                                       \
  /* out[i] = left[i] operator right[i] */                                                                             \
  void arithmetic(const T* left, const T* right, size_t rows, Arithmetic arithmetic, T* out) noexcept;                 \
  /* out[i] = values[i] operator constant */                                                                           \
  void arithmetic_constant(const T* values, T constant, size_t rows, Arithmetic arithmetic, T* out) noexcept;          \
  /* out[i] = constant operator values[i] */                                                                           \
  void constant_arithmetic(T constant, const T* values, size_t rows, Arithmetic arithmetic, T* out) noexcept;
LANES_FLOATS(LANES_DECLARE)
#undef LANES_DECLARE

}  // namespace simd
}  // namespace lanes

#endif  // LANES_SIMD_ARITHMETIC_H_
