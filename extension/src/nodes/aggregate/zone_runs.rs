//! Sealed runs that are aggregated by their zone maps alone.

use std::cell::RefCell;

use lanes_columnar::aggregate::Aggregation;
use lanes_columnar::vector::number::Scalar;

use crate::table::scan::{AnsweredByZones, StoredZones};
use crate::vectors::prune::Prune;

/// Aggregates sealed runs by their zones, where these prove that all rows pass the conditions.
pub struct ZoneRuns<'a> {
    comparisons: &'a [Prune],
    scalars: &'a [Option<Scalar>],
    target: RefCell<Target<'a>>,
}

/// The groups that runs are added to, and the number of rows that have passed.
struct Target<'a> {
    aggregation: &'a mut Aggregation,
    passed: &'a mut u64,
}

impl<'a> ZoneRuns<'a> {
    /// The comparisons are all conditions of the query.
    pub fn new(
        comparisons: &'a [Prune],
        scalars: &'a [Option<Scalar>],
        aggregation: &'a mut Aggregation,
        passed: &'a mut u64,
    ) -> ZoneRuns<'a> {
        ZoneRuns {
            comparisons,
            scalars,
            target: RefCell::new(Target {
                aggregation,
                passed,
            }),
        }
    }

    fn all_pass(&self, rows: u32, zones: StoredZones<'_>) -> bool {
        Prune::all_pass(self.comparisons, rows, zones, self.scalars)
    }
}

impl AnsweredByZones for ZoneRuns<'_> {
    fn are_answered(&self, rows: u32, zones: StoredZones<'_>) -> bool {
        let target = self.target.borrow();
        self.all_pass(rows, zones) && target.aggregation.answered_by_zones(rows, zones).is_some()
    }

    fn take(&self, rows: u32, zones: StoredZones<'_>) -> bool {
        let target = &mut *self.target.borrow_mut();
        let is_added =
            self.all_pass(rows, zones) && target.aggregation.add_stored_zones(rows, zones);
        *target.passed += u64::from(is_added) * u64::from(rows);
        is_added
    }
}
