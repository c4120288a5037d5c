// Packed values begin at any bit, so each is cut out of a few whole bytes: a shuffle moves the
// bytes of each value into its lane, a shift by the lane's own count drops the bits below it, and a
// mask drops the bits above it. Eight values of `width` bits take exactly `width` bytes, so all
// groups of eight need the same shuffles and shifts, which are constants of a width. A lane of 64
// bits holds a value of up to 57 bits wherever in a byte it begins, a lane of 32 bits one of up to
// 25 bits. Wider values of 32 bits may span five bytes, of which the fifth is moved and shifted
// separately. Wider values of 64 bits, which are rare, are cut out one by one, and so are the last
// few rows.
//
// Sums and decimals are computed from the values while they are in registers.

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

// For each width: the bytes of a lane and the distance to shift it, for as many values as the
// widest vector has. A block of 16 bytes holds 16 / sizeof(T) values and is loaded from the byte in
// which the first of them begins.
//
// With tails: also the byte that follows these, in the highest byte of a lane whose other bytes are
// 0. It is shifted up by 8 less than the lane is shifted down, so its low bits are just above the
// remaining bits of the lane. A block that ends before has no bits there.
template <typename T, uint32_t kWidthMax, bool kTails>
struct UnpackTables {
  static constexpr uint32_t kWidest = kWidthMax;
  static constexpr bool kHasTails = kTails;
  static constexpr size_t kBlockValues = 16 / sizeof(T);
  static constexpr size_t kGroup = 64 / sizeof(T);
  alignas(64) uint8_t bytes[kWidthMax + 1][kGroup * sizeof(T)] = {};
  alignas(64) uint8_t tails[kTails ? kWidthMax + 1 : 1][kGroup * sizeof(T)] = {};
  alignas(64) T shifts[kWidthMax + 1][kGroup] = {};

  constexpr UnpackTables() {
    constexpr uint8_t kZero = 0x80;
    for (uint32_t width = 0; width <= kWidthMax; ++width) {
      for (size_t value = 0; value < kGroup; ++value) {
        const size_t block = value / kBlockValues;
        const size_t begin = block * kBlockValues * width / 8 * 8;
        const size_t bit = value * width - begin;
        for (size_t i = 0; i < sizeof(T); ++i) {
          bytes[width][value * sizeof(T) + i] = static_cast<uint8_t>(bit / 8 + i);
          if (kTails) tails[width][value * sizeof(T) + i] = kZero;
        }
        const size_t tail = bit / 8 + sizeof(T);
        if (kTails && tail < 16) tails[width][(value + 1) * sizeof(T) - 1] = static_cast<uint8_t>(tail);
        shifts[width][value] = static_cast<T>(bit % 8);
      }
    }
  }
};

inline constexpr UnpackTables<uint64_t, 57, false> kTables64;
inline constexpr UnpackTables<uint32_t, 25, false> kTables32;
inline constexpr UnpackTables<uint32_t, 32, true> kTables32Wide;

// Any width of 1 to 64, one value at a time.
inline uint64_t UnpackOne(const uint8_t* packed, uint32_t width, size_t i) {
  const size_t bit = i * width;
  uint64_t low;
  memcpy(&low, packed + bit / 8, sizeof(low));
  const uint64_t high = packed[bit / 8 + 8];
  const uint64_t value = low >> (bit % 8) | high << 1 << (63 - bit % 8);
  return value & ~uint64_t{0} >> (64 - width);
}

inline uint64_t DecimalBits(uint64_t number, double divisor) {
  const double quotient = static_cast<double>(static_cast<int64_t>(number)) / divisor;
  uint64_t bits;
  memcpy(&bits, &quotient, sizeof(bits));
  return bits;
}

}  // namespace simd
}  // namespace lanes
#endif  // LANES_SIMD_DECODE_TABLES

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// As many blocks of 16 bytes as the vector has, each from its place.
template <class D8>
HWY_INLINE hn::Vec<D8> LoadBlocks(D8 d8, const uint8_t* packed, const size_t* places) {
  if constexpr (hn::MaxLanes(D8()) == 16) {
    return hn::LoadU(d8, packed + places[0]);
  } else {
    const hn::Half<D8> half;
    constexpr size_t kBlocks = hn::MaxLanes(hn::Half<D8>()) / 16;
    return hn::Combine(d8, LoadBlocks(half, packed, places + kBlocks), LoadBlocks(half, packed, places));
  }
}

