//! The groups that can be among the first ones of an order.
//!
//! ```text
//! candidates: groups that come before the bound, or with it
//! bound:      the rank of the last of the first `limit` candidates, as of the last time that they were sorted out
//! each group: after the bound → not kept; else → a candidate. Twice as many candidates as wanted → sort them out
//! ```
//! A query's ORDER BY may go on with keys that are not compared here. Groups that are equal by the compared keys are
//! then all kept. The last compared key may be *rounded*: its ranks are those of doubles next to the true values. Ranks
//! that differ by less than `SLACK` count as equal then.

use super::entry::KEYS_MAX;
use super::rank::Rank;

/// Neighbouring doubles that may stand for equal values. PostgreSQL's averages have 16 digits or more, so two
/// roundings move a double by a few neighbours.
const SLACK: u64 = 1 << 12;
/// Candidates that are kept before they are sorted out for the first time, whatever the limit.
const CANDIDATES_MIN: usize = 1 << 10;
/// Candidates that are kept at most, which take some 20 MB. More of them are hardly fewer than all groups.
const CANDIDATES_MAX: usize = 1 << 18;

/// The ranks of a group by the compared keys.
type Ranks = [Rank; KEYS_MAX];

/// How groups are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comparison {
    /// The number of compared keys, from 1 to [`KEYS_MAX`].
    pub keys: usize,
    /// Whether the last of them is rounded.
    pub is_rounded: bool,
    /// Whether groups that are equal to the last wanted one are all kept.
    pub keeps_equal: bool,
}

/// The groups.
pub struct BestGroups {
    comparison: Comparison,
    limit: usize,
    candidates: Vec<(Ranks, u32)>,
    /// Candidates are sorted out once there are so many.
    full: usize,
    bound: Option<Ranks>,
    are_too_many: bool,
}

impl BestGroups {
    /// No group yet, of which the first `limit` are wanted, at least one.
    pub fn new(comparison: Comparison, limit: usize) -> BestGroups {
        debug_assert!((1..=KEYS_MAX).contains(&comparison.keys) && limit > 0);
        BestGroups {
            comparison,
            limit,
            candidates: Vec::new(),
            full: limit.saturating_mul(2).max(CANDIDATES_MIN),
            bound: None,
            are_too_many: false,
        }
    }

    /// Whether so many groups are equal by the compared keys that choosing among them is not worth its memory.
    #[inline]
    pub fn are_too_many(&self) -> bool {
        self.are_too_many
    }

    /// Offers a group with its rank by each key. A rank is asked for only if those of the keys before it do not decide.
    #[inline]
    pub fn offer(&mut self, group: u32, mut rank: impl FnMut(usize) -> Rank) {
        let mut ranks = Ranks::default();
        // Whether the group is equal to the bound by all keys so far.
        let mut is_equal = self.bound.is_some();
        for (key, found) in ranks.iter_mut().enumerate().take(self.comparison.keys) {
            *found = rank(key);
            if is_equal && let Some(bound) = &self.bound {
                if self.is_after(*found, bound[key], key) {
                    return;
                }
                is_equal = *found == bound[key];
            }
        }
        if is_equal && !self.comparison.keeps_equal {
            return;
        }
        self.candidates.push((ranks, group));
        if self.candidates.len() >= self.full {
            self.sort_out();
        }
    }

    /// The kept groups in the order in which they were offered. At least all of the first `limit` groups are among
    /// them.
    pub fn groups(mut self) -> Vec<u32> {
        self.sort_out();
        let mut groups: Vec<u32> = self.candidates.iter().map(|(_, group)| *group).collect();
        groups.sort_unstable();
        groups
    }

    /// Whether a rank comes after another one by a key.
    #[inline]
    fn is_after(&self, rank: Rank, bound: Rank, key: usize) -> bool {
        let is_rounded = self.comparison.is_rounded && key + 1 == self.comparison.keys;
        match is_rounded {
            true => rank > bound.later(SLACK),
            false => rank > bound,
        }
    }

    /// Moves the bound, and forgets the candidates after it.
    fn sort_out(&mut self) {
        if self.candidates.len() <= self.limit {
            return;
        }
        let (_, last, _) = self.candidates.select_nth_unstable(self.limit - 1);
        let bound = last.0;
        self.bound = Some(bound);
        let keys = self.comparison.keys;
        if !self.comparison.keeps_equal {
            self.candidates.truncate(self.limit);
        } else {
            let mut candidates = std::mem::take(&mut self.candidates);
            candidates.retain(|(ranks, _)| {
                let first = (0..keys).find(|key| ranks[*key] != bound[*key]);
                first.is_none_or(|key| {
                    let is_after = self.is_after(ranks[key], bound[key], key);
                    !is_after
                })
            });
            self.candidates = candidates;
        }
        self.full = (2 * self.candidates.len()).max(self.full);
        self.are_too_many = self.full > CANDIDATES_MAX;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::rank::Order;
    use super::*;

    const ASCENDING: Order = Order {
        descending: false,
        nulls_first: false,
    };

    fn best(comparison: Comparison, limit: usize, rows: &[[i64; 2]]) -> Vec<u32> {
        let mut best = BestGroups::new(comparison, limit);
        best.full = limit + 1;
        for (row, group) in rows.iter().zip(0..) {
            best.offer(group, |key| ASCENDING.rank(row[key]));
        }
        best.groups()
    }

    proptest! {
        #[test]
        fn the_first_groups_are_kept(
            rows in prop::collection::vec([0..5_i64, 0..5_i64], 0..60),
            keys in 1..3_usize, limit in 1..20_usize, keeps_equal: bool,
        ) {
            let comparison = Comparison { keys, is_rounded: false, keeps_equal };
            let found = best(comparison, limit, &rows);
            let mut sorted: Vec<_> = rows.iter().map(|row| row[..keys].to_vec()).collect();
            sorted.sort();
            let mut kept: Vec<_> = found.iter().map(|group| rows[*group as usize][..keys].to_vec()).collect();
            kept.sort();
            let wanted = match (keeps_equal, sorted.get(limit - 1)) {
                (true, Some(last)) => sorted.iter().filter(|ranks| *ranks <= last).count(),
                _ => sorted.len().min(limit),
            };
            prop_assert_eq!(kept, &sorted[..wanted]);
        }
    }

    #[test]
    fn equal_groups_are_not_kept_without_limit() {
        let mut comparison = Comparison {
            keys: 1,
            is_rounded: false,
            keeps_equal: true,
        };
        let are_too_many = |comparison| {
            let mut best = BestGroups::new(comparison, 10);
            for group in 0..2 * CANDIDATES_MAX as u32 {
                if best.are_too_many() {
                    return true;
                }
                best.offer(group, |_| ASCENDING.rank(1_i64));
            }
            false
        };
        assert!(are_too_many(comparison));
        comparison.keeps_equal = false;
        assert!(!are_too_many(comparison));
    }

    #[test]
    fn rounded_ranks_next_to_the_bound_are_kept() {
        let comparison = Comparison {
            keys: 1,
            is_rounded: true,
            keeps_equal: true,
        };
        let third = 1.0_f64 / 3.0;
        let values = [third, third.next_up(), third.next_down(), 0.34, 0.3];
        let mut best = BestGroups::new(comparison, 2);
        best.full = 3;
        for (value, group) in values.iter().zip(0..) {
            best.offer(group, |_| ASCENDING.rank(*value));
        }
        assert_eq!(best.groups(), [0, 1, 2, 4]);
    }
}
