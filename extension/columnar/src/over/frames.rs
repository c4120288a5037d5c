//! The peers and the frame of each position.

use std::ops::Range;

use super::arrange::{Arrangement, SortKey};
use crate::interrupt::Steps;

/// A bound of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// The bound of the partition.
    Unbounded,
    /// The current row's first peer, or its last.
    Peers,
    /// The row so many positions behind the current one.
    Row(i64),
}

/// The rows of a partition that a function is computed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The first row.
    pub start: Bound,
    /// The last row.
    pub end: Bound,
}

/// Calls `visit` with the peers of each position, partition by partition: the partition, and those
/// of its positions that are equal in all keys.
pub fn each_peers(
    order: &Arrangement,
    keys: &[SortKey],
    mut visit: impl FnMut(&Range<usize>, Range<usize>),
) {
    let steps = Steps::default();
    for partition in order.partitions() {
        let mut first = partition.start;
        while first < partition.end {
            let mut end = match keys.is_empty() {
                true => partition.end,
                false => first + 1,
            };
            while end < partition.end && order.are_peers(keys, first, end) {
                steps.step();
                end += 1;
            }
            steps.step();
            visit(&partition, first..end);
            first = end;
        }
    }
}

/// Calls `visit` with the frame of each position. Within a partition, neither bound ever falls. An
/// empty frame lies within the partition, too.
pub fn each(
    order: &Arrangement,
    keys: &[SortKey],
    frame: Frame,
    mut visit: impl FnMut(Range<usize>),
) {
    let steps = Steps::default();
    let has_peers = frame.start == Bound::Peers || frame.end == Bound::Peers;
    // Without bounds at peers it does not matter which rows are peers.
    let keys = if has_peers { keys } else { &[] };
    each_peers(order, keys, |partition, peers| {
        for position in peers.clone() {
            steps.step();
            let at = |offset: i64, behind: usize| {
                let place = ((position + behind) as i64).saturating_add(offset);
                place.clamp(partition.start as i64, partition.end as i64) as usize
            };
            let start = match frame.start {
                Bound::Unbounded => partition.start,
                Bound::Peers => peers.start,
                Bound::Row(offset) => at(offset, 0),
            };
            let end = match frame.end {
                Bound::Unbounded => partition.end,
                Bound::Peers => peers.end,
                Bound::Row(offset) => at(offset, 1),
            };
            visit(start..end.max(start));
        }
    });
}
