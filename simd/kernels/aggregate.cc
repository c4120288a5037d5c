// Sums and magnitudes. The extremes are in extremes-inl.h.

#include "kernels/aggregate.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/aggregate.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/stripes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::TFromD<D> TotalOf(D d, hn::Vec<D> vector) {
  alignas(64) hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(vector, d, lanes);
  hn::TFromD<D> total = 0;
  for (size_t i = 0; i < hn::MaxLanes(D()); ++i) total += lanes[i];
  return total;
}

// int32 and uint32 are widened before they are added. Rows are masked most cheaply on whole
// vectors, so the even and the odd lanes are added separately, as unsigned numbers. The sign bit of
// int32 is flipped, which adds 2^31 to each selected value.
template <typename T>
struct WideSum {
  using D = hn::ScalableTag<int64_t>;
  using Narrow = hn::Rebind<T, D>;
  static constexpr size_t kLanes = hn::MaxLanes(D());
  static constexpr size_t kVectors = 4;

  HWY_INLINE WideSum() {
    for (size_t k = 0; k < kVectors; ++k) sums[k] = hn::Zero(D());
  }
  static HWY_INLINE hn::Vec<D> Widen(hn::Vec<Narrow> narrow) {
    const hn::Rebind<std::conditional_t<hwy::IsSigned<T>(), int64_t, uint64_t>, D> wide;
    return hn::BitCast(D(), hn::PromoteTo(wide, narrow));
  }
  HWY_INLINE void All(const Values<T>& values, size_t at) {
    for (size_t i = 0; i < kWordRows; i += kVectors * kLanes) {
      for (size_t k = 0; k < kVectors; ++k) {
        sums[k] = hn::Add(sums[k], Widen(values.Load(Narrow(), at + i + k * kLanes)));
      }
    }
  }
  HWY_INLINE void Some(const Values<T>& values, size_t at, uint64_t word) {
#if HWY_TARGET == HWY_SCALAR
    for (size_t i = 0; i < kWordRows; ++i) {
      const auto value = hn::IfThenElseZero(MaskAt(Narrow(), word, i), values.Load(Narrow(), at + i));
      sums[0] = hn::Add(sums[0], Widen(value));
    }
#else
    const hn::ScalableTag<uint32_t> d;
    const hn::ScalableTag<uint64_t> wide;
    for (size_t i = 0; i < kWordRows; i += 2 * kLanes) {
      auto value = hn::BitCast(d, values.Load(hn::ScalableTag<T>(), at + i));
      if constexpr (hwy::IsSigned<T>()) value = hn::Xor(value, hn::Set(d, uint32_t{1} << 31));
      const auto pair = hn::BitCast(wide, hn::IfThenElseZero(MaskAt(d, word, i), value));
      const auto even = hn::And(pair, hn::Set(wide, uint64_t{0xFFFFFFFF}));
      const size_t k = i / kLanes % kVectors;
      sums[k] = hn::Add(sums[k], hn::BitCast(D(), even));
      sums[k + 1] = hn::Add(sums[k + 1], hn::BitCast(D(), hn::ShiftRight<32>(pair)));
    }
    if (hwy::IsSigned<T>()) flipped += __builtin_popcountll(word);
#endif
  }
  HWY_INLINE int64_t Total() const {
    return TotalOf(D(), hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))) - (flipped << 31);
  }
  hn::Vec<D> sums[kVectors];
  int64_t flipped = 0;
};

// int16: pairs are added into int32 lanes, which are emptied before they can overflow.
struct ShortSum {
  using D = hn::ScalableTag<int16_t>;
#if HWY_TARGET == HWY_SCALAR
  using Wide = hn::ScalableTag<int32_t>;
#else
  using Wide = hn::RepartitionToWide<D>;
#endif
  static constexpr size_t kLanes = hn::MaxLanes(D());
  // An int32 lane takes at most 64 int16 values a block.
  static constexpr size_t kBlocksMax = (size_t{1} << 31) / (size_t{1} << 15) / kWordRows - 1;

