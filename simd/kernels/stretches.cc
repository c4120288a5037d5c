#include "kernels/stretches.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stretches.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/extremes-inl.h"
#include "kernels/stripes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

template <typename T>
HWY_INLINE size_t CutStretches(const T* values, size_t rows, size_t most, uint32_t* starts) {
  if (rows == 0) return 0;
  if (most == 0) return 1;
  starts[0] = 0;
  size_t stretches = 1;
  const hn::ScalableTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  size_t row = 1;
  // Bit i says whether row + i begins a stretch.
  for (; row + kWordRows <= rows; row += kWordRows) {
    uint64_t edges = 0;
    for (size_t i = 0; i < kWordRows; i += kLanes) {
      const auto before = hn::LoadU(d, values + row + i - 1);
      edges |= BitsOf(d, hn::Ne(hn::LoadU(d, values + row + i), before)) << i;
    }
    if (edges == 0) continue;
    if (stretches + static_cast<size_t>(__builtin_popcountll(edges)) > most) return most + 1;
    for (; edges != 0; edges &= edges - 1) {
      starts[stretches++] = static_cast<uint32_t>(row) + static_cast<uint32_t>(__builtin_ctzll(edges));
    }
  }
  for (; row < rows; ++row) {
    if (values[row] == values[row - 1]) continue;
    if (stretches == most) return most + 1;
    starts[stretches++] = static_cast<uint32_t>(row);
  }
  return stretches;
}

size_t CutStretchesU16(const uint16_t* values, size_t rows, size_t most, uint32_t* starts) {
  return CutStretches(values, rows, most, starts);
}
size_t CutStretchesU32(const uint32_t* values, size_t rows, size_t most, uint32_t* starts) {
  return CutStretches(values, rows, most, starts);
}
size_t CutStretchesU64(const uint64_t* values, size_t rows, size_t most, uint32_t* starts) {
  return CutStretches(values, rows, most, starts);
}

size_t CountWithin(const int64_t* values, size_t rows, int64_t low, int64_t high) {
  const hn::ScalableTag<int64_t> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<int64_t>());
  constexpr size_t kStep = 4 * kLanes;
  const auto least = hn::Set(d, low);
  const auto greatest = hn::Set(d, high);
  size_t row = 0;
  for (; row + kStep <= rows; row += kStep) {
    uint64_t beyond = 0;
    for (size_t i = 0; i < kStep; i += kLanes) {
      const auto value = hn::LoadU(d, values + row + i);
      beyond |= BitsOf(d, hn::Or(hn::Lt(value, least), hn::Lt(greatest, value))) << i;
    }
    if (beyond != 0) return row + static_cast<size_t>(__builtin_ctzll(beyond));
  }
  while (row < rows && low <= values[row] && values[row] <= high) ++row;
  return row;
}

// Blocks of as many rows as there are stripes: stretches are short, so whole words would mostly be masked.
template <typename T, class Reader>
HWY_INLINE void StretchSums(const Reader& lane, const uint64_t* selection, const uint32_t* starts, size_t stretches, T* sums) {
  constexpr uint64_t kBlock = (uint64_t{1} << kStripes) - 1;
  const size_t rows = starts[stretches];
  const size_t whole = rows / kStripes * kStripes;
  for (size_t stretch = 0; stretch < stretches; ++stretch) {
    const size_t from = starts[stretch];
    const size_t to = starts[stretch + 1];
    Stripes<T> stripes;
    const auto some = [&](const Reader& reader, size_t at, size_t place) HWY_ATTR {
      uint64_t word = kBlock;
      if (place < from) word &= word << (from - place);
      if (to - place < kStripes) word &= TailMask(to - place);
      if (selection != nullptr) word &= selection[place / kWordRows] >> (place % kWordRows);
      stripes.SomeOfBlock(reader, at, word & kBlock);
    };
    size_t at = from / kStripes * kStripes;
    if (at < from && at < whole && at < to) {
      some(lane, at, at);
      at += kStripes;
    }
    if (selection == nullptr) {
      for (; at + kStripes <= to; at += kStripes) stripes.Block(lane, at);
    }
    for (; at < to && at < whole; at += kStripes) some(lane, at, at);
    if (at < to) {
      Reader tail = lane;
      tail.Tail(at, rows - at);
      some(tail, 0, at);
    }
    sums[stretch] = stripes.Total();
  }
}

