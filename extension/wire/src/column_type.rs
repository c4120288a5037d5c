use crate::layout::type_code;

/// The type of a column as it travels. Which SQL types it may be stored in is the receiver's rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ColumnType {
    /// A bitmap, one bit a row.
    Bool,
    /// 2 bytes, signed.
    Int16,
    /// 4 bytes, signed.
    Int32,
    /// 8 bytes, signed.
    Int64,
    /// IEEE 754 single; NaN payloads are kept.
    Float32,
    /// IEEE 754 double; NaN payloads are kept.
    Float64,
    /// `i64` microseconds since the Unix epoch; the extreme values are the infinities.
    Timestamp,
    /// `i32` days since the Unix epoch; the extreme values are the infinities.
    Date,
    /// 16 bytes in the order in which they are written.
    Uuid,
    /// UTF-8 without NUL.
    Text,
    /// Any bytes.
    Bytes,
}

impl ColumnType {
    /// Every type.
    pub const ALL: [ColumnType; 11] = [
        ColumnType::Bool,
        ColumnType::Int16,
        ColumnType::Int32,
        ColumnType::Int64,
        ColumnType::Float32,
        ColumnType::Float64,
        ColumnType::Timestamp,
        ColumnType::Date,
        ColumnType::Uuid,
        ColumnType::Text,
        ColumnType::Bytes,
    ];

    /// The code of the type in the schema.
    pub const fn code(self) -> u8 {
        match self {
            ColumnType::Bool => type_code::BOOL,
            ColumnType::Int16 => type_code::INT16,
            ColumnType::Int32 => type_code::INT32,
            ColumnType::Int64 => type_code::INT64,
            ColumnType::Float32 => type_code::FLOAT32,
            ColumnType::Float64 => type_code::FLOAT64,
            ColumnType::Timestamp => type_code::TIMESTAMP,
            ColumnType::Date => type_code::DATE,
            ColumnType::Uuid => type_code::UUID,
            ColumnType::Text => type_code::TEXT,
            ColumnType::Bytes => type_code::BYTES,
        }
    }

    /// The type with this code; `None` for one that this version does not know.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.code() == code)
    }

    /// Bytes of one value, or `None` for bitmaps and for items of varying length.
    pub const fn width(self) -> Option<usize> {
        match self {
            ColumnType::Int16 => Some(2),
            ColumnType::Int32 | ColumnType::Float32 | ColumnType::Date => Some(4),
            ColumnType::Int64 | ColumnType::Float64 | ColumnType::Timestamp => Some(8),
            ColumnType::Uuid => Some(16),
            ColumnType::Bool | ColumnType::Text | ColumnType::Bytes => None,
        }
    }

    /// The name in the schema, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            ColumnType::Bool => "Bool",
            ColumnType::Int16 => "Int16",
            ColumnType::Int32 => "Int32",
            ColumnType::Int64 => "Int64",
            ColumnType::Float32 => "Float32",
            ColumnType::Float64 => "Float64",
            ColumnType::Timestamp => "Timestamp",
            ColumnType::Date => "Date",
            ColumnType::Uuid => "Uuid",
            ColumnType::Text => "Text",
            ColumnType::Bytes => "Bytes",
        }
    }
}

impl std::fmt::Display for ColumnType {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}
