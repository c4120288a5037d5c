// The least and the greatest value. The fast pass orders values and knows nothing of the bits that equal floats may differ
// in, nor whether its answer is a value or only where it began; the few answers in doubt (an identity, a zero, a NaN) are
// settled by looking from the end for the last row that has it.

#if defined(LANES_SIMD_EXTREMES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LANES_SIMD_EXTREMES_INL_H_
#undef LANES_SIMD_EXTREMES_INL_H_
#else
#define LANES_SIMD_EXTREMES_INL_H_
#endif

#include <limits>

#include "kernels/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

// Where the search begins, and what a row that is not selected counts as. For the least of floats, also what NaN counts as.
template <typename T, bool kGreatest>
constexpr T Identity() {
  using Limits = std::numeric_limits<T>;
  if constexpr (hwy::IsFloat<T>()) return kGreatest ? -Limits::infinity() : Limits::infinity();
  return kGreatest ? Limits::min() : Limits::max();
}

template <typename T, bool kGreatest>
struct Extreme {
  using D = hn::ScalableTag<T>;
  static constexpr size_t kLanes = hn::MaxLanes(D());
  static constexpr size_t kVectors = 4 * kLanes <= kWordRows ? 4 : kWordRows / kLanes;
  // NaN is the greatest value, so the maximum must detect it. A sum of values is the cheapest sign
  // of a NaN.
  static constexpr bool kLooksForNan = kGreatest && hwy::IsFloat<T>();

  HWY_INLINE Extreme() {
    for (size_t k = 0; k < kVectors; ++k) {
      best[k] = hn::Set(D(), Identity<T, kGreatest>());
      if constexpr (kLooksForNan) sums[k] = hn::Zero(D());
    }
  }
  HWY_INLINE void Take(size_t k, hn::Vec<D> value) {
    if constexpr (hwy::IsFloat<T>()) {
      // A NaN is neither less nor greater, so it is never taken.
      const auto better = kGreatest ? hn::Gt(value, best[k]) : hn::Lt(value, best[k]);
      best[k] = hn::IfThenElse(better, value, best[k]);
    } else {
      best[k] = kGreatest ? hn::Max(best[k], value) : hn::Min(best[k], value);
    }
  }
  HWY_INLINE void All(const Values<T>& values, size_t at) {
    for (size_t i = 0; i < kWordRows; i += kVectors * kLanes) {
      for (size_t k = 0; k < kVectors; ++k) {
        const auto value = values.Load(D(), at + i + k * kLanes);
        Take(k, value);
        if constexpr (kLooksForNan) sums[k] = hn::Add(sums[k], value);
      }
    }
  }
  HWY_INLINE void Some(const Values<T>& values, size_t at, uint64_t word) {
    const auto identity = hn::Set(D(), Identity<T, kGreatest>());
    for (size_t i = 0; i < kWordRows; i += kVectors * kLanes) {
      for (size_t k = 0; k < kVectors; ++k) {
        const size_t row = i + k * kLanes;
        const auto value = values.Load(D(), at + row);
        const auto mask = MaskAt(D(), word, row);
        Take(k, hn::IfThenElse(mask, value, identity));
        if constexpr (kLooksForNan) sums[k] = hn::Add(sums[k], hn::IfThenElseZero(mask, value));
      }
    }
  }
  HWY_INLINE T Best() const {
    T answer = Identity<T, kGreatest>();
    for (size_t k = 0; k < kVectors; ++k) {
      alignas(64) T lanes[kLanes];
      hn::Store(best[k], D(), lanes);
      for (size_t i = 0; i < kLanes; ++i) {
        if (kGreatest ? lanes[i] > answer : lanes[i] < answer) answer = lanes[i];
      }
    }
    return answer;
  }
  // Whether there may be a NaN. A sum with a NaN is NaN; so are sums of both infinities, and of
  // overflows to them.
  HWY_INLINE bool MayHaveNan() const {
    auto any = hn::IsNaN(sums[0]);
    for (size_t k = 1; k < kVectors; ++k) any = hn::Or(any, hn::IsNaN(sums[k]));
    return !hn::AllFalse(D(), any);
  }
  hn::Vec<D> best[kVectors];
  hn::Vec<D> sums[kVectors];
};

template <typename T, bool kGreatest>
HWY_INLINE bool ExtremeOf(const T* data, size_t rows, const uint64_t* selection, T* out) {
  Extreme<T, kGreatest> extreme;
  Values<T> values(data);
  VisitBlocks(
      rows, selection, [&](size_t at) HWY_ATTR { extreme.All(values, at); },
      [&](size_t at, uint64_t word) HWY_ATTR { extreme.Some(values, at, word); },
      [&](size_t at, size_t rest) HWY_ATTR { values.Tail(at, rest); });
  const T best = extreme.Best();
  const T identity = Identity<T, kGreatest>();
  size_t row = rows;
  if constexpr (hwy::IsFloat<T>()) {
    const auto last_nan = [=]() HWY_ATTR {
      return LastRow(rows, selection, [=](size_t i) HWY_ATTR { return data[i] != data[i]; });
    };
    if constexpr (kGreatest) {
      if (extreme.MayHaveNan()) row = last_nan();
    }
    if (row == rows) {
      if (best != identity && best != 0) {
        *out = best;
        return true;
      }
      row = LastRow(rows, selection, [=](size_t i) HWY_ATTR { return data[i] == best; });
    }
    if (row == rows) row = last_nan();
  } else {
    if (best != identity) {
      *out = best;
      return true;
    }
    row = LastRow(rows, selection, [](size_t) HWY_ATTR { return true; });
    if (row != rows) {
      *out = identity;
      return true;
    }
  }
  if (row == rows) return false;
  *out = data[row];
  return true;
}

// `value` unless `best` is better. Floats are compared as vectors of one lane, because the compiler
// makes branches of plain C++.
template <typename T, bool kGreatest>
HWY_INLINE T Better(T best, T value) {
  if constexpr (hwy::IsFloat<T>()) {
    const hn::CappedTag<T, 1> d;
    const auto old = hn::Set(d, best);
    const auto candidate = hn::Set(d, value);
    const auto no_worse = kGreatest ? hn::Le(old, candidate) : hn::Le(candidate, old);
    const auto nan = hn::IsNaN(kGreatest ? candidate : old);
    return hn::GetLane(hn::IfThenElse(hn::Or(no_worse, nan), candidate, old));
  } else {
    return (kGreatest ? value < best : best < value) ? best : value;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#endif  // LANES_SIMD_EXTREMES_INL_H_