// Calls `each(first row, its values and those after it)` for whole groups of rows, and returns the
// number of these rows.
template <typename T, class Tables, class Each>
HWY_INLINE size_t UnpackGroups(const Tables& tables, uint32_t width, const uint8_t* packed, size_t rows, T base,
                               Each each) {
  const hn::ScalableTag<T> d;
  const hn::Repartition<uint8_t, decltype(d)> d8;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  constexpr size_t kVectors = Tables::kGroup / kLanes;
  constexpr size_t kBlocksEach = kLanes / Tables::kBlockValues;
  hn::Vec<decltype(d8)> bytes[kVectors];
  hn::Vec<decltype(d8)> tails[kVectors];
  hn::Vec<decltype(d)> shifts[kVectors];
  size_t at[kVectors * kBlocksEach];
  for (size_t v = 0; v < kVectors; ++v) {
    bytes[v] = hn::LoadU(d8, tables.bytes[width] + v * kLanes * sizeof(T));
    if constexpr (Tables::kHasTails) tails[v] = hn::LoadU(d8, tables.tails[width] + v * kLanes * sizeof(T));
    shifts[v] = hn::LoadU(d, tables.shifts[width] + v * kLanes);
  }
  for (size_t block = 0; block < kVectors * kBlocksEach; ++block) {
    at[block] = block * Tables::kBlockValues * width / 8;
  }
  const auto mask = hn::Set(d, static_cast<T>(width == 0 ? 0 : static_cast<T>(~T{0}) >> (8 * sizeof(T) - width)));
  const auto add = hn::Set(d, base);
  size_t done = 0;
  for (; done + Tables::kGroup <= rows; packed += Tables::kGroup / 8 * width) {
    for (size_t v = 0; v < kVectors; ++v, done += kLanes) {
      const auto blocks = LoadBlocks(d8, packed, at + v * kBlocksEach);
      auto values = hn::Shr(hn::BitCast(d, hn::TableLookupBytes(blocks, bytes[v])), shifts[v]);
      if constexpr (Tables::kHasTails) {
        const auto high = hn::BitCast(d, hn::TableLookupBytesOr0(blocks, tails[v]));
        values = hn::Or(values, hn::Shl(high, hn::Sub(hn::Set(d, T{8}), shifts[v])));
      }
      each(done, hn::Add(hn::And(values, mask), add));
    }
  }
  return done;
}
#endif

void UnpackU32(const uint8_t* packed, uint32_t width, size_t rows, uint32_t base, uint32_t* out) {
  size_t done = 0;
  width = width < 32 ? width : 32;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint32_t> d;
  const auto store = [&](size_t row, hn::Vec<decltype(d)> values) { hn::StoreU(values, d, out + row); };
  done = width <= kTables32.kWidest ? UnpackGroups(kTables32, width, packed, rows, base, store)
                                    : UnpackGroups(kTables32Wide, width, packed, rows, base, store);
#endif
  for (; done < rows; ++done) {
    out[done] = base + (width == 0 ? 0 : static_cast<uint32_t>(UnpackOne(packed, width, done)));
  }
}

void UnpackU64(const uint8_t* packed, uint32_t width, size_t rows, uint64_t base, uint64_t* out) {
  size_t done = 0;
  width = width < 64 ? width : 64;
#if HWY_TARGET != HWY_SCALAR
  if (width <= kTables64.kWidest) {
    const hn::ScalableTag<uint64_t> d;
    done = UnpackGroups(kTables64, width, packed, rows, base,
                        [&](size_t row, hn::Vec<decltype(d)> values) { hn::StoreU(values, d, out + row); });
  }
#endif
  for (; done < rows; ++done) {
    out[done] = base + (width == 0 ? 0 : UnpackOne(packed, width, done));
  }
}

