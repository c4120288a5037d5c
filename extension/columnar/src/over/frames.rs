//! The peers and the frame of each position.

use std::ops::Range;

use super::arrange::{Arrangement, SortKey};
use super::distance::{Distance, Reach};
use crate::interrupt::Steps;
use crate::vector::Evaluation;

/// A bound of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// The bound of the partition.
    Unbounded,
    /// The current row's first peer, or its last.
    Peers,
    /// The row so many positions behind the current one.
    Row(i64),
    /// The first or last row whose order key is at most so far behind the current row's.
    Distance(Distance),
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
    if let Some(values) = order.keys(keys) {
        for partition in order.partitions() {
            let mut first = partition.start;
            while first < partition.end {
                let of_partition = &values[first..partition.end];
                let mut others = of_partition.iter();
                let end = others.position(|value| *value != of_partition[0]);
                let end = end.map_or(partition.end, |behind| first + behind);
                steps.step();
                visit(&partition, first..end);
                first = end;
            }
        }
        return;
    }
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
///
/// # Errors
/// The bound of a frame is no time that PostgreSQL has.
pub fn each(
    order: &Arrangement,
    keys: &[SortKey],
    frame: Frame,
    mut visit: impl FnMut(Range<usize>),
) -> Evaluation<()> {
    let steps = Steps::default();
    let has_peers = |bound| matches!(bound, Bound::Peers | Bound::Distance(_));
    // Without bounds at peers it does not matter which rows are peers.
    let keys = match has_peers(frame.start) || has_peers(frame.end) {
        true => keys,
        false => &[],
    };
    let mut reach = Reach::new(order, keys.first());
    let mut failed = None;
    each_peers(order, keys, |partition, peers| {
        if failed.is_some() {
            return;
        }
        let (mut first, mut end_of_peers) = (peers.start, peers.end);
        // Peers have the same key, and so the same bounds by distance.
        let found = (|| {
            if let Bound::Distance(distance) = frame.start {
                first = reach.first(partition, &peers, distance)?;
            }
            if let Bound::Distance(distance) = frame.end {
                end_of_peers = reach.end(partition, &peers, distance)?;
            }
            Ok(())
        })();
        if let Err(failure) = found {
            failed = Some(failure);
            return;
        }
        for position in peers.clone() {
            steps.step();
            let at = |offset: i64, behind: usize| {
                let place = ((position + behind) as i64).saturating_add(offset);
                place.clamp(partition.start as i64, partition.end as i64) as usize
            };
            let start = match frame.start {
                Bound::Unbounded => partition.start,
                Bound::Peers | Bound::Distance(_) => first,
                Bound::Row(offset) => at(offset, 0),
            };
            let end = match frame.end {
                Bound::Unbounded => partition.end,
                Bound::Peers | Bound::Distance(_) => end_of_peers,
                Bound::Row(offset) => at(offset, 1),
            };
            visit(start..end.max(start));
        }
    });
    failed.map_or(Ok(()), Err)
}
