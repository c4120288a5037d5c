// Two shifts and a mask a value, and one addition a delta: there are no vectors in here, and little to gain from them before
// packed lanes are read straight from memory.

#include "kernels/decode.h"

namespace lanes {
namespace simd {

namespace {

template <typename T>
void Unpack(const uint64_t* packed, uint32_t width, size_t rows, T base, T* out) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  if (width > kBits) width = kBits;
  if (width == 0) {
    for (size_t i = 0; i < rows; ++i) out[i] = base;
    return;
  }
  const uint64_t mask = ~uint64_t{0} >> (64 - width);
  for (size_t i = 0, bit = 0; i < rows; ++i, bit += width) {
    const size_t word = bit / 64;
    const size_t shift = bit % 64;
    // The word that the value's last bit is in. If that is the first word again, what it adds lies above the mask.
    const size_t last = word + static_cast<size_t>(shift + width > 64);
    const uint64_t high = packed[last] << 1 << (63 - shift);
    out[i] = static_cast<T>(base + static_cast<T>((packed[word] >> shift | high) & mask));
  }
}

}  // namespace

void unpack_bits(const uint64_t* packed, uint32_t width, size_t rows, uint32_t base, uint32_t* out) noexcept {
  Unpack(packed, width, rows, base, out);
}
void unpack_bits(const uint64_t* packed, uint32_t width, size_t rows, uint64_t base, uint64_t* out) noexcept {
  Unpack(packed, width, rows, base, out);
}

void delta_decode(const int64_t* deltas, size_t rows, int64_t base, int64_t* out) noexcept {
  uint64_t value = static_cast<uint64_t>(base);
  for (size_t i = 0; i < rows; ++i) {
    value += static_cast<uint64_t>(deltas[i]);
    out[i] = static_cast<int64_t>(value);
  }
}

}  // namespace simd
}  // namespace lanes
