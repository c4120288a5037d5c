//! The series of one metric, for its view.
//!
//! The planner passes a condition of the query on a label (`labels->>'job' = 'node'`, see
//! [`conditions`]) to the function ([`super::narrow`]), so that only series which meet it are
//! looked up. The query checks the condition too.

use lanes_labels::{METRIC_NAME, Matcher, Selector};
use pgrx::prelude::*;

use super::conditions;
use super::jsonb;
use super::label_sets::{each_label_set, each_of_metric};
use super::source::Index;
use crate::pg::text::{self, LazyJsonb};

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
        let mut take = |id: u32, labels: &str| {
            let labels = LazyJsonb::new(labels.to_owned(), jsonb::of_label_set);
            found.push((id as i32, labels));
        };
        match wanted {
            Some(wanted) => {
                each_label_set(&wanted, Some(metric), |id, _, labels| take(id, labels));
            }
            None => each_of_metric(metric, take),
        }
    }
    TableIterator::new(found)
}

fn utf8(text: &[u8]) -> String {
    String::from_utf8_lossy(&text::utf8_text(text)).into_owned()
}
