// Sums of floats whose order of addition is the same on every target.
//
// Row i is added to stripe i % 16; then stripe j + 8 is added to stripe j for j < 8, j + 4 to j, j + 2 to j, j + 1 to j. 16
// stripes are one vector of floats with AVX-512 and four of doubles with AVX2: enough that additions do not wait for each
// other. Stripes begin as -0, and a row that is not selected adds -0: the one value that changes no sum, +0 included.
// Nothing is fused (the compiler is told so): a product is rounded, then added.

#if defined(LANES_SIMD_STRIPES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LANES_SIMD_STRIPES_INL_H_
#undef LANES_SIMD_STRIPES_INL_H_
#else
#define LANES_SIMD_STRIPES_INL_H_
#endif

#include "kernels/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanes {
namespace simd {
namespace HWY_NAMESPACE {

constexpr size_t kStripes = 16;

template <typename T>
struct Stripes {
  using D = hn::CappedTag<T, kStripes>;
  static constexpr size_t kLanes = hn::MaxLanes(D());
  static constexpr size_t kVectors = kStripes / kLanes;

  HWY_INLINE Stripes() {
    for (size_t k = 0; k < kVectors; ++k) sums[k] = Nothing();
  }

  static HWY_INLINE hn::Vec<D> Nothing() { return hn::Set(D(), static_cast<T>(-0.0)); }

  // Adds the 64 rows from `at`.
  template <class Reader>
  HWY_INLINE void All(const Reader& reader, size_t at) {
    for (size_t i = 0; i < kWordRows; i += kStripes) {
      for (size_t k = 0; k < kVectors; ++k) {
        sums[k] = hn::Add(sums[k], reader.Load(D(), at + i + k * kLanes));
      }
    }
  }

  // Adds the rows among the 64 from `at` whose bit in `word` is set.
  template <class Reader>
  HWY_INLINE void Some(const Reader& reader, size_t at, uint64_t word) {
    for (size_t i = 0; i < kWordRows; i += kStripes) {
      for (size_t k = 0; k < kVectors; ++k) {
        const size_t row = i + k * kLanes;
        const auto value = reader.Load(D(), at + row);
        sums[k] = hn::Add(sums[k], hn::IfThenElse(MaskAt(D(), word, row), value, Nothing()));
      }
    }
  }

  // Adds the 16 rows from `at`, which is a multiple of 16.
  template <class Reader>
  HWY_INLINE void Block(const Reader& reader, size_t at) {
    for (size_t k = 0; k < kVectors; ++k) sums[k] = hn::Add(sums[k], reader.Load(D(), at + k * kLanes));
  }

  // Adds the rows among the 16 from `at`, a multiple of 16, whose bit in `word` is set.
  template <class Reader>
  HWY_INLINE void SomeOfBlock(const Reader& reader, size_t at, uint64_t word) {
    for (size_t k = 0; k < kVectors; ++k) {
      const auto value = reader.Load(D(), at + k * kLanes);
      sums[k] = hn::Add(sums[k], hn::IfThenElse(MaskAt(D(), word, k * kLanes), value, Nothing()));
    }
  }

  // Whole vectors first, which takes no memory: stripe j + 8 is in another vector than stripe j, or in the same.
  HWY_INLINE T Total() const {
    hn::Vec<D> vectors[kVectors];
    for (size_t k = 0; k < kVectors; ++k) vectors[k] = sums[k];
    for (size_t half = kVectors / 2; half != 0; half /= 2) {
      for (size_t k = 0; k < half; ++k) vectors[k] = hn::Add(vectors[k], vectors[k + half]);
    }
    alignas(64) T stripes[kLanes];
    hn::Store(vectors[0], D(), stripes);
    for (size_t half = kLanes / 2; half != 0; half /= 2) {
      for (size_t j = 0; j < half; ++j) stripes[j] += stripes[j + half];
    }
    return stripes[0];
  }

  hn::Vec<D> sums[kVectors];
};

// Floats read as doubles.
struct WideValues : Values<float> {
  using Values<float>::Values;
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, size_t at) const {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), data + at));
  }
};

template <class Reader>
struct Squares : Reader {
  using Reader::Reader;
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, size_t at) const {
    const auto value = Reader::Load(d, at);
    return hn::Mul(value, value);
  }
};

// (x - center)^2
struct SquaredDeviations : Values<double> {
  SquaredDeviations(const double* values, double c) : Values<double>(values), center(c) {}
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, size_t at) const {
    const auto deviation = hn::Sub(Values<double>::Load(d, at), hn::Set(d, center));
    return hn::Mul(deviation, deviation);
  }
  double center;
};

template <typename T>
struct Products {
  Products(const T* l, const T* r) : left(l), right(r) {}
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, size_t at) const {
    return hn::Mul(left.Load(d, at), right.Load(d, at));
  }
  HWY_INLINE void Tail(size_t at, size_t rows) {
    left.Tail(at, rows);
    right.Tail(at, rows);
  }
  Values<T> left;
  Values<T> right;
};

template <typename T>
struct SquaredDifferences {
  SquaredDifferences(const T* l, const T* r) : left(l), right(r) {}
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, size_t at) const {
    const auto difference = hn::Sub(left.Load(d, at), right.Load(d, at));
    return hn::Mul(difference, difference);
  }
  HWY_INLINE void Tail(size_t at, size_t rows) {
    left.Tail(at, rows);
    right.Tail(at, rows);
  }
  Values<T> left;
  Values<T> right;
};

template <typename T, class Reader>
HWY_INLINE T StripedSum(Reader reader, size_t rows, const uint64_t* selection) {
  Stripes<T> stripes;
  VisitBlocks(
      rows, selection, [&](size_t at) HWY_ATTR { stripes.All(reader, at); },
      [&](size_t at, uint64_t word) HWY_ATTR { stripes.Some(reader, at, word); },
      [&](size_t at, size_t rest) HWY_ATTR { reader.Tail(at, rest); });
  return stripes.Total();
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace lanes
HWY_AFTER_NAMESPACE();

#endif  // LANES_SIMD_STRIPES_INL_H_
