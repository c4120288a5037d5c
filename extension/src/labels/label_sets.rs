//! The label sets of series by id.

use lanes_labels::IdSet;
use pgrx::pg_sys::BuiltinOid::INT4OID;
use pgrx::prelude::*;

use super::packed;
use crate::pg::statement::{Row, Statement};
use crate::pg::text;

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

/// Calls `visit` with the id, the metric and the label set of each of these series that the caller may see, in the order
/// of their ids.
pub fn each_label_set(wanted: &IdSet, mut visit: impl FnMut(u32, &str, &str)) {
    let (Some(first), Some(last)) = (wanted.min(), wanted.max()) else {
        return;
    };
    let bounds = [
        pg_sys::Datum::from(first as i32),
        pg_sys::Datum::from(last as i32),
    ];
    IN_RANGE.each_row(&bounds, |row| {
        let mut metric = None;
        each_of_row(&row, Some(wanted), &mut |id, labels| {
            let metric = metric.get_or_insert_with(|| {
                let metric = text::utf8_text(row.get(4).unwrap_or_default());
                String::from_utf8_lossy(&metric).into_owned()
            });
            visit(id, metric, labels);
        });
        pgrx::check_for_interrupts!();
    });
}

/// Calls `visit` with the id and the label set of each requested series of one registration: a row whose first columns
/// are the first id, the last id and the packed label sets. Returns the registration's last id.
pub fn each_of_row(row: &Row, wanted: Option<&IdSet>, visit: &mut impl FnMut(u32, &str)) -> u32 {
    let columns = (row.get::<i32>(1), row.get::<i32>(2));
    let (Some(first), Some(last)) = columns else {
        return 0;
    };
    let (first, last) = (first as u32, last as u32);
    if wanted.is_some_and(|wanted| wanted.range_cardinality(first..=last) == 0) {
        return last;
    }
    let mut id = first;
    packed::unpack(row.get(3).unwrap_or_default(), |labels| {
        if wanted.is_none_or(|wanted| wanted.contains(id)) {
            visit(id, labels);
        }
        id += 1;
    });
    last
}
