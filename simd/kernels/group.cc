#include "kernels/group.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/group.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/extremes-inl.h"
#include "kernels/stripes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

// Bit i is set if row i + 1 is of another group than row i, for the 63 pairs of a block. The last
// vector overlaps the one before it, so that no row past the block is read.
HWY_INLINE uint64_t Edges(const uint32_t* groups) {
  const hn::ScalableTag<uint32_t> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<uint32_t>());
  constexpr size_t kLast = kWordRows - 1 - kLanes;
  uint64_t edges = 0;
  for (size_t i = 0; i < kLast; i += kLanes) {
    edges |= BitsOf(d, hn::Ne(hn::LoadU(d, groups + i), hn::LoadU(d, groups + i + 1))) << i;
  }
  return edges | BitsOf(d, hn::Ne(hn::LoadU(d, groups + kLast), hn::LoadU(d, groups + kLast + 1))) << kLast;
}

// Whether a look at the edges of a block is worth while. Certain if it is of one group, likely if it has few.
HWY_INLINE bool MayHaveRuns(const uint32_t* groups) {
  return (groups[0] == groups[1]) | (groups[31] == groups[32]) | (groups[62] == groups[63]);
}

// More stretches than these in a block are handled row by row.
constexpr int kRunsMax = 16;

// Calls `block(at, group)` for each block of one group; of the others, in row order, `stretch(at, rows, group)` for rows that
// follow each other in one group, and `row(i)` for single ones. A stretch is only faster than its rows, because a sum in a
// register does not wait for memory; it means the same.
template <class Row, class Run, class Block>
HWY_INLINE void VisitGroups(const uint32_t* groups, size_t rows, const uint64_t* selection, Row row, Run stretch, Block block) {
  for (size_t at = 0; at < rows; at += kWordRows) {
    const size_t here = rows - at < kWordRows ? rows - at : kWordRows;
    uint64_t word = selection == nullptr ? kAllRows : selection[at / kWordRows];
    if (here < kWordRows) word &= TailMask(here);
    if (word != kAllRows) {
      for (; word != 0; word &= word - 1) row(at + static_cast<size_t>(__builtin_ctzll(word)));
      continue;
    }
    uint64_t edges = MayHaveRuns(groups + at) ? Edges(groups + at) : kAllRows;
    if (edges == 0) {
      block(at, groups[at]);
    } else if (__builtin_popcountll(edges) < kRunsMax) {
      size_t first = at;
      for (; edges != 0; edges &= edges - 1) {
        const size_t next = at + static_cast<size_t>(__builtin_ctzll(edges)) + 1;
        stretch(first, next - first, groups[first]);
        first = next;
      }
      stretch(first, at + kWordRows - first, groups[first]);
    } else {
      for (size_t i = at; i < at + kWordRows; ++i) row(i);
    }
  }
}

void GroupCount(const uint32_t* groups, size_t rows, const uint64_t* selection, uint64_t* counts) {
  VisitGroups(
      groups, rows, selection, [=](size_t i) HWY_ATTR { ++counts[groups[i]]; },
      [=](size_t, size_t run_rows, uint32_t group) HWY_ATTR { counts[group] += run_rows; },
      [=](size_t, uint32_t group) HWY_ATTR { counts[group] += kWordRows; });
}

template <bool kCounts, typename T, typename Sum>
HWY_INLINE void GroupSumCounting(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection,
                                 Sum* sums, uint64_t* counts) {
  const auto stretch = [=](size_t at, size_t run_rows, uint32_t group) HWY_ATTR {
    Sum sum = sums[group];
    for (size_t i = at; i < at + run_rows; ++i) sum += static_cast<Sum>(values[i]);
    sums[group] = sum;
    if (kCounts) counts[group] += run_rows;
  };
  VisitGroups(
      groups, rows, selection,
      [=](size_t i) HWY_ATTR {
        sums[groups[i]] += static_cast<Sum>(values[i]);
        if (kCounts) ++counts[groups[i]];
      },
      stretch,
      [=](size_t at, uint32_t group) HWY_ATTR {
        if constexpr (hwy::IsFloat<T>()) {
          Stripes<Sum> stripes;
          if constexpr (std::is_same<T, Sum>()) {
            stripes.All(Values<T>(values), at);
          } else {
            stripes.All(WideValues(values), at);
          }
          sums[group] += stripes.Total();
          if (kCounts) counts[group] += kWordRows;
        } else {
          stretch(at, kWordRows, group);
        }
      });
}

template <typename T, typename Sum>
HWY_INLINE void GroupSum(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection, Sum* sums,
                         uint64_t* counts) {
  if (counts == nullptr) {
    GroupSumCounting<false>(groups, values, rows, selection, sums, counts);
  } else {
    GroupSumCounting<true>(groups, values, rows, selection, sums, counts);
  }
}

