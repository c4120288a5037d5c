//! Selections against lists of bools.

use proptest::prelude::*;

use super::lanes::Source;
use crate::limits::VECTOR_ROWS;
use crate::test_support::cases;
use crate::vector::selection::Selection;

fn bools(selection: &Selection) -> Vec<bool> {
    (0..VECTOR_ROWS)
        .map(|row| selection.contains(row))
        .collect()
}

fn any_bound() -> impl Strategy<Value = usize> {
    prop_oneof![
        0..=VECTOR_ROWS,
        (0..=VECTOR_ROWS / 64).prop_map(|word| word * 64),
        Just(VECTOR_ROWS - 1)
    ]
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn algebra_and_walks_agree_with_lists(
        seed in any::<u64>(), rows in 1..=VECTOR_ROWS, from in any_bound(), to in any_bound(), start in any_bound(),
    ) {
        let mut source = Source(seed);
        let (a, b) = (source.selection(rows), source.selection(rows));
        let (x, y) = (bools(&a), bools(&b));
        let both = |f: fn(bool, bool) -> bool| -> Vec<bool> {
            x.iter().zip(&y).map(|(x, y)| f(*x, *y)).collect()
        };
        prop_assert_eq!(bools(&a.and(&b)), both(|x, y| x && y));
        prop_assert_eq!(bools(&a.or(&b)), both(|x, y| x || y));
        prop_assert_eq!(bools(&a.and_not(&b)), both(|x, y| x && !y));
        // SAFETY: the bitmap of a selection covers a whole vector.
        prop_assert_eq!(unsafe { a.and_bitmap(b.as_ptr()) }, a.and(&b));
        // SAFETY: a null pointer stands for all.
        prop_assert_eq!(unsafe { a.and_bitmap(std::ptr::null()) }, a);

        let inside = |row: usize| (from..to).contains(&row);
        let cut: Vec<_> = x.iter().enumerate().map(|(row, x)| *x && inside(row)).collect();
        prop_assert_eq!(bools(&a.within(from, to)), cut);
        let mut more = a;
        more.insert(from, to);
        let grown: Vec<_> = x.iter().enumerate().map(|(row, x)| *x || inside(row)).collect();
        prop_assert_eq!(&bools(&more), &grown);
        let head: Vec<_> = (0..VECTOR_ROWS).map(|row| row < to).collect();
        prop_assert_eq!(bools(&Selection::first(to)), head);

        let rows: Vec<_> = (0..VECTOR_ROWS).filter(|row| x[*row]).collect();
        prop_assert_eq!(a.count(), rows.len());
        prop_assert_eq!(a.is_empty(), rows.is_empty());
        prop_assert_eq!(a.last(), rows.last().copied());
        let stretches: Vec<usize> = more.stretches().flatten().collect();
        let selected: Vec<_> = (0..VECTOR_ROWS).filter(|row| grown[*row]).collect();
        prop_assert_eq!(stretches, selected);
        let joints = more.stretches().zip(more.stretches().skip(1));
        prop_assert!(joints.into_iter().all(|(one, next)| one.end < next.start));
        prop_assert_eq!(a.next(start), rows.iter().copied().find(|row| *row >= start));
        prop_assert_eq!(a.previous(start), rows.iter().rev().copied().find(|row| *row < start));
        let mut walked = Vec::new();
        a.for_each(|row| walked.push(row));
        prop_assert_eq!(&walked, &rows);
        walked.clear();
        let stopped = a.try_for_each(|row| {
            walked.push(row);
            if row >= start { Err(row) } else { Ok(()) }
        });
        let stop = rows.iter().copied().find(|row| *row >= start);
        prop_assert_eq!(stopped.err(), stop);
        let met: Vec<_> = rows.iter().copied().take_while(|row| stop.is_none_or(|s| *row <= s)).collect();
        prop_assert_eq!(walked, met);
    }
}
