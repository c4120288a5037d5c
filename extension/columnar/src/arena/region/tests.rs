//! The allocator against a list of live blocks.

use proptest::prelude::*;

use super::*;
use crate::buffer::Buffer;
use crate::test_support::cases;

const FIRST: u64 = 8_192;

/// Memory with an initialised region in it.
fn with_region<T>(bytes: u64, test: impl FnOnce(Region) -> T) -> T {
    const { assert!(size_of::<RegionState>() as u64 + 64 <= FIRST) };
    let mut buffer = Buffer::<u64>::new();
    buffer.extend_zeros(((FIRST + bytes) / 8) as usize);
    // SAFETY: the buffer is aligned and outlives the region; its first bytes are a zeroed state.
    let region = unsafe {
        let memory = Memory::new(buffer.pointer().cast_mut().cast());
        let region = Region::new(memory, 64);
        region.initialise(FIRST, FIRST + bytes);
        region
    };
    let answer = test(region);
    drop(buffer);
    answer
}

#[test]
fn classes_rise_with_sizes_and_fit() {
    let mut before = 0;
    for lines in 1..200_000 {
        let class = class_of(lines);
        assert!(class == before || class == before + 1, "{lines} lines");
        before = class;
    }
    for lines in 1..5_000 {
        let fits = class_that_fits(lines);
        let smallest = (1..).find(|&candidate| class_of(candidate) == fits);
        assert!(smallest.is_some_and(|smallest| smallest >= lines));
    }
    assert!(class_of(1 << 40) < CLASSES);
}

#[test]
fn the_whole_region_can_be_had_at_once() {
    with_region(1 << 20, |region| {
        let whole = region.largest();
        assert_eq!(whole, (1 << 20) - LINE_BYTES);
        let payload = region.allocate(whole).unwrap();
        assert_eq!(region.largest(), 0);
        assert_eq!(region.allocate(1), None);
        assert_eq!(region.allocate(u64::MAX), None);
        region.free(payload);
        assert_eq!(region.largest(), whole);
        assert_eq!(region.used(), 0);
    });
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn live_blocks_never_overlap_and_all_comes_back(
        steps in prop::collection::vec(
            (any::<prop::sample::Index>(), prop_oneof![1..100_u64, 1..5_000_u64, 1..40_000_u64], 0..5_u8),
            1..200,
        ),
    ) {
        with_region(200_000, |region| {
            let mut live = Vec::<(u64, u64)>::new();
            for (pick, bytes, how) in steps {
                if how < 3 || live.is_empty() {
                    if let Some(payload) = region.allocate(bytes) {
                        prop_assert_eq!(payload % 64, 0);
                        prop_assert!(region.payload_bytes(payload) >= bytes);
                        prop_assert_eq!(region.link(payload), 0);
                        region.set_link(payload, payload + 1);
                        live.push((payload, bytes));
                    } else {
                        prop_assert!(region.used() > 0, "an empty region has room");
                    }
                } else {
                    let (payload, _) = live.swap_remove(pick.index(live.len()));
                    prop_assert_eq!(region.link(payload), payload + 1);
                    region.free(payload);
                }
                region.assert_invariants();
                live.sort_unstable();
                for pair in live.windows(2) {
                    prop_assert!(pair[0].0 + pair[0].1 + LINE_BYTES <= pair[1].0);
                }
            }
            for (payload, _) in live {
                region.free(payload);
            }
            region.assert_invariants();
            prop_assert_eq!(region.used(), 0);
            prop_assert_eq!(region.largest() + LINE_BYTES, region.bytes());
            Ok(())
        })?;
    }
}

#[test]
fn churn_does_not_fragment_to_death() {
    // Up to three quarters full of blocks of mixed sizes, replaced at random for a long time: every
    // allocation of the mix still succeeds.
    let rounds = if cfg!(miri) { 200 } else { 20_000 };
    with_region(4 << 20, |region| {
        let (mut live, mut seed) = (Vec::new(), 1_u64);
        let mut random = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed >> 33
        };
        for _ in 0..rounds {
            while region.used() > region.bytes() * 3 / 4 {
                let pick = random() as usize % live.len();
                region.free(live.swap_remove(pick));
            }
            live.push(region.allocate(64 << (random() % 9)).unwrap());
        }
        region.assert_invariants();
        for payload in live {
            region.free(payload);
        }
        assert_eq!(region.largest() + LINE_BYTES, region.bytes());
    });
}
