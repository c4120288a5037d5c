// Numbers out of packed bits, differences and decimals. Integer arithmetic wraps.

#ifndef LANES_SIMD_DECODE_H_
#define LANES_SIMD_DECODE_H_

#include <cstddef>
#include <cstdint>

namespace lanes {
namespace simd {

// out[i] = base + the `width` bits from bit i * width of `packed`, bit 0 being the lowest of byte 0. `packed` has
// ceil(rows * width / 8) bytes, and 16 more may be read. A width above 32 (64) counts as 32 (64).
void unpack_bits(const uint8_t* packed, uint32_t width, size_t rows, uint32_t base, uint32_t* out) noexcept;
void unpack_bits(const uint8_t* packed, uint32_t width, size_t rows, uint64_t base, uint64_t* out) noexcept;

// values[i] = values[i] * factor + base.
void scale(uint64_t* values, size_t rows, uint64_t factor, uint64_t base) noexcept;

// values[i] = before + values[0] + ... + values[i].
void sum_deltas(uint64_t* values, size_t rows, uint64_t before) noexcept;

// As sum_deltas twice: the differences begin with `step`, the numbers with `before`.
void sum_deltas_of_deltas(uint64_t* values, size_t rows, uint64_t before, uint64_t step) noexcept;

// As unpack_bits, then sum_deltas.
void unpack_deltas(const uint8_t* packed, uint32_t width, size_t rows, uint64_t base, uint64_t before,
                   uint64_t* out) noexcept;

// As unpack_bits, then decimals_to_doubles.
void unpack_decimals(const uint8_t* packed, uint32_t width, size_t rows, uint64_t base, double divisor,
                     uint64_t* out) noexcept;

// values[i] = the bits of the double that is the signed integer values[i] over `divisor`, a power of ten up to 10^14, rounded once
// each.
void decimals_to_doubles(uint64_t* values, size_t rows, double divisor) noexcept;

}  // namespace simd
}  // namespace lanes

#endif  // LANES_SIMD_DECODE_H_
