// The element types that the kernels know, as a list to apply a macro to.

#ifndef LANES_SIMD_NUMBERS_H_
#define LANES_SIMD_NUMBERS_H_

#include <cstddef>
#include <cstdint>

// X(type, suffix): `suffix` names the per-target function, which Highway cannot take as a template or an overload.
#define LANES_INTEGERS(X) X(int16_t, I16) X(int32_t, I32) X(int64_t, I64) X(uint32_t, U32)
#define LANES_FLOATS(X) X(float, F32) X(double, F64)
#define LANES_NUMBERS(X) LANES_INTEGERS(X) LANES_FLOATS(X)

#endif  // LANES_SIMD_NUMBERS_H_
