//! The first rows by texts and numerics, against a stable sort of all rows.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::{BestRows, ItemOrder, ItemSort, Order, SortBy, SortKey};
use crate::column::Column;
use crate::kind::LaneKind;
use crate::limits::VECTOR_ROWS;
use crate::test_support::{INT8, cases};
use crate::vector::frame::Frame;
use crate::vector::number::NumberType;
use crate::vector::selection::Selection;
use crate::vector::value::Value;

/// A row: an item, if it is not NULL, and a number.
type Row = (Option<Vec<u8>>, i64);

/// Compares as a collation does that does not tell small letters from capital ones.
fn collate(a: &[u8], b: &[u8], collation: u32) -> Ordering {
    assert_eq!(collation, 7);
    a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
}

fn item(payload: &[u8], is_packed: bool) -> Vec<u8> {
    match payload.len() {
        ..=126 if is_packed => [&[(payload.len() as u8 + 1) << 1 | 1], payload].concat(),
        length => [&((length as u32 + 4) << 2).to_le_bytes()[..], payload].concat(),
    }
}

/// Few texts, many of them with a common beginning.
fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let end = "[abAB ]{0,3}";
    let start = prop::sample::select(vec![0, 1, 7, 8, 9, 200]);
    (start, end).prop_map(|(start, end)| [vec![b'x'; start], end.into_bytes()].concat())
}

/// Texts of 2 digits, as numerics from -9,999 to 9,999 with some zeros. Either all of them are decimals, or some show
/// too many digits after the point.
fn numeric(text: &[u8], are_decimals: bool) -> Vec<u8> {
    let digit = |at: usize| text.get(at).map_or(0, |byte| u16::from(*byte));
    let scale = if are_decimals { digit(2) % 8 } else { digit(2) };
    let header = 0x8000 | (digit(0) & 1) << 13 | scale << 7 & 0x1F80;
    let words = [header, digit(1)];
    let words = if text.len() < 2 { &words[..1] } else { &words };
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn numeric_value(payload: &[u8]) -> i32 {
    let word = |at| u16::from_ne_bytes([payload[at], payload[at + 1]]);
    let digit = if payload.len() < 4 {
        0
    } else {
        i32::from(word(2))
    };
    if word(0) & 0x2000 != 0 { -digit } else { digit }
}

/// How two payloads are ordered.
fn expected(sort: ItemSort, a: &[u8], b: &[u8]) -> Ordering {
    let counted = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).into_owned();
        match sort.is_padded {
            true => text.trim_end_matches(' ').to_owned(),
            false => text,
        }
    };
    match sort.order {
        ItemOrder::Bytes => counted(a).cmp(&counted(b)),
        ItemOrder::Numeric => numeric_value(a).cmp(&numeric_value(b)),
        ItemOrder::Collated(..) => {
            let folded = |text| counted(text).to_lowercase();
            folded(a).cmp(&folded(b))
        }
    }
}

fn in_direction(order: Order, ordering: Ordering) -> Ordering {
    if order.descending {
        ordering.reverse()
    } else {
        ordering
    }
}

/// The numbers of all rows in order.
fn sorted(rows: &[Row], sort: ItemSort, orders: [Order; 2], keys: &[bool]) -> Vec<u64> {
    let mut all: Vec<usize> = (0..rows.len()).collect();
    if orders[usize::from(!keys[0])].descending {
        all.reverse();
    }
    let by_item = |a: usize, b: usize| match (&rows[a].0, &rows[b].0) {
        (Some(a), Some(b)) => in_direction(orders[0], expected(sort, a, b)),
        (a, b) => {
            let nulls = a.is_none().cmp(&b.is_none());
            if orders[0].nulls_first {
                nulls.reverse()
            } else {
                nulls
            }
        }
    };
    all.sort_by(|&a, &b| {
        let mut found = Ordering::Equal;
        for is_item in keys {
            found = found.then_with(|| match is_item {
                true => by_item(a, b),
                false => in_direction(orders[1], rows[a].1.cmp(&rows[b].1)),
            });
        }
        found
    });
    all.into_iter().map(|row| row as u64).collect()
}

