//! The label sets of series by id.

use lanes_labels::IdSet;
use pgrx::pg_sys::BuiltinOid::{INT4OID, TEXTOID};
use pgrx::prelude::*;

use super::packed;
use crate::pg::statement::{OwnedArgument, Row, Statement};
use crate::pg::text;

/// The registration that contains an id.
static WITH_ID: Statement = Statement::reading(
    c"
    SELECT first_id, last_id, labels, metric FROM lanes.series_runs
     WHERE first_id OPERATOR(pg_catalog.<=) $1 ORDER BY first_id DESC LIMIT 1",
    &[INT4OID],
);

/// The registrations of a metric that may contain series of a range of ids.
static OF_METRIC: Statement = Statement::reading(
    c"
    SELECT first_id, last_id, labels, metric FROM lanes.series_runs
     WHERE metric OPERATOR(pg_catalog.=) $1
       AND first_id OPERATOR(pg_catalog.<=) $3 AND last_id OPERATOR(pg_catalog.>=) $2
     ORDER BY first_id",
    &[TEXTOID, INT4OID, INT4OID],
);

/// The registrations that may contain series of a range of ids.
static IN_RANGE: Statement = Statement::reading(
    c"
    SELECT first_id, last_id, labels, metric FROM lanes.series_runs
     WHERE first_id OPERATOR(pg_catalog.<=) $2
       AND first_id OPERATOR(pg_catalog.>=) COALESCE(
               (SELECT pg_catalog.max(n.first_id) FROM lanes.series_runs AS n
                 WHERE n.first_id OPERATOR(pg_catalog.<=) $1), 0)
     ORDER BY first_id",
    &[INT4OID, INT4OID],
);

/// The largest number of series that are looked up one by one. For more, registrations are read in their order.
const LOOKED_UP_MAX: u64 = 16;

/// Calls `visit` with the id, the metric and the label set of each of these series that the caller
/// may see, in the order of their ids. If all of them are of one metric, its name saves reading the
/// registrations of others.
pub fn each_label_set(
    wanted: &IdSet,
    metric: Option<&[u8]>,
    mut visit: impl FnMut(u32, &str, &str),
) {
    let (Some(first), Some(last)) = (wanted.min(), wanted.max()) else {
        return;
    };
    if wanted.len() <= LOOKED_UP_MAX {
        // Ids are in ascending order, so the ids of a registration are adjacent.
        let mut seen_to = 0;
        for id in wanted {
            if id > seen_to {
                WITH_ID.each_row(&[pg_sys::Datum::from(id as i32)], |row| {
                    seen_to = each_of_row(&row, Some(wanted), &mut visit).max(id);
                });
            }
        }
        return;
    }
    let bounds = [first, last].map(|id| pg_sys::Datum::from(id as i32));
    let mut visit_row = |row: Row| {
        each_of_row(&row, Some(wanted), &mut visit);
        pgrx::check_for_interrupts!();
    };
    match metric {
        Some(metric) => {
            let metric = OwnedArgument::of_text(metric);
            OF_METRIC.each_row(&[metric.datum(), bounds[0], bounds[1]], &mut visit_row);
        }
        None => IN_RANGE.each_row(&bounds, &mut visit_row),
    }
}

/// Calls `visit` with the id and the label set of each series of a metric that the caller may see, in the order of
/// their ids.
pub fn each_of_metric(metric: &[u8], mut visit: impl FnMut(u32, &str)) {
    let metric = OwnedArgument::of_text(metric);
    let bounds = [0, i32::MAX].map(pg_sys::Datum::from);
    OF_METRIC.each_row(&[metric.datum(), bounds[0], bounds[1]], |row| {
        each_of_row(&row, None, &mut |id, _, labels| visit(id, labels));
        pgrx::check_for_interrupts!();
    });
}

/// Calls `visit` with the id, the metric and the label set of each requested series of one registration. Returns the
/// registration's last id.
fn each_of_row(row: &Row, wanted: Option<&IdSet>, visit: &mut impl FnMut(u32, &str, &str)) -> u32 {
    let columns = (row.get::<i32>(1), row.get::<i32>(2));
    let (Some(first), Some(last)) = columns else {
        return 0;
    };
    let (first, last) = (first as u32, last as u32);
    if wanted.is_some_and(|wanted| wanted.range_cardinality(first..=last) == 0) {
        return last;
    }
    let metric = text::utf8_text(row.get(4).unwrap_or_default());
    let metric = String::from_utf8_lossy(&metric);
    packed::unpack_wanted(
        row.get(3).unwrap_or_default(),
        |place| wanted.is_none_or(|wanted| wanted.contains(first + place)),
        |place, labels| visit(first + place, &metric, labels),
    );
    last
}
