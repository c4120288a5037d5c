//! How the values of one column are laid out in memory.

/// The number type of fixed-width bytes, as far as zone maps and kernels need it. It is not part of
/// the stored form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    /// Nothing that can be put in order here.
    Opaque,
    /// A two's complement integer of 2, 4 or 8 bytes.
    Signed,
    /// An IEEE 754 number of 4 or 8 bytes.
    Float,
    /// [16 bytes](crate::bytes16::Bytes16) in the order of `memcmp`.
    Bytes16,
}

impl Number {
    /// Whether numbers of this sort have `width` bytes.
    #[inline]
    pub const fn has_width(self, width: u16) -> bool {
        match self {
            Number::Opaque => true,
            Number::Signed => matches!(width, 2 | 4 | 8),
            Number::Float => matches!(width, 4 | 8),
            Number::Bytes16 => width == 16,
        }
    }
}

/// The physical kind of a column: what memory needs to know of the SQL type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneKind {
    /// A dropped attribute: stores nothing and reads as NULL.
    Absent,
    /// One bit a row.
    Bool,
    /// Values of `width` bytes at a distance of `stride` bytes. `stride >= width >= 1`, and
    /// `stride` is a multiple of the type's alignment, which is at most 8. Numbers have no padding
    /// and the byte order of the machine.
    Fixed {
        /// Bytes of one value.
        width: u16,
        /// Bytes from one value to the next.
        stride: u16,
        /// The number type of the bytes.
        number: Number,
    },
    /// Byte strings of any length, opaque here: the caller's own header is part of them.
    Varlena {
        /// Equal items are worth looking for: store codes into a dictionary while it pays.
        dictionary: bool,
        /// Items of 127 bytes or less carry a short header and need no alignment.
        packed: bool,
    },
}

impl LaneKind {
    /// Whether short items may have any alignment.
    pub(crate) fn is_packed(self) -> bool {
        matches!(self, LaneKind::Varlena { packed: true, .. })
    }
}

/// Longest item, in bytes, that a packed lane may lay down at any address.
pub const PACKED_ITEM_BYTES_MAX: usize = 127;

/// The alignment, in bytes, that an item of `len` bytes needs: 1 or 8.
#[inline]
pub const fn item_align(packed: bool, len: usize) -> usize {
    if packed && len <= PACKED_ITEM_BYTES_MAX {
        1
    } else {
        8
    }
}

impl LaneKind {
    /// Whether the documented relations between the fields hold.
    #[inline]
    pub const fn is_valid(self) -> bool {
        match self {
            LaneKind::Fixed {
                width,
                stride,
                number: Number::Opaque,
            } => width >= 1 && stride >= width,
            LaneKind::Fixed {
                width,
                stride,
                number,
            } => number.has_width(width) && stride == width,
            LaneKind::Absent | LaneKind::Bool | LaneKind::Varlena { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_packed_items_go_unaligned() {
        assert_eq!(item_align(true, 127), 1);
        assert_eq!(item_align(true, 128), 8);
        assert_eq!(item_align(false, 1), 8);
    }

    #[test]
    fn a_stride_covers_its_width() {
        let kind = |width, stride| LaneKind::Fixed {
            width,
            stride,
            number: Number::Opaque,
        };
        assert!(kind(4, 4).is_valid());
        assert!(kind(6, 8).is_valid());
        assert!(!kind(8, 4).is_valid());
        assert!(!kind(0, 4).is_valid());
    }

    #[test]
    fn numbers_have_their_widths_and_no_padding() {
        let is_valid = |number, width, stride| {
            LaneKind::Fixed {
                width,
                stride,
                number,
            }
            .is_valid()
        };
        let widths = |number| {
            (0..=16)
                .filter(|&width| is_valid(number, width, width))
                .collect::<Vec<_>>()
        };
        assert_eq!(widths(Number::Signed), [2, 4, 8]);
        assert_eq!(widths(Number::Float), [4, 8]);
        assert_eq!(widths(Number::Bytes16), [16]);
        assert!(!is_valid(Number::Signed, 4, 8));
        assert!(!is_valid(Number::Float, 4, 8));
    }
}