  HWY_INLINE ShortSum() { Clear(); }
  HWY_INLINE void Clear() {
    first = hn::Zero(Wide());
    second = hn::Zero(Wide());
    blocks = 0;
  }
  HWY_INLINE void Flush() {
    total += Sum(first) + Sum(second);
    Clear();
  }
  static HWY_INLINE int64_t Sum(hn::Vec<Wide> vector) {
    alignas(64) int32_t lanes[hn::MaxLanes(Wide())];
    hn::Store(vector, Wide(), lanes);
    int64_t sum = 0;
    for (size_t i = 0; i < hn::MaxLanes(Wide()); ++i) sum += lanes[i];
    return sum;
  }
  HWY_INLINE void All(const Values<int16_t>& values, size_t at) {
    for (size_t i = 0; i < kWordRows; i += kLanes) Add(values.Load(D(), at + i));
    if (++blocks == kBlocksMax) Flush();
  }
  HWY_INLINE void Some(const Values<int16_t>& values, size_t at, uint64_t word) {
    for (size_t i = 0; i < kWordRows; i += kLanes) {
      Add(hn::IfThenElseZero(MaskAt(D(), word, i), values.Load(D(), at + i)));
    }
    if (++blocks == kBlocksMax) Flush();
  }
  HWY_INLINE void Add(hn::Vec<D> vector) {
    first = hn::ReorderWidenMulAccumulate(Wide(), vector, hn::Set(D(), int16_t{1}), first, second);
  }
  HWY_INLINE int64_t Total() {
    Flush();
    return total;
  }
  hn::Vec<Wide> first;
  hn::Vec<Wide> second;
  size_t blocks = 0;
  int64_t total = 0;
};

// int64: the low and the high halves are summed separately, the high ones with the sign bit flipped
// so that they are unsigned.
struct SplitSum {
  using D = hn::ScalableTag<uint64_t>;
  static constexpr size_t kLanes = hn::MaxLanes(D());
  static constexpr size_t kVectors = 2 * kLanes <= kWordRows ? 2 : 1;

  HWY_INLINE SplitSum() {
    for (size_t k = 0; k < kVectors; ++k) lows[k] = highs[k] = hn::Zero(D());
  }
  HWY_INLINE void Add(size_t k, hn::Vec<D> value) {
    lows[k] = hn::Add(lows[k], hn::And(value, hn::Set(D(), uint64_t{0xFFFFFFFF})));
    highs[k] = hn::Add(highs[k], hn::ShiftRight<32>(hn::Xor(value, hn::Set(D(), uint64_t{1} << 63))));
  }
  static HWY_INLINE hn::Vec<D> Load(const Values<int64_t>& values, size_t at) {
    return hn::BitCast(D(), values.Load(hn::ScalableTag<int64_t>(), at));
  }
  HWY_INLINE void All(const Values<int64_t>& values, size_t at) {
    for (size_t i = 0; i < kWordRows; i += kVectors * kLanes) {
      for (size_t k = 0; k < kVectors; ++k) Add(k, Load(values, at + i + k * kLanes));
    }
    ++blocks;
  }
  HWY_INLINE void Some(const Values<int64_t>& values, size_t at, uint64_t word) {
    for (size_t i = 0; i < kWordRows; i += kVectors * kLanes) {
      for (size_t k = 0; k < kVectors; ++k) {
        const size_t row = i + k * kLanes;
        Add(k, hn::IfThenElseZero(MaskAt(D(), word, row), Load(values, at + row)));
      }
    }
    ++blocks;
  }
  HWY_INLINE uint64_t Total(int64_t* high) const {
    auto low = lows[0];
    auto unsigned_high = highs[0];
    for (size_t k = 1; k < kVectors; ++k) {
      low = hn::Add(low, lows[k]);
      unsigned_high = hn::Add(unsigned_high, highs[k]);
    }
    // Each lane of each block, selected or not, had its sign flipped: 2^63, of which the high half is 2^31.
    *high = static_cast<int64_t>(TotalOf(D(), unsigned_high) - blocks * kWordRows * (uint64_t{1} << 31));
    return TotalOf(D(), low);
  }
  hn::Vec<D> lows[kVectors];
  hn::Vec<D> highs[kVectors];
  uint64_t blocks = 0;
};

template <class Sum, typename T>
HWY_INLINE void SumInto(Sum& sum, const T* data, size_t rows, const uint64_t* selection) {
  Values<T> values(data);
  VisitBlocks(
      rows, selection, [&](size_t at) HWY_ATTR { sum.All(values, at); },
      [&](size_t at, uint64_t word) HWY_ATTR { sum.Some(values, at, word); },
      [&](size_t at, size_t rest) HWY_ATTR { values.Tail(at, rest); });
}

