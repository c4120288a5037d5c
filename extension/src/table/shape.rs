//! The shape of a table's rows: everything that is needed to read them as rows of some descriptor.

use std::hash::{DefaultHasher, Hash, Hasher};

use lanes_columnar::arena::RelationKey;
use lanes_columnar::column::Column;
use lanes_columnar::kind::LaneKind;

use crate::pg::datum::{self, Outlet};
use crate::pg::descriptor::Descriptor;
use crate::pg::table::OpenTable;
use crate::storage::metapage::Meta;

/// Everything that is needed to read rows of a table as rows of some descriptor: the kinds of the
/// attributes, how each of them is stored in slots, and their values in rows that are older than an
/// ADD COLUMN.
pub struct TableShape {
    pub kinds: Vec<LaneKind>,
    pub outlets: Vec<Outlet>,
    pub missing: Vec<Option<Vec<u8>>>,
    /// Identifies the shape; see [`arena_key`].
    pub fingerprint: u64,
}

impl TableShape {
    pub fn of(descriptor: Descriptor<'_>) -> TableShape {
        let kinds = datum::kinds(descriptor);
        let missing = missing_values(descriptor, &kinds);
        let outlets = datum::outlets(descriptor, &kinds);
        let fingerprint = fingerprint(&kinds, &missing);
        TableShape {
            kinds,
            outlets,
            missing,
            fingerprint,
        }
    }

    /// The shape for a reader of these attributes alone. The others become NULLs and are not
    /// decoded.
    pub fn only(&self, wanted: &[usize]) -> TableShape {
        let place = |index: &usize| wanted.contains(index);
        let kinds = self.kinds.iter().enumerate();
        let kinds = kinds.map(|(index, kind)| {
            if place(&index) {
                *kind
            } else {
                LaneKind::Absent
            }
        });
        let missing = self.missing.iter().enumerate();
        TableShape {
            kinds: kinds.collect(),
            outlets: Vec::new(),
            missing: missing
                .map(|(index, value)| value.clone().filter(|_| place(&index)))
                .collect(),
            fingerprint: self.fingerprint,
        }
    }

    /// The bytes that a row takes in memory, without the bytes of items.
    pub fn bytes_a_row(&self) -> u64 {
        let width = |kind: &LaneKind| match *kind {
            LaneKind::Absent | LaneKind::Bool => 1,
            LaneKind::Fixed { stride, .. } => u64::from(stride),
            LaneKind::Varlena { .. } => 12,
        };
        self.kinds.iter().map(width).sum()
    }

    /// Empty columns of this shape.
    pub fn columns(&self) -> Vec<Column> {
        self.kinds.iter().map(|kind| Column::new(*kind)).collect()
    }
}

fn missing_values(descriptor: Descriptor<'_>, kinds: &[LaneKind]) -> Vec<Option<Vec<u8>>> {
    let value_of = |(i, kind): (usize, &LaneKind)| {
        if *kind == LaneKind::Absent {
            return None;
        }
        datum::missing_bytes(descriptor, i, *kind)
    };
    kinds.iter().enumerate().map(value_of).collect()
}

fn fingerprint(kinds: &[LaneKind], missing: &[Option<Vec<u8>>]) -> u64 {
    // Equal in every process, because the hasher has fixed keys.
    let mut hasher = DefaultHasher::new();
    for kind in kinds {
        match *kind {
            LaneKind::Absent => 0u64.hash(&mut hasher),
            LaneKind::Bool => 1u64.hash(&mut hasher),
            LaneKind::Fixed {
                width,
                stride,
                number,
            } => (2u64, width, stride, number as u8).hash(&mut hasher),
            LaneKind::Varlena { dictionary, packed } => {
                (3u64, dictionary, packed).hash(&mut hasher)
            }
        }
    }
    missing.hash(&mut hasher);
    hasher.finish()
}

/// The arena's key: the file, and the shape in which its rows were decoded. Each change of the
/// table's columns makes another shape, and so does rolling it back. So nobody reads what an ALTER
/// TABLE that was rolled back had decoded.
pub fn arena_key(table: OpenTable<'_>, meta: &Meta, fingerprint: u64) -> RelationKey {
    let key = meta.key(table);
    RelationKey {
        shape: fingerprint,
        ..key
    }
}
