// Packed values begin at any bit, so each is cut out of a few whole bytes: a shuffle brings the bytes of each value into its
// lane, a shift by the lane's own count drops the bits below it, a mask those above. Eight values of `width` bits take exactly
// `width` bytes, so what one group of eight needs, all groups need: the shuffles and shifts of a width are constants. A lane of
// 64 bits holds a value of up to 57 bits wherever in a byte it begins, one of 32 bits up to 25; wider values, which are rare,
// are cut out one by one, and so are the last few rows.

#include "kernels/decode.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/decode.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef LANES_SIMD_DECODE_TABLES
#define LANES_SIMD_DECODE_TABLES
#include <cstring>

namespace lanes {
namespace simd {

constexpr size_t kGroup = 8;

// For each width: which bytes make a lane and how far it is to be shifted. A block of 16 bytes holds 16 / sizeof(T) values and
// is loaded from the byte in which the first of them begins.
template <typename T, uint32_t kWidthMax>
struct UnpackTables {
  static constexpr size_t kBlockValues = 16 / sizeof(T);
  static constexpr size_t kBlocks = kGroup / kBlockValues;
  alignas(64) uint8_t bytes[kWidthMax + 1][kGroup * sizeof(T)] = {};
  alignas(64) T shifts[kWidthMax + 1][kGroup] = {};

  constexpr UnpackTables() {
    for (uint32_t width = 0; width <= kWidthMax; ++width) {
      for (size_t value = 0; value < kGroup; ++value) {
        const size_t block = value / kBlockValues;
        const size_t begin = block * kBlockValues * width / 8 * 8;
        const size_t bit = value * width - begin;
        for (size_t i = 0; i < sizeof(T); ++i) {
          bytes[width][value * sizeof(T) + i] = static_cast<uint8_t>(bit / 8 + i);
        }
        shifts[width][value] = static_cast<T>(bit % 8);
      }
    }
  }
};

constexpr uint32_t kWidthMax64 = 57;
constexpr uint32_t kWidthMax32 = 25;
inline constexpr UnpackTables<uint64_t, kWidthMax64> kTables64;
inline constexpr UnpackTables<uint32_t, kWidthMax32> kTables32;

// Any width of 1 to 64, one value at a time.
template <typename T>
inline void UnpackEach(const uint8_t* packed, uint32_t width, size_t first, size_t rows, T base, T* out) {
  const uint64_t mask = ~uint64_t{0} >> (64 - width);
  for (size_t i = first; i < rows; ++i) {
    const size_t bit = i * width;
    uint64_t low;
    memcpy(&low, packed + bit / 8, sizeof(low));
    const uint64_t high = packed[bit / 8 + 8];
    const uint64_t value = low >> (bit % 8) | high << 1 << (63 - bit % 8);
    out[i] = static_cast<T>(base + static_cast<T>(value & mask));
  }
}

}  // namespace simd
}  // namespace lanes
#endif  // LANES_SIMD_DECODE_TABLES

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most two blocks of 16 bytes: a wider vector would need more loads to fill.
template <typename T>
using Tag = hn::CappedTag<T, 32 / sizeof(T)>;

// Blocks of 16 bytes from two places, or one from the first where a vector has no room for two.
template <class D8>
HWY_INLINE hn::Vec<D8> LoadBlocks(D8 d8, const uint8_t* low, const uint8_t* high) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(d8) == 32) {
    const hn::Half<D8> half;
    return hn::Combine(d8, hn::LoadU(half, high), hn::LoadU(half, low));
  }
#endif
  (void)high;
  return hn::LoadU(d8, low);
}

template <typename T, class Tables>
HWY_INLINE void Unpack(const Tables& tables, uint32_t width, const uint8_t* packed, size_t rows, T base, T* out) {
  size_t done = 0;
#if HWY_TARGET != HWY_SCALAR
  const Tag<T> d;
  const hn::Repartition<uint8_t, decltype(d)> d8;
  constexpr size_t kLanes = hn::MaxLanes(Tag<T>());
  constexpr size_t kVectors = kGroup / kLanes;
  constexpr size_t kBlocksEach = kLanes / Tables::kBlockValues;
  hn::Vec<decltype(d8)> bytes[kVectors];
  hn::Vec<decltype(d)> shifts[kVectors];
  size_t at[kVectors][2];
  for (size_t v = 0; v < kVectors; ++v) {
    bytes[v] = hn::LoadU(d8, tables.bytes[width] + v * kLanes * sizeof(T));
    shifts[v] = hn::LoadU(d, tables.shifts[width] + v * kLanes);
    for (size_t block = 0; block < 2; ++block) {
      at[v][block] = (v * kBlocksEach + block % kBlocksEach) * Tables::kBlockValues * width / 8;
    }
  }
  const auto mask = hn::Set(d, static_cast<T>((T{1} << width) - 1));
  const auto add = hn::Set(d, base);
  for (; done + kGroup <= rows; done += kGroup, packed += width) {
    for (size_t v = 0; v < kVectors; ++v) {
      const auto blocks = LoadBlocks(d8, packed + at[v][0], packed + at[v][1]);
      const auto lanes = hn::BitCast(d, hn::TableLookupBytes(blocks, bytes[v]));
      const auto values = hn::And(hn::Shr(lanes, shifts[v]), mask);
      hn::StoreU(hn::Add(values, add), d, out + done + v * kLanes);
    }
  }
#else
  (void)tables;
#endif
  UnpackEach(packed, width, 0, rows - done, base, out + done);
}