int64_t SumI16(const int16_t* values, size_t rows, const uint64_t* selection) {
  ShortSum sum;
  SumInto(sum, values, rows, selection);
  return sum.Total();
}
int64_t SumI32(const int32_t* values, size_t rows, const uint64_t* selection) {
  WideSum<int32_t> sum;
  SumInto(sum, values, rows, selection);
  return sum.Total();
}
int64_t SumU32(const uint32_t* values, size_t rows, const uint64_t* selection) {
  WideSum<uint32_t> sum;
  SumInto(sum, values, rows, selection);
  return sum.Total();
}
uint64_t SumI64(const int64_t* values, size_t rows, const uint64_t* selection, int64_t* high) {
  SplitSum sum;
  SumInto(sum, values, rows, selection);
  return sum.Total(high);
}

float SumF32(const float* values, size_t rows, const uint64_t* selection) {
  return StripedSum<float>(Values<float>(values), rows, selection);
}
double SumF64(const double* values, size_t rows, const uint64_t* selection) {
  return StripedSum<double>(Values<double>(values), rows, selection);
}
double SumWide(const float* values, size_t rows, const uint64_t* selection) {
  return StripedSum<double>(WideValues(values), rows, selection);
}
double SumSquares(const double* values, size_t rows, const uint64_t* selection) {
  return StripedSum<double>(Squares<Values<double>>(values), rows, selection);
}
double SumSquaresWide(const float* values, size_t rows, const uint64_t* selection) {
  return StripedSum<double>(Squares<WideValues>(values), rows, selection);
}
double SumSquaredDeviations(const double* values, size_t rows, const uint64_t* selection, double center) {
  return StripedSum<double>(SquaredDeviations(values, center), rows, selection);
}
double SumProducts(const double* left, const double* right, size_t rows, const uint64_t* selection) {
  return StripedSum<double>(Products<double>(left, right), rows, selection);
}

// Stripes of a lane, all of whose values, selected or not, are compared with a bound on the way.
template <typename Sum, class Reader>
struct SumWithin {
  using S = Stripes<Sum>;
  using D = typename S::D;

  SumWithin(Reader first, Sum bound) : reader(first), limit(hn::Set(D(), bound)), within(hn::Eq(limit, limit)) {}

  template <bool kAll>
  HWY_INLINE void Block(size_t at, uint64_t word) {
    for (size_t i = 0; i < kWordRows; i += kStripes) {
      for (size_t k = 0; k < S::kVectors; ++k) {
        const size_t row = i + k * S::kLanes;
        const auto value = reader.Load(D(), at + row);
        within = hn::And(within, hn::Le(hn::Abs(value), limit));
        const auto counted = kAll ? value : hn::IfThenElse(MaskAt(D(), word, row), value, S::Nothing());
        stripes.sums[k] = hn::Add(stripes.sums[k], counted);
      }
    }
  }
  HWY_INLINE void Tail(size_t at, size_t rows) { reader.Tail(at, rows); }
  HWY_INLINE bool Good() const { return hn::AllTrue(D(), within); }

  Reader reader;
  hn::Vec<D> limit;
  hn::Mask<D> within;
  S stripes;
};

// The sums of weights and of their products with values.
struct WeightedWithin {
  using S = Stripes<double>;
  using D = S::D;

  WeightedWithin(const double* v, const double* w, double bound)
      : values(v), weights(w), limit(hn::Set(D(), bound)), within(hn::Eq(limit, limit)) {}