/// Offers all rows once, in vectors of [`VECTOR_ROWS`].
fn offer(best: &mut BestRows, columns: &[Column], rows: usize) {
    let lanes: Vec<_> = columns.iter().map(Column::lane).collect();
    let dictionaries: Vec<_> = columns
        .iter()
        .map(|column| column.dictionary().unwrap_or_default())
        .collect();
    let mut places: Vec<usize> = (0..rows).step_by(VECTOR_ROWS).collect();
    if best.is_backward() {
        places.reverse();
    }
    for place in places {
        let frame = Frame {
            lanes: &lanes,
            dictionaries: &dictionaries,
            place,
            ..Frame::of_nulls(VECTOR_ROWS.min(rows - place), &[])
        };
        let selection = Selection::first(frame.rows);
        best.offer(&frame, place as u64, &selection, |_| true)
            .unwrap();
    }
}

fn columns(rows: &[Row], dictionary: bool, packed: bool) -> Vec<Column> {
    let mut items = Column::new(LaneKind::Varlena { dictionary, packed });
    let mut numbers = Column::new(INT8);
    for (payload, number) in rows {
        match payload {
            Some(payload) => items.push_item(&item(payload, packed)),
            None => items.push_null(),
        }
        numbers.push_fixed(&number.to_ne_bytes());
    }
    vec![items, numbers]
}

fn any_order() -> impl Strategy<Value = Order> {
    any::<(bool, bool)>().prop_map(|(descending, nulls_first)| Order {
        descending,
        nulls_first,
    })
}

fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (prop::option::weighted(0.9, any_text()), 0..3_i64);
    // The rows of few are repeated, so that there are several vectors.
    (
        prop::collection::vec(row, 1..60),
        prop::sample::select(vec![1_usize, 90]),
    )
        .prop_map(|(rows, times)| std::iter::repeat_n(rows, times).flatten().collect())
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn passes_give_all_rows_in_order(
        rows in any_rows(), kind in 0..5_usize, is_padded: bool, orders in [any_order(), any_order()],
        keys in prop::sample::select(vec![vec![true], vec![true, false], vec![false, true]]),
        dictionary: bool, packed: bool, max in 1..2_000_usize,
        bytes_max in prop::sample::select(vec![0, 3_000, usize::MAX]),
    ) {
        let mut rows = rows;
        let order = match kind {
            0 | 3 => ItemOrder::Bytes,
            1 => ItemOrder::Collated(collate, 7),
            _ => ItemOrder::Numeric,
        };
        let is_numeric = matches!(order, ItemOrder::Numeric);
        if is_numeric {
            rows.iter_mut().for_each(|(text, _)| *text = text.take().map(|text| numeric(&text, kind == 4)));
        }
        let sort = ItemSort { order, is_padded: is_padded && !is_numeric };
        let by = |is_item: &bool| match is_item {
            true => SortKey { by: SortBy::Item(0, sort), order: orders[0] },
            false => SortKey { by: SortBy::Number(Value::Column(NumberType::I64, 1)), order: orders[1] },
        };
        // Passes of few rows would be many.
        rows.truncate(if max < 50 || bytes_max == 0 { 200 } else { usize::MAX });
        let mut best = BestRows::new(keys.iter().map(by).collect());
        let columns = columns(&rows, dictionary, packed);
        let (mut found, mut more) = (Vec::new(), true);
        while more {
            best.begin(max, bytes_max);
            offer(&mut best, &columns, rows.len());
            prop_assert!(best.bytes() <= bytes_max.saturating_add(max * BestRows::ROW_BYTES * 2) || bytes_max == 0);
            let ordered = best.take();
            prop_assert!(!ordered.rows.is_empty() && ordered.rows.len() <= max);
            found.extend(ordered.rows);
            more = ordered.more;
        }
        prop_assert_eq!(found, sorted(&rows, sort, orders, &keys));
    }
}
