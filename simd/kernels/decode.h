// Values out of packed bits and deltas. Arithmetic wraps.

#ifndef LANES_SIMD_DECODE_H_
#define LANES_SIMD_DECODE_H_

#include <cstddef>
#include <cstdint>

namespace lanes {
namespace simd {

// out[i] = base + the `width` bits from bit i * width of `packed`, bit 0 being the lowest of word 0. `packed` has
// ceil(rows * width / 64) words. A width above 32 (64) counts as 32 (64).
void unpack_bits(const uint64_t* packed, uint32_t width, size_t rows, uint32_t base, uint32_t* out) noexcept;
void unpack_bits(const uint64_t* packed, uint32_t width, size_t rows, uint64_t base, uint64_t* out) noexcept;

// out[i] = base + deltas[0] + ... + deltas[i]; `out` may be `deltas`.
void delta_decode(const int64_t* deltas, size_t rows, int64_t base, int64_t* out) noexcept;

}  // namespace simd
}  // namespace lanes

#endif  // LANES_SIMD_DECODE_H_