void StretchSumsF32(const float* values, const uint64_t* selection, const uint32_t* starts, size_t stretches, float* sums) {
  StretchSums(Values<float>(values), selection, starts, stretches, sums);
}
void StretchSumsF64(const double* values, const uint64_t* selection, const uint32_t* starts, size_t stretches, double* sums) {
  StretchSums(Values<double>(values), selection, starts, stretches, sums);
}
void StretchSumsWide(const float* values, const uint64_t* selection, const uint32_t* starts, size_t stretches, double* sums) {
  StretchSums(WideValues(values), selection, starts, stretches, sums);
}

// Short stretches: one row after the other, but the rows of a stretch wait for no memory, nor for the stretch before.
template <typename T, bool kGreatest>
HWY_INLINE void StretchExtreme(const T* values, const uint32_t* starts, const uint32_t* groups, size_t stretches, T* best) {
  for (size_t stretch = 0; stretch < stretches; ++stretch) {
    T extreme = best[groups[stretch]];
    for (size_t i = starts[stretch]; i < starts[stretch + 1]; ++i) extreme = Better<T, kGreatest>(extreme, values[i]);
    best[groups[stretch]] = extreme;
  }
}

#define LANES_DEFINE(T, Suffix)                                                                                           \
  void StretchMinimum##Suffix(const T* values, const uint32_t* starts, const uint32_t* groups, size_t stretches, T* best) {        \
    StretchExtreme<T, false>(values, starts, groups, stretches, best);                                                             \
  }                                                                                                                       \
  void StretchMaximum##Suffix(const T* values, const uint32_t* starts, const uint32_t* groups, size_t stretches, T* best) {        \
    StretchExtreme<T, true>(values, starts, groups, stretches, best);                                                              \
  }
LANES_NUMBERS(LANES_DEFINE)
#undef LANES_DEFINE

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanes {
namespace simd {

#define LANES_DISPATCH(T, Suffix)                                                                      \
  HWY_EXPORT(CutStretches##Suffix);                                                                         \
  size_t cut_stretches(const T* values, size_t rows, size_t most, uint32_t* starts) noexcept {              \
    return HWY_DYNAMIC_DISPATCH(CutStretches##Suffix)(values, rows, most, starts);                          \
  }
LANES_DISPATCH(uint16_t, U16)
LANES_DISPATCH(uint32_t, U32)
LANES_DISPATCH(uint64_t, U64)
#undef LANES_DISPATCH

HWY_EXPORT(CountWithin);
size_t count_within(const int64_t* values, size_t rows, int64_t low, int64_t high) noexcept {
  return HWY_DYNAMIC_DISPATCH(CountWithin)(values, rows, low, high);
}

#define LANES_DISPATCH(name, Function, T, Sum)                                                             \
  HWY_EXPORT(Function);                                                                                    \
  void name(const T* values, const uint64_t* selection, const uint32_t* starts, size_t stretches, Sum* sums) noexcept { \
    HWY_DYNAMIC_DISPATCH(Function)(values, selection, starts, stretches, sums);                                 \
  }
LANES_DISPATCH(stretch_sums, StretchSumsF32, float, float)
LANES_DISPATCH(stretch_sums, StretchSumsF64, double, double)
LANES_DISPATCH(stretch_sums_wide, StretchSumsWide, float, double)
#undef LANES_DISPATCH

#define LANES_DISPATCH(T, Suffix)                                                                                          \
  HWY_EXPORT(StretchMinimum##Suffix);                                                                                         \
  HWY_EXPORT(StretchMaximum##Suffix);                                                                                         \
  void stretch_minimum(const T* values, const uint32_t* starts, const uint32_t* groups, size_t stretches, T* best) noexcept {      \
    HWY_DYNAMIC_DISPATCH(StretchMinimum##Suffix)(values, starts, groups, stretches, best);                                         \
  }                                                                                                                       \
  void stretch_maximum(const T* values, const uint32_t* starts, const uint32_t* groups, size_t stretches, T* best) noexcept {      \
    HWY_DYNAMIC_DISPATCH(StretchMaximum##Suffix)(values, starts, groups, stretches, best);                                         \
  }
LANES_NUMBERS(LANES_DISPATCH)
#undef LANES_DISPATCH

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