void Scale(uint64_t* values, size_t rows, uint64_t factor, uint64_t base) {
  for (size_t i = 0; i < rows; ++i) values[i] = values[i] * factor + base;
}

#if HWY_TARGET != HWY_SCALAR
// The sums of all differences so far. `D` has at most four blocks of two lanes. Only one addition
// depends on the vector before; all other work is independent.
template <class D>
class RunningSum {
 public:
  using V = hn::Vec<D>;

  explicit HWY_INLINE RunningSum(uint64_t before) : carry_(hn::Set(D(), before)) {}

  HWY_INLINE V Next(V deltas) {
    const V sums = SumsUpTo(deltas);
    const V numbers = hn::Add(sums, carry_);
    carry_ = hn::Add(carry_, BroadcastLast(sums));
    return numbers;
  }

  HWY_INLINE uint64_t Last() const { return hn::GetLane(carry_); }

 private:
  // The sums of each lane and those below it.
  HWY_INLINE V SumsUpTo(V values) const {
    const D d;
    V sums = hn::Add(values, hn::ShiftLeftLanes<1>(d, values));
    if constexpr (hn::MaxLanes(D()) == 8) {
      // The sum of each block is added to the next block; below, the sums of two blocks are added
      // to the two blocks after them.
      sums = hn::Add(sums, hn::IfThenElseZero(has_block_before_, hn::TableLookupLanes(sums, block_before_)));
    }
    if constexpr (hn::MaxLanes(D()) >= 4) {
      // The last sum of a block goes to both of its lanes.
      sums = hn::Add(sums, hn::DupOdd(hn::ConcatLowerLower(d, sums, hn::Zero(d))));
    }
    return sums;
  }

  // The last lane in all lanes.
  HWY_INLINE V BroadcastLast(V values) const {
    if constexpr (hn::MaxLanes(D()) == 8) {
      return hn::TableLookupLanes(values, last_);
    } else {
      const D d;
      if constexpr (hn::MaxLanes(D()) == 4) values = hn::ConcatUpperUpper(d, values, values);
      return hn::DupOdd(values);
    }
  }

  using Indices = decltype(hn::SetTableIndices(D(), static_cast<const int64_t*>(nullptr)));
  static constexpr int64_t kBlockBefore[8] = {0, 0, 1, 1, 3, 3, 5, 5};
  static constexpr int64_t kLast[8] = {7, 7, 7, 7, 7, 7, 7, 7};

  static HWY_INLINE Indices Table(const int64_t (&lanes)[8]) {
    // Only vectors of eight lanes have a use for it.
    constexpr int64_t kNone[8] = {};
    return hn::SetTableIndices(D(), hn::MaxLanes(D()) == 8 ? lanes : kNone);
  }

  V carry_;
  const Indices block_before_ = Table(kBlockBefore);
  const Indices last_ = Table(kLast);
  const hn::Mask<D> has_block_before_ = hn::Not(hn::FirstN(D(), 2));
};

// A power of ten that divides numbers.
//
// Where a multiplication and an addition round once together, the quotient is made without a division, which takes several
// times as long: q = n / d roughly, by the rounded inverse; r = n - q d, exactly, since d has few bits (5^14 < 2^33) and q is
// wrong by less than two units in its last place; q + r / d, by the inverse again, then is off by less than 2^-51 of a unit
// before it is rounded. It is rounded as the true quotient is, because that never is so near to the middle m of two doubles:
// n has 53 bits and m 54, so n is not m d, and differs from it by one unit of both or more, which is 5^-14 of a unit of m.
template <class DF>
struct Divisor {
  hn::Vec<DF> divisor;
  hn::Vec<DF> inverse;
  bool is_one;