  template <bool kAll>
  HWY_INLINE void Block(size_t at, uint64_t word) {
    const auto zero = hn::Zero(D());
    auto zeros = hn::Ne(zero, zero);
    for (size_t i = 0; i < kWordRows; i += kStripes) {
      for (size_t k = 0; k < S::kVectors; ++k) {
        const size_t row = i + k * S::kLanes;
        const auto value = values.Load(D(), at + row);
        const auto weight = weights.Load(D(), at + row);
        const auto product = hn::Mul(value, weight);
        within = hn::And(within, hn::And(hn::Le(hn::Abs(value), limit), hn::Le(hn::Abs(weight), limit)));
        zeros = hn::Or(zeros, hn::Eq(product, zero));
        if constexpr (kAll) {
          products.sums[k] = hn::Add(products.sums[k], product);
          totals.sums[k] = hn::Add(totals.sums[k], weight);
        } else {
          const auto mask = MaskAt(D(), word, row);
          products.sums[k] = hn::Add(products.sums[k], hn::IfThenElse(mask, product, S::Nothing()));
          totals.sums[k] = hn::Add(totals.sums[k], hn::IfThenElse(mask, weight, S::Nothing()));
        }
      }
    }
    // Most zeros are products of zeros.
    if (!hn::AllFalse(D(), zeros)) vanishes |= Vanishes(at, word);
  }
  // Whether a selected product is zero without one of its factors being so.
  HWY_INLINE bool Vanishes(size_t at, uint64_t word) const {
    const auto zero = hn::Zero(D());
    bool any = false;
    for (size_t i = 0; i < kWordRows; i += S::kLanes) {
      const auto value = values.Load(D(), at + i);
      const auto weight = weights.Load(D(), at + i);
      const auto factors = hn::And(hn::Ne(value, zero), hn::Ne(weight, zero));
      const auto vanished = hn::And(hn::Eq(hn::Mul(value, weight), zero), factors);
      any |= !hn::AllFalse(D(), hn::And(MaskAt(D(), word, i), vanished));
    }
    return any;
  }
  HWY_INLINE void Tail(size_t at, size_t rows) {
    values.Tail(at, rows);
    weights.Tail(at, rows);
  }
  HWY_INLINE bool Good() const { return hn::AllTrue(D(), within) && !vanishes; }

  Values<double> values;
  Values<double> weights;
  hn::Vec<D> limit;
  hn::Mask<D> within;
  bool vanishes = false;
  S products;
  S totals;
};

// Passes every block to a sum, including blocks without a selected row.
template <class Within>
HWY_INLINE void VisitWithin(Within& sum, size_t rows, const uint64_t* selection) {
  const size_t whole = rows / kWordRows;
  const size_t rest = rows % kWordRows;
  for (size_t block = 0; block < whole; ++block) {
    const uint64_t word = selection == nullptr ? kAllRows : selection[block];
    if (word == kAllRows) {
      sum.template Block<true>(block * kWordRows, word);
    } else {
      sum.template Block<false>(block * kWordRows, word);
    }
  }
  if (rest == 0) return;
  sum.Tail(whole * kWordRows, rest);
  sum.template Block<false>(0, (selection == nullptr ? kAllRows : selection[whole]) & TailMask(rest));
}

template <typename Sum, class Reader>
HWY_INLINE bool StripedSumWithin(Reader reader, size_t rows, const uint64_t* selection, Sum bound, Sum* out) {
  SumWithin<Sum, Reader> sum(reader, bound);
  VisitWithin(sum, rows, selection);
  *out = sum.stripes.Total();
  return sum.Good();
}

bool SumWithinF32(const float* values, size_t rows, const uint64_t* selection, float bound, float* sum) {
  return StripedSumWithin<float>(Values<float>(values), rows, selection, bound, sum);
}
bool SumWithinF64(const double* values, size_t rows, const uint64_t* selection, double bound, double* sum) {
  return StripedSumWithin<double>(Values<double>(values), rows, selection, bound, sum);
}
bool SumWideWithin(const float* values, size_t rows, const uint64_t* selection, float bound, double* sum) {
  return StripedSumWithin<double>(WideValues(values), rows, selection, bound, sum);
}

bool WeightedSumsWithin(const double* values, const double* weights, size_t rows, const uint64_t* selection, double bound,
                        double* products_sum, double* weights_sum) {
  WeightedWithin sum(values, weights, bound);
  VisitWithin(sum, rows, selection);
  *products_sum = sum.products.Total();
  *weights_sum = sum.totals.Total();
  return sum.Good();
}