// Unsigned, because it may wrap.
void GroupSumI16(const uint32_t* groups, const int16_t* values, size_t rows, const uint64_t* selection, int64_t* sums,
                 uint64_t* counts) {
  GroupSum(groups, values, rows, selection, reinterpret_cast<uint64_t*>(sums), counts);
}
void GroupSumI32(const uint32_t* groups, const int32_t* values, size_t rows, const uint64_t* selection, int64_t* sums,
                 uint64_t* counts) {
  GroupSum(groups, values, rows, selection, reinterpret_cast<uint64_t*>(sums), counts);
}
void GroupSumU32(const uint32_t* groups, const uint32_t* values, size_t rows, const uint64_t* selection, int64_t* sums,
                 uint64_t* counts) {
  GroupSum(groups, values, rows, selection, reinterpret_cast<uint64_t*>(sums), counts);
}
void GroupSumF32(const uint32_t* groups, const float* values, size_t rows, const uint64_t* selection, float* sums,
                 uint64_t* counts) {
  GroupSum(groups, values, rows, selection, sums, counts);
}
void GroupSumF64(const uint32_t* groups, const double* values, size_t rows, const uint64_t* selection, double* sums,
                 uint64_t* counts) {
  GroupSum(groups, values, rows, selection, sums, counts);
}
void GroupSumWide(const uint32_t* groups, const float* values, size_t rows, const uint64_t* selection, double* sums,
                  uint64_t* counts) {
  GroupSum(groups, values, rows, selection, sums, counts);
}
void GroupSumLong(const uint32_t* groups, const int64_t* values, size_t rows, const uint64_t* selection, uint64_t* sums,
                  uint64_t* counts) {
  GroupSum(groups, values, rows, selection, reinterpret_cast<unsigned __int128*>(sums), counts);
}

// From as many rows on, whole vectors are faster than one row after the other.
constexpr size_t kLongRun = 16;

template <typename T, bool kGreatest>
HWY_INLINE void GroupExtreme(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection, T* best) {
  const auto stretch = [=](size_t at, size_t run_rows, uint32_t group) HWY_ATTR {
    if constexpr (hwy::IsFloat<T>()) {
      T extreme;
      if (run_rows >= kLongRun && ExtremeOf<T, kGreatest>(values + at, run_rows, nullptr, &extreme)) {
        best[group] = Better<T, kGreatest>(best[group], extreme);
        return;
      }
    }
    T extreme = best[group];
    for (size_t i = at; i < at + run_rows; ++i) extreme = Better<T, kGreatest>(extreme, values[i]);
    best[group] = extreme;
  };
  VisitGroups(
      groups, rows, selection,
      [=](size_t i) HWY_ATTR { best[groups[i]] = Better<T, kGreatest>(best[groups[i]], values[i]); }, stretch,
      [=](size_t at, uint32_t group) HWY_ATTR { stretch(at, kWordRows, group); });
}

#define LANES_DEFINE(T, Suffix)                                                                                        \
  void GroupMinimum##Suffix(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection, T* best) { \
    GroupExtreme<T, false>(groups, values, rows, selection, best);                                                     \
  }                                                                                                                    \
  void GroupMaximum##Suffix(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection, T* best) { \
    GroupExtreme<T, true>(groups, values, rows, selection, best);                                                      \
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

HWY_EXPORT(GroupCount);
void group_count(const uint32_t* groups, size_t rows, const uint64_t* selection, uint64_t* counts) noexcept {
  HWY_DYNAMIC_DISPATCH(GroupCount)(groups, rows, selection, counts);
}

#define LANES_DISPATCH(name, Function, T, Sum)                                                           \
  HWY_EXPORT(Function);                                                                                  \
  void name(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection, Sum* sums,  \
            uint64_t* counts) noexcept {                                                                 \
    HWY_DYNAMIC_DISPATCH(Function)(groups, values, rows, selection, sums, counts);                       \
  }
LANES_DISPATCH(group_sum, GroupSumI16, int16_t, int64_t)
LANES_DISPATCH(group_sum, GroupSumI32, int32_t, int64_t)
LANES_DISPATCH(group_sum, GroupSumU32, uint32_t, int64_t)
LANES_DISPATCH(group_sum, GroupSumF32, float, float)
LANES_DISPATCH(group_sum, GroupSumF64, double, double)
LANES_DISPATCH(group_sum_wide, GroupSumWide, float, double)
LANES_DISPATCH(group_sum_long, GroupSumLong, int64_t, uint64_t)
#undef LANES_DISPATCH

#define LANES_DISPATCH(T, Suffix)                                                                          \
  HWY_EXPORT(GroupMinimum##Suffix);                                                                        \
  HWY_EXPORT(GroupMaximum##Suffix);                                                                        \
  void group_minimum(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection,      \
                     T* best) noexcept {                                                                   \
    HWY_DYNAMIC_DISPATCH(GroupMinimum##Suffix)(groups, values, rows, selection, best);                     \
  }                                                                                                        \
  void group_maximum(const uint32_t* groups, const T* values, size_t rows, const uint64_t* selection,      \
                     T* best) noexcept {                                                                   \
    HWY_DYNAMIC_DISPATCH(GroupMaximum##Suffix)(groups, values, rows, selection, best);                     \
  }
LANES_NUMBERS(LANES_DISPATCH)
#undef LANES_DISPATCH

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
