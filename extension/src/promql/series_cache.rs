//! The series that selectors of this session have selected, with their labels, as a [`SelectionCache`].

use std::cell::RefCell;
use std::sync::Arc;

use lanes_promql::labels::Labels;

use crate::labels::selection_cache::SelectionCache;

/// A series: its id and its labels.
pub type IdentifiedSeries = (u32, Labels);

/// What a series takes beside the text of its labels, roughly.
const SERIES_BYTES: usize = 96;
/// What each label takes beside its text.
const LABEL_BYTES: usize = 8;

thread_local! {
    static CACHE: RefCell<SelectionCache<Arc<[IdentifiedSeries]>>> = RefCell::default();
}

/// The series of a key, if the cache has them.
pub fn get(key: &str) -> Option<Arc<[IdentifiedSeries]>> {
    CACHE.with_borrow_mut(|cache| cache.get(key))
}

/// Keeps the series of a key.
pub fn put(key: String, series: &Arc<[IdentifiedSeries]>) {
    let bytes = series.iter().map(bytes_of).sum();
    CACHE.with_borrow_mut(|cache| cache.put(key, Arc::clone(series), bytes));
}

fn bytes_of((_, labels): &IdentifiedSeries) -> usize {
    let texts = labels.iter().map(|(name, value)| name.len() + value.len());
    SERIES_BYTES + texts.map(|text| text + LABEL_BYTES).sum::<usize>()
}
