//! Ids of values of 16 bytes, as they are read from vectors.

use super::key::{Ids, KeyReader};
use super::key_values::KeyValues;
use crate::bytes16::Bytes16;
use crate::lane::LaneData;
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;

impl KeyReader {
    /// The ids of the selected rows of an attribute of 16 bytes.
    pub(super) fn assign_bytes16(
        &mut self,
        values: &mut KeyValues,
        frame: &Frame<'_>,
        selection: &Selection,
        attribute: usize,
    ) -> Ids<'_> {
        let valid = frame.present(attribute, selection);
        self.assign_null(values, &selection.and_not(&valid));
        if let LaneData::Fixed { values: all, .. } = frame.lane(attribute).data {
            // SAFETY: the lane covers the vector; bytes have no alignment.
            let all = unsafe { all.add(frame.place * 16).cast::<[u8; 16]>() };
            let mut id_of = |row: usize| {
                // SAFETY: as above.
                values.bytes16(Bytes16::of(unsafe { *all.add(row) }))
            };
            if self.cuts
                && valid == *selection
                // SAFETY: as above.
                && unsafe { self.stretches.cut(all, frame.rows, selection, &mut id_of) }
            {
                return self.stretches.ids();
            }
            let ids = &mut self.ids;
            let mut last: Option<(Bytes16, u32)> = None;
            valid.for_each(|row| {
                // SAFETY: as above.
                let value = Bytes16::of(unsafe { *all.add(row) });
                let id = match last {
                    Some((before, id)) if before == value => id,
                    _ => values.bytes16(value),
                };
                last = Some((value, id));
                ids[row] = id;
            });
        }
        Ids::Each(&*self.ids)
    }
}