  explicit HWY_INLINE Divisor(double by) : divisor(hn::Set(DF(), by)), inverse(hn::Set(DF(), 1 / by)), is_one(by == 1) {}

  HWY_INLINE hn::Vec<DF> Divide(hn::Vec<DF> number) const {
    if (is_one) return number;
#if HWY_NATIVE_FMA
    const auto quotient = hn::Mul(number, inverse);
    return hn::MulAdd(hn::NegMulAdd(quotient, divisor, number), inverse, quotient);
#else
    return hn::Div(number, divisor);
#endif
  }

  // The bits of the doubles that signed integers over the divisor are.
  template <class DU>
  HWY_INLINE hn::Vec<DU> Bits(DU du, hn::Vec<DU> numbers) const {
    const hn::RebindToSigned<DU> di;
    return hn::BitCast(du, Divide(hn::ConvertTo(DF(), hn::BitCast(di, numbers))));
  }
};
#endif

void SumDeltas(uint64_t* values, size_t rows, uint64_t before) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint64_t> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<uint64_t>());
  RunningSum<decltype(d)> sum(before);
  for (; i + kLanes <= rows; i += kLanes) {
    hn::StoreU(sum.Next(hn::LoadU(d, values + i)), d, values + i);
  }
  before = sum.Last();
#endif
  for (; i < rows; ++i) {
    before += values[i];
    values[i] = before;
  }
}

void UnpackDeltas(const uint8_t* packed, uint32_t width, size_t rows, uint64_t base, uint64_t before, uint64_t* out) {
  size_t done = 0;
  width = width < 64 ? width : 64;
#if HWY_TARGET != HWY_SCALAR
  if (width <= kTables64.kWidest) {
    const hn::ScalableTag<uint64_t> d;
    RunningSum<decltype(d)> sum(before);
    done = UnpackGroups(kTables64, width, packed, rows, base, [&](size_t row, hn::Vec<decltype(d)> deltas) {
      hn::StoreU(sum.Next(deltas), d, out + row);
    });
    before = sum.Last();
  }
#endif
  for (; done < rows; ++done) {
    before += base + (width == 0 ? 0 : UnpackOne(packed, width, done));
    out[done] = before;
  }
}

void DecimalsToDoubles(uint64_t* values, size_t rows, double divisor) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint64_t> d;
  const Divisor<hn::ScalableTag<double>> by(divisor);
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<uint64_t>());
  for (; i + kLanes <= rows; i += kLanes) {
    hn::StoreU(by.Bits(d, hn::LoadU(d, values + i)), d, values + i);
  }
#endif
  for (; i < rows; ++i) values[i] = DecimalBits(values[i], divisor);
}

void UnpackDecimals(const uint8_t* packed, uint32_t width, size_t rows, uint64_t base, double divisor, uint64_t* out) {
  size_t done = 0;
  width = width < 64 ? width : 64;
#if HWY_TARGET != HWY_SCALAR
  if (width <= kTables64.kWidest) {
    const hn::ScalableTag<uint64_t> d;
    const Divisor<hn::ScalableTag<double>> by(divisor);
    done = UnpackGroups(kTables64, width, packed, rows, base, [&](size_t row, hn::Vec<decltype(d)> numbers) {
      hn::StoreU(by.Bits(d, numbers), d, out + row);
    });
  }
#endif
  for (; done < rows; ++done) {
    out[done] = DecimalBits(base + (width == 0 ? 0 : UnpackOne(packed, width, done)), divisor);
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
HWY_EXPORT(UnpackDeltas);
HWY_EXPORT(DecimalsToDoubles);
HWY_EXPORT(UnpackDecimals);

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
void unpack_deltas(const uint8_t* packed, uint32_t width, size_t rows, uint64_t base, uint64_t before,
                   uint64_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(UnpackDeltas)(packed, width, rows, base, before, out);
}
void unpack_decimals(const uint8_t* packed, uint32_t width, size_t rows, uint64_t base, double divisor,
                     uint64_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(UnpackDecimals)(packed, width, rows, base, divisor, out);
}

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