void UnpackU32(const uint8_t* packed, uint32_t width, size_t rows, uint32_t base, uint32_t* out) {
  if (width == 0) {
    for (size_t i = 0; i < rows; ++i) out[i] = base;
  } else if (width <= kWidthMax32) {
    Unpack(kTables32, width, packed, rows, base, out);
  } else {
    UnpackEach(packed, width < 32 ? width : 32, 0, rows, base, out);
  }
}

void UnpackU64(const uint8_t* packed, uint32_t width, size_t rows, uint64_t base, uint64_t* out) {
  if (width == 0) {
    for (size_t i = 0; i < rows; ++i) out[i] = base;
  } else if (width <= kWidthMax64) {
    Unpack(kTables64, width, packed, rows, base, out);
  } else {
    UnpackEach(packed, width < 64 ? width : 64, 0, rows, base, out);
  }
}

void Scale(uint64_t* values, size_t rows, uint64_t factor, uint64_t base) {
  for (size_t i = 0; i < rows; ++i) values[i] = values[i] * factor + base;
}

#if HWY_TARGET != HWY_SCALAR
// The sums of each lane and those below it; `d` has at most two blocks of two lanes.
template <class D, class V>
HWY_INLINE V SumsUpTo(D d, V values) {
  V sums = hn::Add(values, hn::ShiftLeftLanes<1>(d, values));
  if constexpr (hn::MaxLanes(D()) == 4) {
    // The sum of the low block goes to both lanes of the high one.
    sums = hn::Add(sums, hn::DupOdd(hn::ConcatLowerLower(d, sums, hn::Zero(d))));
  }
  return sums;
}

// The last lane in all lanes.
template <class D, class V>
HWY_INLINE V BroadcastLast(D d, V values) {
  if constexpr (hn::MaxLanes(D()) == 4) values = hn::ConcatUpperUpper(d, values, values);
  return hn::DupOdd(values);
}
#endif

void SumDeltas(uint64_t* values, size_t rows, uint64_t before) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const Tag<uint64_t> d;
  constexpr size_t kLanes = hn::MaxLanes(Tag<uint64_t>());
  // What one vector hands to the next is one addition away from it: the rest does not wait.
  auto carry = hn::Set(d, before);
  for (; i + kLanes <= rows; i += kLanes) {
    const auto sums = SumsUpTo(d, hn::LoadU(d, values + i));
    hn::StoreU(hn::Add(sums, carry), d, values + i);
    carry = hn::Add(carry, BroadcastLast(d, sums));
  }
  before = hn::GetLane(carry);
#endif
  for (; i < rows; ++i) {
    before += values[i];
    values[i] = before;
  }
}

void DecimalsToDoubles(uint64_t* values, size_t rows, double divisor) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<double> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto by = hn::Set(d, divisor);
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<double>());
  for (; i + kLanes <= rows; i += kLanes) {
    auto number = hn::ConvertTo(d, hn::BitCast(di, hn::LoadU(du, values + i)));
    if (divisor != 1.0) number = hn::Div(number, by);
    hn::StoreU(hn::BitCast(du, number), du, values + i);
  }
#endif
  for (; i < rows; ++i) {
    const double number = static_cast<double>(static_cast<int64_t>(values[i])) / divisor;
    memcpy(values + i, &number, sizeof(number));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanes {
namespace simd {

HWY_EXPORT(UnpackU32);
HWY_EXPORT(UnpackU64);
HWY_EXPORT(Scale);
HWY_EXPORT(SumDeltas);
HWY_EXPORT(DecimalsToDoubles);

void unpack_bits(const uint8_t* packed, uint32_t width, size_t rows, uint32_t base, uint32_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(UnpackU32)(packed, width, rows, base, out);
}
void unpack_bits(const uint8_t* packed, uint32_t width, size_t rows, uint64_t base, uint64_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(UnpackU64)(packed, width, rows, base, out);
}
void scale(uint64_t* values, size_t rows, uint64_t factor, uint64_t base) noexcept {
  HWY_DYNAMIC_DISPATCH(Scale)(values, rows, factor, base);
}
void sum_deltas(uint64_t* values, size_t rows, uint64_t before) noexcept {
  HWY_DYNAMIC_DISPATCH(SumDeltas)(values, rows, before);
}
void sum_deltas_of_deltas(uint64_t* values, size_t rows, uint64_t before, uint64_t step) noexcept {
  // The two sums of a row do not wait for each other, so this is as fast as one.
  for (size_t i = 0; i < rows; ++i) {
    step += values[i];
    before += step;
    values[i] = before;
  }
}
void decimals_to_doubles(uint64_t* values, size_t rows, double divisor) noexcept {
  HWY_DYNAMIC_DISPATCH(DecimalsToDoubles)(values, rows, divisor);
}

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