template <typename T>
HWY_INLINE bool MagnitudeWithin(const T* data, size_t rows, T bound) {
  const hn::ScalableTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  const auto limit = hn::Set(d, bound);
  Values<T> values(data);
  const auto within = [&](size_t at) HWY_ATTR {
    auto all = hn::Le(hn::Abs(values.Load(d, at)), limit);
    for (size_t i = kLanes; i < kWordRows; i += kLanes) {
      all = hn::And(all, hn::Le(hn::Abs(values.Load(d, at + i)), limit));
    }
    return hn::AllTrue(d, all);
  };
  const size_t whole = rows / kWordRows;
  for (size_t block = 0; block < whole; ++block) {
    if (!within(block * kWordRows)) return false;
  }
  for (size_t row = whole * kWordRows; row < rows; ++row) {
    if (!(data[row] <= bound && data[row] >= -bound)) return false;
  }
  return true;
}

bool MagnitudeWithinF32(const float* values, size_t rows, float bound) { return MagnitudeWithin(values, rows, bound); }
bool MagnitudeWithinF64(const double* values, size_t rows, double bound) { return MagnitudeWithin(values, rows, bound); }

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanes {
namespace simd {

HWY_EXPORT(SumI16);
HWY_EXPORT(SumI32);
HWY_EXPORT(SumU32);
HWY_EXPORT(SumI64);
HWY_EXPORT(SumF32);
HWY_EXPORT(SumF64);
HWY_EXPORT(SumWide);
HWY_EXPORT(SumSquares);
HWY_EXPORT(SumSquaresWide);
HWY_EXPORT(SumSquaredDeviations);
HWY_EXPORT(SumProducts);
HWY_EXPORT(SumWithinF32);
HWY_EXPORT(SumWithinF64);
HWY_EXPORT(SumWideWithin);
HWY_EXPORT(WeightedSumsWithin);
HWY_EXPORT(MagnitudeWithinF32);
HWY_EXPORT(MagnitudeWithinF64);

int64_t sum(const int16_t* values, size_t rows, const uint64_t* selection) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumI16)(values, rows, selection);
}
int64_t sum(const int32_t* values, size_t rows, const uint64_t* selection) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumI32)(values, rows, selection);
}
int64_t sum(const uint32_t* values, size_t rows, const uint64_t* selection) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumU32)(values, rows, selection);
}
uint64_t sum_split(const int64_t* values, size_t rows, const uint64_t* selection, int64_t* high) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumI64)(values, rows, selection, high);
}
float sum(const float* values, size_t rows, const uint64_t* selection) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumF32)(values, rows, selection);
}
double sum(const double* values, size_t rows, const uint64_t* selection) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumF64)(values, rows, selection);
}
double sum_wide(const float* values, size_t rows, const uint64_t* selection) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumWide)(values, rows, selection);
}
double sum_squares(const double* values, size_t rows, const uint64_t* selection) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumSquares)(values, rows, selection);
}
double sum_squares_wide(const float* values, size_t rows, const uint64_t* selection) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumSquaresWide)(values, rows, selection);
}
double sum_squared_deviations(const double* values, size_t rows, const uint64_t* selection, double center) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumSquaredDeviations)(values, rows, selection, center);
}
double sum_products(const double* left, const double* right, size_t rows, const uint64_t* selection) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumProducts)(left, right, rows, selection);
}
bool sum_within(const float* values, size_t rows, const uint64_t* selection, float bound, float* sum) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumWithinF32)(values, rows, selection, bound, sum);
}
bool sum_within(const double* values, size_t rows, const uint64_t* selection, double bound, double* sum) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumWithinF64)(values, rows, selection, bound, sum);
}
bool sum_wide_within(const float* values, size_t rows, const uint64_t* selection, float bound, double* sum) noexcept {
  return HWY_DYNAMIC_DISPATCH(SumWideWithin)(values, rows, selection, bound, sum);
}
bool weighted_sums_within(const double* values, const double* weights, size_t rows, const uint64_t* selection, double bound,
                          double* products_sum, double* weights_sum) noexcept {
  return HWY_DYNAMIC_DISPATCH(WeightedSumsWithin)(values, weights, rows, selection, bound, products_sum, weights_sum);
}
bool magnitude_within(const float* values, size_t rows, float bound) noexcept {
  return HWY_DYNAMIC_DISPATCH(MagnitudeWithinF32)(values, rows, bound);
}
bool magnitude_within(const double* values, size_t rows, double bound) noexcept {
  return HWY_DYNAMIC_DISPATCH(MagnitudeWithinF64)(values, rows, bound);
}

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
