//! The route directly into lanes: vectors are copied, and dictionaries stay dictionaries. The index entries of a run
//! are made once it is written.

use lanes_columnar::column::Column;
use lanes_columnar::kind::LaneKind;
use lanes_wire::{BatchView, ColumnView, Values};

use super::convert::{self, Conversion};
use super::refusal::Refusal;
use super::target::{AppendTarget, Filling};
use crate::pg::{datum, ports, text, transaction};
use crate::table::append::RUN_ROWS_MAX;
use crate::table::insert;
use crate::table::run_indexes::RunIndexes;

// Chunks of a batch begin at whole words of its bitmaps.
const _: () = assert!(RUN_ROWS_MAX.is_multiple_of(64));

/// Appends the batch as one run for each [`RUN_ROWS_MAX`] rows, all of them of the current command.
/// Returns the number of the first row, and the rows of each run.
pub fn append(
    target: &AppendTarget,
    batch: &BatchView<'_>,
    fillings: &[Filling],
) -> Result<Vec<(u64, usize)>, Refusal> {
    let table = target.table();
    let kinds = datum::kinds(table.descriptor());
    let command = transaction::writing_command();
    let mut feeds: Vec<Feed<'_>> = fillings
        .iter()
        .zip(&kinds)
        .map(|(filling, kind)| match filling {
            Filling::Constant(value) => Feed::Constant(value.as_deref()),
            Filling::Column { index, conversion } => Feed::Column(ColumnFeed::new(
                &batch.columns()[*index],
                *conversion,
                *kind,
            )),
        })
        .collect();
    let mut columns: Vec<Column> = kinds.iter().map(|kind| Column::new(*kind)).collect();
    let indexes = RunIndexes::open(table);
    let mut runs = Vec::with_capacity(batch.rows().div_ceil(RUN_ROWS_MAX));
    for first in (0..batch.rows()).step_by(RUN_ROWS_MAX) {
        ports::CHECK_FOR_INTERRUPTS();
        let rows = RUN_ROWS_MAX.min(batch.rows() - first);
        for (column, feed) in columns.iter_mut().zip(&mut feeds) {
            column.clear();
            match feed {
                Feed::Constant(value) => column.push_repeated(*value, rows),
                Feed::Column(feed) => feed.pour(column, first, rows)?,
            }
        }
        let first_row = insert::insert_columns(table, &kinds, &columns, rows, command, 0);
        indexes.enter(table, &columns, rows, command, first_row);
        runs.push((first_row, rows));
    }
    indexes.close();
    Ok(runs)
}

enum Feed<'a> {
    Constant(Option<&'a [u8]>),
    Column(ColumnFeed<'a>),
}

/// A batch column on its way into an attribute, with everything that is computed once for all
/// chunks.
struct ColumnFeed<'a> {
    view: &'a ColumnView<'a>,
    conversion: Conversion,
    validity: Option<Vec<u64>>,
    bits: Vec<u64>,
    codes: Vec<u32>,
    items: Items,
    packed: bool,
    scratch: Vec<u8>,
}

/// Dictionary items as varlenas, one after another.
#[derive(Default)]
struct Items {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Items {
    fn slices(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.bytes[start..*end])
            .collect()
    }
}

impl<'a> ColumnFeed<'a> {
    fn new(view: &'a ColumnView<'a>, conversion: Conversion, kind: LaneKind) -> Self {
        let packed = matches!(kind, LaneKind::Varlena { packed: true, .. });
        let mut feed = ColumnFeed {
            view,
            conversion,
            validity: view.validity().map(|bits| bits.words().collect()),
            bits: Vec::new(),
            codes: Vec::new(),
            items: Items::default(),
            packed,
            scratch: Vec::new(),
        };
        match view.values() {
            Values::Bool(bits) => bits.words_into(&mut feed.bits),
            Values::Codes { codes, items } => {
                codes.widen_into(&mut feed.codes);
                let mut item = Vec::new();
                for payload in items.iter() {
                    datum::item_from_payload(&feed.payload(payload), packed, &mut item);
                    feed.items.bytes.extend_from_slice(&item);
                    feed.items.ends.push(feed.items.bytes.len());
                }
            }
            Values::Fixed { .. } | Values::Items(_) => {}
        }
        feed
    }

    /// An item as the server keeps it.
    fn payload<'b>(&self, payload: &'b [u8]) -> std::borrow::Cow<'b, [u8]> {
        match self.conversion {
            Conversion::Text => text::server_text(payload),
            _ => std::borrow::Cow::Borrowed(payload),
        }
    }

    /// Fills an empty column with `rows` rows from `first` on.
    fn pour(&mut self, column: &mut Column, first: usize, rows: usize) -> Result<(), Refusal> {
        let words = first / 64..(first + rows).div_ceil(64);
        let view = self.view;
        let validity = self
            .validity
            .as_ref()
            .map(|validity| &validity[words.clone()]);
        match view.values() {
            Values::Bool(_) => column.extend_bools(&self.bits[words], validity, rows),
            Values::Fixed { width, bytes } => {
                if self.conversion.is_identity(view.column_type()) {
                    column.extend_fixed(&bytes[first * width..][..rows * width], validity, rows);
                } else {
                    column.extend_fixed_with(validity, rows, |out| {
                        converted(view, self.conversion, first, out)
                    })?;
                }
            }
            Values::Codes { .. } => {
                let codes = &self.codes[first..][..rows];
                if let Err(error) = column.extend_codes(codes, &self.items.slices(), validity) {
                    // Verified codes cannot be out of range, so this is a bug. It must cost the
                    // transaction at most.
                    pgrx::error!("column \"{}\": {error}", view.name());
                }
            }
            Values::Items(items) => {
                let mut item = std::mem::take(&mut self.scratch);
                for row in first..first + rows {
                    if view.is_null(row) {
                        column.push_null();
                    } else {
                        datum::item_from_payload(
                            &self.payload(items.get(row)),
                            self.packed,
                            &mut item,
                        );
                        column.push_item(&item);
                    }
                }
                self.scratch = item;
            }
        }
        Ok(())
    }
}

/// Writes values in the attribute's bytes from row `first` on, until `out` is full, which holds
/// zeros. Under NULLs any value is written.
fn converted(
    view: &ColumnView<'_>,
    conversion: Conversion,
    first: usize,
    out: &mut [u8],
) -> Result<(), Refusal> {
    match (
        conversion,
        view.values().arrays::<8>(),
        view.values().arrays::<4>(),
    ) {
        // The frequent conversions take whole vectors at a time. NULL rows are converted too, to
        // avoid a branch.
        (Conversion::Timestamp, Some(values), _) => {
            for (slot, value) in out.as_chunks_mut::<8>().0.iter_mut().zip(&values[first..]) {
                *slot = convert::timestamp(i64::from_le_bytes(*value)).to_ne_bytes();
            }
        }
        (Conversion::Date, _, Some(values)) => {
            for (slot, value) in out.as_chunks_mut::<4>().0.iter_mut().zip(&values[first..]) {
                *slot = convert::date(i32::from_le_bytes(*value)).to_ne_bytes();
            }
        }
        _ => {
            let width = conversion.width().unwrap_or(1);
            for (row, slot) in (first..).zip(out.chunks_exact_mut(width)) {
                if !view.is_null(row) {
                    let value = convert::fixed(view, conversion, row)?;
                    slot.copy_from_slice(&value.to_le_bytes()[..width]);
                }
            }
        }
    }
    Ok(())
}
