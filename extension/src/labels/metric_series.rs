//! The series of one metric, for its view.
//!
//! The planner passes a condition of the query on a label (`labels->>'job' = 'node'`, see
//! [`conditions`]) to the function ([`super::narrow`]), so that only series which meet it are
//! looked up. The query checks the condition too.
//!
//! A session [keeps](SelectionCache) the series that it has looked up in the label index, with their labels.

use std::cell::RefCell;
use std::rc::Rc;

use lanes_labels::{IdSet, METRIC_NAME, Matcher, Selector};
use pgrx::prelude::*;

use super::conditions;
use super::jsonb;
use super::label_sets::{each_label_set, each_of_metric};
use super::selection_cache::{ENTRY_SERIES_MAX, SelectionCache};
use super::source::Index;
use crate::pg::text::{self, LazyJsonb};

/// A series: its id and its labels.
type Series = (i32, LazyJsonb);

/// What a series takes beside its labels, which are kept as a text and as a value.
const SERIES_BYTES: usize = 160;

thread_local! {
    static CACHE: RefCell<SelectionCache<Rc<[Series]>>> = RefCell::default();
}

/// The ids and labels of the series of a metric. With conditions, only of series that may meet them.
#[pg_extern(sql = false)]
fn metric_series(
    metric: Option<&[u8]>,
    conditions: Option<Array<&[u8]>>,
) -> TableIterator<'static, (name!(id, i32), name!(labels, LazyJsonb))> {
    let conditions = conditions.map(|conditions| {
        let texts = conditions.iter().map(|text| text.map(utf8));
        texts.collect::<Vec<Option<String>>>()
    });
    let found = metric.map(|metric| series_of(metric, conditions.as_deref()));
    TableIterator::new(found.unwrap_or_default())
}

fn series_of(metric: &[u8], texts: Option<&[Option<String>]>) -> Vec<Series> {
    let mut index = Index::visible();
    let version = index.version();
    if version.is_none() && texts.is_none() {
        let mut found = Vec::new();
        each_of_metric(metric, |id, labels| found.push(series(id, labels)));
        return found;
    }
    let (mut matchers, mut conditions) = conditions::read(texts.unwrap_or_default());
    matchers.push(Matcher::one_of(METRIC_NAME.to_owned(), vec![utf8(metric)]));
    let selector = Selector { matchers };
    let key = version.map(|version| format!("{version}{metric:?}{texts:?}"));
    let known = key
        .as_ref()
        .and_then(|key| CACHE.with_borrow_mut(|cache| cache.get(key)));
    let mut found = match known {
        Some(known) => known.to_vec(),
        None => {
            let covered = index.select_covered(&selector, &mut conditions);
            let (series, bytes) = read(&covered, metric);
            if let Some(key) = key
                && covered.len() <= ENTRY_SERIES_MAX
            {
                CACHE.with_borrow_mut(|cache| cache.put(key, series.clone().into(), bytes));
            }
            series
        }
    };
    found.extend(read(&index.select_after(&selector), metric).0);
    found
}

/// Reads the labels of series of a metric, and returns them and their size in bytes.
fn read(ids: &IdSet, metric: &[u8]) -> (Vec<Series>, usize) {
    let (mut found, mut bytes) = (Vec::new(), 0);
    each_label_set(ids, Some(metric), |id, _, labels| {
        bytes += 2 * labels.len() + SERIES_BYTES;
        found.push(series(id, labels));
    });
    (found, bytes)
}

fn series(id: u32, labels: &str) -> Series {
    let labels = LazyJsonb::new(labels.to_owned(), jsonb::of_label_set);
    (id as i32, labels)
}

fn utf8(text: &[u8]) -> String {
    String::from_utf8_lossy(&text::utf8_text(text)).into_owned()
}
