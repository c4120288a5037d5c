//! Functions of a row's place in its partition.

use std::ops::Range;

use super::Function;
use super::arrange::{Arrangement, SortKey};
use super::frames::each_peers;
use super::numbers::NumberColumn;

/// A rank of each position: `bigint`, for `ntile` `integer`, for `percent_rank` and `cume_dist`
/// `double precision`.
pub fn rank(function: Function, order: &Arrangement, keys: &[SortKey]) -> NumberColumn {
    let mut ranks = NumberColumn::with_room(order.rows.len());
    match function {
        Function::RowNumber => {
            for partition in order.partitions() {
                ranks.extend((0..partition.len()).map(|row| row as u64 + 1));
            }
        }
        Function::Ntile(buckets) => {
            for partition in order.partitions() {
                push_buckets(partition.len() as u64, buckets.max(1) as u64, &mut ranks);
            }
        }
        _ => push_ranks(function, order, keys, &mut ranks),
    }
    ranks
}

/// The numbers of so many buckets: the first ones have one row more than the last ones.
fn push_buckets(rows: u64, buckets: u64, ranks: &mut NumberColumn) {
    let (least, larger) = (rows / buckets, rows % buckets);
    let mut row = 0;
    for bucket in 0..buckets {
        if row == rows {
            break;
        }
        let size = least + u64::from(bucket < larger);
        (0..size).for_each(|_| ranks.push_value(bucket + 1));
        row += size;
    }
}

fn push_ranks(function: Function, order: &Arrangement, keys: &[SortKey], ranks: &mut NumberColumn) {
    let mut dense = 0;
    each_peers(order, keys, |partition, peers| {
        dense = match peers.start == partition.start {
            true => 1,
            false => dense + 1,
        };
        let rank = match function {
            Function::DenseRank => dense,
            Function::PercentRank => percent(partition, &peers).to_bits(),
            Function::CumeDist => {
                let so_far = (peers.end - partition.start) as f64;
                (so_far / partition.len() as f64).to_bits()
            }
            _ => (peers.start - partition.start) as u64 + 1,
        };
        ranks.extend(peers.map(|_| rank));
    });
}

/// The share of the other rows that are before a row and its peers.
fn percent(partition: &Range<usize>, peers: &Range<usize>) -> f64 {
    match partition.len() {
        0 | 1 => 0.0,
        rows => (peers.start - partition.start) as f64 / (rows - 1) as f64,
    }
}
