// The parts of every kernel for one target: blocks of 64 rows, their selection words, masks from
// bits and bits from masks.
//
// A kernel walks the rows in blocks of 64, one selection word each. The last, partial block is
// copied into a buffer of 64 elements and processed like the others with the bits past its end
// cleared. There is thus one loop body, and nothing is read past the last row.

#if defined(LANES_SIMD_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LANES_SIMD_WORDS_INL_H_
#undef LANES_SIMD_WORDS_INL_H_
#else
#define LANES_SIMD_WORDS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kWordRows = 64;
constexpr uint64_t kAllRows = ~uint64_t{0};

// The bits of the rows that exist in a word of which only the first `rows` (0..=63) do.
HWY_INLINE uint64_t TailMask(size_t rows) { return (uint64_t{1} << rows) - 1; }

// The lanes of a mask as the low bits of a word.
template <class D>
HWY_INLINE uint64_t BitsOf(D d, hn::Mask<D> mask) {
  uint64_t bits = 0;
  hn::StoreMaskBits(d, mask, reinterpret_cast<uint8_t*>(&bits));
  return bits;
}

// The mask whose lane i is bit `at + i` of the word.
template <class D>
HWY_INLINE hn::Mask<D> MaskAt(D d, uint64_t word, size_t at) {
  const uint64_t bits = word >> at;
  return hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits));
}

// A column as the kernels read it: whole vectors, unaligned, and at last from a padded copy of the rows left over.
template <typename T>
struct Values {
  explicit Values(const T* first) : data(first) {}

  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, size_t at) const {
    return hn::LoadU(d, data + at);
  }

  // From now on row 0 is what row `at` was, `rows` rows exist and the rest of the block is zero.
  HWY_INLINE void Tail(size_t at, size_t rows) {
    memset(buffer, 0, sizeof(buffer));
    memcpy(buffer, data + at, rows * sizeof(T));
    data = buffer;
  }

  const T* data;
  T buffer[kWordRows];
};

// Calls `all(at)` for each block of which all rows are selected, `some(at, word)` for each other that has any, and
// `tail(at, rows)` before `some(0, word)` for the last, partial block. A null selection selects all rows.
template <class All, class Some, class Tail>
HWY_INLINE void VisitBlocks(size_t rows, const uint64_t* selection, All all, Some some, Tail tail) {
  const size_t whole = rows / kWordRows;
  const size_t rest = rows % kWordRows;
  if (selection == nullptr) {
    for (size_t block = 0; block < whole; ++block) all(block * kWordRows);
  } else {
    for (size_t block = 0; block < whole; ++block) {
      const uint64_t word = selection[block];
      if (word == kAllRows) {
        all(block * kWordRows);
      } else if (word != 0) {
        some(block * kWordRows, word);
      }
    }
  }
  if (rest == 0) return;
  const uint64_t word = (selection == nullptr ? kAllRows : selection[whole]) & TailMask(rest);
  if (word == 0) return;
  tail(whole * kWordRows, rest);
  some(0, word);
}

// The number of the last selected row for which `wanted(row)` is true; `rows` if there is none.
template <class Wanted>
HWY_INLINE size_t LastRow(size_t rows, const uint64_t* selection, Wanted wanted) {
  for (size_t block = (rows + kWordRows - 1) / kWordRows; block-- > 0;) {
    const size_t first = block * kWordRows;
    uint64_t word = selection == nullptr ? kAllRows : selection[block];
    if (rows - first < kWordRows) word &= TailMask(rows - first);
    while (word != 0) {
      const size_t bit = static_cast<size_t>(63 - __builtin_clzll(word));
      if (wanted(first + bit)) return first + bit;
      word ^= uint64_t{1} << bit;
    }
  }
  return rows;
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#endif  // LANES_SIMD_WORDS_INL_H_
