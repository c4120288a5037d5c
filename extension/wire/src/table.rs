//! FlatBuffers tables. Every step is checked against the buffer, so nothing here can leave it,
//! whatever its bytes contain. Offsets are followed at most three levels deep and never in a loop,
//! so reading ends.

use crate::BatchError;

/// `count` bytes at `position`.
pub(crate) fn bytes_at(buffer: &[u8], position: usize, count: usize) -> Result<&[u8], BatchError> {
    buffer
        .get(position..)
        .and_then(|rest| rest.get(..count))
        .ok_or(BatchError::Malformed {
            position,
            problem: "leaves the buffer",
        })
}

fn array_at<const N: usize>(buffer: &[u8], position: usize) -> Result<[u8; N], BatchError> {
    match bytes_at(buffer, position, N)?.first_chunk() {
        Some(bytes) => Ok(*bytes),
        None => Err(BatchError::Malformed {
            position,
            problem: "leaves the buffer",
        }),
    }
}

fn u16_at(buffer: &[u8], position: usize) -> Result<usize, BatchError> {
    Ok(u16::from_le_bytes(array_at(buffer, position)?) as usize)
}

pub(crate) fn u32_at(buffer: &[u8], position: usize) -> Result<u32, BatchError> {
    Ok(u32::from_le_bytes(array_at(buffer, position)?))
}

/// Where the reference at `position` leads.
pub(crate) fn follow(buffer: &[u8], position: usize) -> Result<usize, BatchError> {
    let distance = u32_at(buffer, position)? as usize;
    position
        .checked_add(distance)
        .filter(|target| distance > 0 && *target < buffer.len())
        .ok_or(BatchError::Malformed {
            position,
            problem: "reference leaves the buffer",
        })
}

/// The elements of the vector at `position`.
pub(crate) fn vector_at(
    buffer: &[u8],
    position: usize,
    element_bytes: usize,
) -> Result<&[u8], BatchError> {
    let elements = u32_at(buffer, position)? as usize;
    let bytes = elements
        .checked_mul(element_bytes)
        .ok_or(BatchError::Malformed {
            position,
            problem: "vector leaves the buffer",
        })?;
    bytes_at(buffer, position + 4, bytes)
}

/// A table whose vtable and inline bytes are within the buffer.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    buffer: &'a [u8],
    position: usize,
    inline_bytes: usize,
    vtable: &'a [u8],
}

impl<'a> Table<'a> {
    /// The table at `position`.
    pub(crate) fn at(buffer: &'a [u8], position: usize) -> Result<Self, BatchError> {
        let malformed = |problem| BatchError::Malformed { position, problem };
        let back = i32::from_le_bytes(array_at(buffer, position)?);
        let vtable_position = i64::try_from(position)
            .ok()
            .and_then(|position| usize::try_from(position - i64::from(back)).ok())
            .ok_or(malformed("vtable leaves the buffer"))?;
        let vtable_bytes = u16_at(buffer, vtable_position)?;
        if vtable_bytes < 4 || !vtable_bytes.is_multiple_of(2) {
            return Err(malformed("vtable has no proper length"));
        }
        let vtable = bytes_at(buffer, vtable_position, vtable_bytes)?;
        let inline_bytes = u16_at(vtable, 2)?;
        if inline_bytes < 4 {
            return Err(malformed("table is shorter than its header"));
        }
        bytes_at(buffer, position, inline_bytes)?;
        Ok(Table {
            buffer,
            position,
            inline_bytes,
            vtable,
        })
    }

    /// Where the inline bytes of `slot` lie, or `None` if the field is absent.
    fn field(&self, slot: usize, bytes: usize) -> Result<Option<usize>, BatchError> {
        let entry = 4 + 2 * slot;
        if entry >= self.vtable.len() {
            return Ok(None);
        }
        match u16_at(self.vtable, entry)? {
            0 => Ok(None),
            offset if offset >= 4 && offset + bytes <= self.inline_bytes => {
                Ok(Some(self.position + offset))
            }
            _ => Err(BatchError::Malformed {
                position: self.position,
                problem: "field leaves its table",
            }),
        }
    }

    /// A `ubyte` field; 0 when absent.
    pub(crate) fn u8(&self, slot: usize) -> Result<u8, BatchError> {
        match self.field(slot, 1)? {
            Some(position) => Ok(array_at::<1>(self.buffer, position)?[0]),
            None => Ok(0),
        }
    }

    /// A `uint` field; 0 when absent.
    pub(crate) fn u32(&self, slot: usize) -> Result<u32, BatchError> {
        match self.field(slot, 4)? {
            Some(position) => u32_at(self.buffer, position),
            None => Ok(0),
        }
    }

    /// Where a referred table or vector lies.
    pub(crate) fn reference(&self, slot: usize) -> Result<Option<usize>, BatchError> {
        match self.field(slot, 4)? {
            Some(position) => follow(self.buffer, position).map(Some),
            None => Ok(None),
        }
    }

    /// The elements of a vector or string field.
    pub(crate) fn vector(
        &self,
        slot: usize,
        element_bytes: usize,
    ) -> Result<Option<&'a [u8]>, BatchError> {
        match self.reference(slot)? {
            Some(position) => vector_at(self.buffer, position, element_bytes).map(Some),
            None => Ok(None),
        }
    }

    /// A table field.
    pub(crate) fn table(&self, slot: usize) -> Result<Option<Table<'a>>, BatchError> {
        match self.reference(slot)? {
            Some(position) => Table::at(self.buffer, position).map(Some),
            None => Ok(None),
        }
    }
}
