//! The series of one metric, for its view.
//!
//! The planner passes a condition of the query on a label (`labels->>'job' = 'node'`, see [`conditions`]) to the function
//! ([`super::narrow`]), so that only series which meet it are looked up. The query checks the condition too.

use lanes_labels::{IdSet, METRIC_NAME, Matcher, Selector};
use pgrx::pg_sys::BuiltinOid::{INT4OID, TEXTOID};
use pgrx::prelude::*;

use super::conditions;
use super::jsonb;
use super::label_sets::each_of_row;
use super::source::Index;
use crate::pg::statement::Statement;
use crate::pg::text::{self, LazyJsonb};

static OF_METRIC: Statement = Statement::reading(
    c"
    SELECT first_id, last_id, labels FROM lanes.series_runs
     WHERE metric OPERATOR(pg_catalog.=) $1 ORDER BY first_id",
    &[TEXTOID],
);
static WITH_ID: Statement = Statement::reading(
    c"
    SELECT first_id, last_id, labels FROM lanes.series_runs
     WHERE first_id OPERATOR(pg_catalog.<=) $1 ORDER BY first_id DESC LIMIT 1",
    &[INT4OID],
);

/// The largest number of series that are looked up by id. For more, all registrations of the metric are read.
const LOOKED_UP_MAX: u64 = 16;

/// The ids and labels of the series of a metric. With conditions, only of series that may meet them.
#[pg_extern(sql = false)]
fn metric_series(
    metric: Option<&[u8]>,
    conditions: Option<Array<&[u8]>>,
) -> TableIterator<'static, (name!(id, i32), name!(labels, LazyJsonb))> {
    let mut found = Vec::new();
    if let Some(metric) = metric {
        let wanted = conditions.map(|conditions| {
            let texts: Vec<Option<String>> = conditions.iter().map(|text| text.map(utf8)).collect();
            let (mut matchers, mut conditions) = conditions::read(&texts);
            matchers.push(Matcher::one_of(METRIC_NAME.to_owned(), vec![utf8(metric)]));
            Index::visible().select_meeting(&Selector { matchers }, &mut conditions)
        });
        each_of(metric, wanted.as_ref(), |id, labels| {
            let labels = LazyJsonb {
                text: labels.to_owned(),
                convert: jsonb::of_label_set,
            };
            found.push((id as i32, labels));
        });
    }
    TableIterator::new(found)
}

fn utf8(text: &[u8]) -> String {
    String::from_utf8_lossy(&text::utf8_text(text)).into_owned()
}

/// Calls `visit` with the id and the label set of each requested series of the metric.
fn each_of(metric: &[u8], wanted: Option<&IdSet>, mut visit: impl FnMut(u32, &str)) {
    if let Some(wanted) = wanted
        && wanted.len() <= LOOKED_UP_MAX
    {
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
    let Some(argument) = metric.into_datum() else {
        return;
    };
    OF_METRIC.each_row(&[argument], |row| {
        each_of_row(&row, wanted, &mut visit);
        pgrx::check_for_interrupts!();
    });
}
