#include "kernels/combine.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/combine.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

// `operation` works on vectors and, for the words left over, on plain words.
template <class Operation>
HWY_INLINE void Combine(const uint64_t* left, const uint64_t* right, size_t rows, uint64_t* out, Operation operation) {
  const hn::ScalableTag<uint64_t> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<uint64_t>());
  const size_t whole = rows / kWordRows;
  size_t word = 0;
  for (; word + kLanes <= whole; word += kLanes) {
    hn::StoreU(operation(hn::LoadU(d, left + word), hn::LoadU(d, right + word)), d, out + word);
  }
  for (; word < whole; ++word) out[word] = operation(left[word], right[word]);
  if (rows % kWordRows != 0) out[whole] = operation(left[whole], right[whole]) & TailMask(rows % kWordRows);
}

struct AndOperation {
  template <class V>
  HWY_INLINE V operator()(V left, V right) const {
    return hn::And(left, right);
  }
  HWY_INLINE uint64_t operator()(uint64_t left, uint64_t right) const { return left & right; }
};

struct AndNotOperation {
  template <class V>
  HWY_INLINE V operator()(V left, V right) const {
    return hn::AndNot(right, left);
  }
  HWY_INLINE uint64_t operator()(uint64_t left, uint64_t right) const { return left & ~right; }
};

struct OrOperation {
  template <class V>
  HWY_INLINE V operator()(V left, V right) const {
    return hn::Or(left, right);
  }
  HWY_INLINE uint64_t operator()(uint64_t left, uint64_t right) const { return left | right; }
};

struct NotOperation {
  template <class V>
  HWY_INLINE V operator()(V left, V) const {
    return hn::Not(left);
  }
  HWY_INLINE uint64_t operator()(uint64_t left, uint64_t) const { return ~left; }
};

void AndWords(const uint64_t* left, const uint64_t* right, size_t rows, uint64_t* out) {
  Combine(left, right, rows, out, AndOperation());
}
void AndNotWords(const uint64_t* left, const uint64_t* right, size_t rows, uint64_t* out) {
  Combine(left, right, rows, out, AndNotOperation());
}
void OrWords(const uint64_t* left, const uint64_t* right, size_t rows, uint64_t* out) {
  Combine(left, right, rows, out, OrOperation());
}
void NotWords(const uint64_t* words, size_t rows, uint64_t* out) {
  Combine(words, words, rows, out, NotOperation());
}

// Four independent counts: more than one population count instruction in each cycle, if the CPU has
// the instruction (SSE4 and newer).
template <class WordAt>
HWY_INLINE uint64_t CountOnesOf(size_t rows, WordAt word_at) {
  const size_t whole = rows / kWordRows;
  uint64_t counts[4] = {0, 0, 0, 0};
  size_t word = 0;
  for (; word + 4 <= whole; word += 4) {
    for (size_t i = 0; i < 4; ++i) counts[i] += static_cast<uint64_t>(__builtin_popcountll(word_at(word + i)));
  }
  for (; word < whole; ++word) counts[0] += static_cast<uint64_t>(__builtin_popcountll(word_at(word)));
  if (rows % kWordRows != 0) {
    counts[1] += static_cast<uint64_t>(__builtin_popcountll(word_at(whole) & TailMask(rows % kWordRows)));
  }
  return (counts[0] + counts[1]) + (counts[2] + counts[3]);
}

uint64_t CountOnes(const uint64_t* words, size_t rows) {
  return CountOnesOf(rows, [words](size_t word) HWY_ATTR { return words[word]; });
}
uint64_t CountOnesAnd(const uint64_t* left, const uint64_t* right, size_t rows) {
  return CountOnesOf(rows, [left, right](size_t word) HWY_ATTR { return left[word] & right[word]; });
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanes {
namespace simd {

HWY_EXPORT(AndWords);
HWY_EXPORT(AndNotWords);
HWY_EXPORT(OrWords);
HWY_EXPORT(NotWords);
HWY_EXPORT(CountOnes);
HWY_EXPORT(CountOnesAnd);

void and_words(const uint64_t* left, const uint64_t* right, size_t rows, uint64_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(AndWords)(left, right, rows, out);
}
void and_not_words(const uint64_t* left, const uint64_t* right, size_t rows, uint64_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(AndNotWords)(left, right, rows, out);
}
void or_words(const uint64_t* left, const uint64_t* right, size_t rows, uint64_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(OrWords)(left, right, rows, out);
}
void not_words(const uint64_t* words, size_t rows, uint64_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(NotWords)(words, rows, out);
}
uint64_t count_ones(const uint64_t* words, size_t rows) noexcept {
  return HWY_DYNAMIC_DISPATCH(CountOnes)(words, rows);
}
uint64_t count_ones_and(const uint64_t* left, const uint64_t* right, size_t rows) noexcept {
  return HWY_DYNAMIC_DISPATCH(CountOnesAnd)(left, right, rows);
}

}  // namespace simd
}  // namespace lanes
#endif  // HWY_ONCE
