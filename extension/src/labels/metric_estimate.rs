//! What the planner knows about [`lanes.metric_series()`](super::metric_series): how many series a metric has, and that
//! no two of them have the same id.
//!
//! The number decides whether a query of the metric's samples is worth several processes. It is that of the label
//! index, without the series that no run covers yet. A session keeps it for a minute, since planning a small query
//! should not read the index. The conditions of the query are not counted: the planner estimates their share as that of
//! any condition. Whoever may not read the index gets the constant with which the function is declared.
//!
//! Of a function of 200 rows or more, PostgreSQL would assume that its ids repeat. A hash join without vectors would
//! then rather hash the samples than the series.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use lanes_labels::{METRIC_NAME, Matcher, Selector};
use pgrx::datum::Internal;
use pgrx::prelude::*;

use super::narrow::is_metric_series;
use super::source::{Index, TABLES};
use crate::pg::hooks::ColumnHook;
use crate::pg::snapshot::Snapshot;
use crate::pg::tree::RangeTblEntry;
use crate::pg::{catalog, permission, support_request, table_catalog, text};

/// The time for which a session keeps the number of a metric's series.
const KEPT: Duration = Duration::from_secs(60);
/// The number of metrics that a session keeps.
const METRICS_MAX: usize = 4096;
/// The column `id` of the function's rows.
const ID: i16 = 1;

/// Metrics by the table of their series, as the extension may be created anew, and by name.
type Known = HashMap<(pg_sys::Oid, Vec<u8>), (Instant, u64)>;

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

/// The support function of `lanes.metric_series(text, text[])`.
#[pg_extern(sql = false)]
fn metric_series_support(request: Internal) -> Internal {
    let series = support_request::rows_request(request).and_then(|request| {
        let call = request.call()?.as_func()?;
        let metric = call.args().get(0)?.as_const()?.value()?.bytes()?;
        Some((series_of(&metric)?, request))
    });
    match series {
        Some((series, request)) => support_request::answered(request, series.max(1) as f64),
        None => support_request::no_answer(),
    }
}

/// The number of a metric's series; `None` if the current user may not read it, or if the index has none.
fn series_of(metric: &[u8]) -> Option<u64> {
    if !Snapshot::is_any_active() {
        return None;
    }
    let tables: Vec<_> = TABLES
        .iter()
        .map(|name| catalog::lanes_table(name))
        .collect::<Option<_>>()?;
    let is_readable = |table: &pg_sys::Oid| {
        permission::may_read(*table) && !table_catalog::applies_row_security(*table, true)
    };
    if !tables.iter().all(is_readable) {
        return None;
    }
    let key = (tables[0], metric.to_vec());
    let known = KNOWN.with_borrow(|known| known.get(&key).copied());
    if let Some((since, series)) = known
        && since.elapsed() < KEPT
    {
        return (series > 0).then_some(series);
    }
    let name = String::from_utf8_lossy(&text::utf8_text(metric)).into_owned();
    let matchers = vec![Matcher::one_of(METRIC_NAME.to_owned(), vec![name])];
    let series = Index::visible()
        .select_covered(&Selector { matchers }, &mut [])
        .len();
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= METRICS_MAX {
            known.clear();
        }
        known.insert(key, (Instant::now(), series));
    });
    (series > 0).then_some(series)
}

/// Whether an entry of FROM is the function alone.
pub fn reads_series(entry: RangeTblEntry<'_>) -> bool {
    let functions = entry.functions();
    let call = || functions.first()?.funcexpr()?.as_func();
    entry.rtekind() == pg_sys::RTEKind::RTE_FUNCTION
        && functions.len() == 1
        && call().is_some_and(|call| is_metric_series(call.funcid()))
}

/// The hook by which the planner learns that ids are unique.
pub struct SeriesIds;

impl ColumnHook for SeriesIds {
    fn is_unique(entry: RangeTblEntry<'_>, column: i16) -> bool {
        column == ID && reads_series(entry)
    }
}
