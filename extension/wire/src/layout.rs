//! The numbers of `schema/batch.fbs`: field slots, type codes, identifier. A test compares them
//! with the schema's text.
//!
//! A FlatBuffers buffer, as far as this schema uses it:
//!
//! | what | bytes |
//! |---|---|
//! | buffer | `u32` offset of the root table, 4 bytes of identifier, then tables, vtables and vectors anywhere |
//! | table | `i32` distance back to its vtable, then its fields' inline bytes |
//! | vtable | `u16` own length, `u16` inline length of the table, then `u16` offset in the table for each slot, 0 = absent |
//! | vector | `u32` elements, then the elements; a string ends with a NUL that is not counted |
//! | reference | `u32` distance forward from the reference itself |

/// The file identifier, at byte 4.
pub(crate) const IDENTIFIER: [u8; 4] = *b"LNB1";

/// Slots of table `Batch`.
pub(crate) mod batch_slot {
    pub(crate) const ROWS: usize = 0;
    pub(crate) const COLUMNS: usize = 1;
    pub(crate) const FEATURES_REQUIRED: usize = 2;
}

/// Slots of table `Column`.
pub(crate) mod column_slot {
    pub(crate) const NAME: usize = 0;
    pub(crate) const TYPE: usize = 1;
    pub(crate) const VALUES: usize = 2;
    pub(crate) const VALIDITY: usize = 3;
    pub(crate) const DICTIONARY: usize = 4;
    pub(crate) const BYTES: usize = 5;
    pub(crate) const COUNT: usize = 6;
}

/// Slots of table `Dictionary`.
pub(crate) mod dictionary_slot {
    pub(crate) const CODE_BYTES: usize = 0;
    pub(crate) const ITEM_ENDS: usize = 1;
    pub(crate) const ITEM_BYTES: usize = 2;
}

/// Values of enum `ColumnType`.
pub(crate) mod type_code {
    pub(crate) const BOOL: u8 = 1;
    pub(crate) const INT16: u8 = 2;
    pub(crate) const INT32: u8 = 3;
    pub(crate) const INT64: u8 = 4;
    pub(crate) const FLOAT32: u8 = 5;
    pub(crate) const FLOAT64: u8 = 6;
    pub(crate) const TIMESTAMP: u8 = 7;
    pub(crate) const DATE: u8 = 8;
    pub(crate) const UUID: u8 = 9;
    pub(crate) const TEXT: u8 = 10;
    pub(crate) const BYTES: u8 = 11;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ColumnType;

    const SCHEMA: &str = include_str!("../schema/batch.fbs");

    /// Names declared in the block that `opening` begins, in order.
    fn declared(opening: &str) -> Vec<&'static str> {
        let start = SCHEMA.find(opening).expect(opening) + opening.len();
        let body = &SCHEMA[start..start + SCHEMA[start..].find('}').expect("closed block")];
        body.lines()
            .filter_map(|line| {
                let line = line.split("//").next().unwrap_or("").trim();
                let end = line.find([':', '=', ' '])?;
                Some(line[..end].trim())
            })
            .filter(|name| !name.is_empty())
            .collect()
    }

    #[test]
    fn slots_are_the_schemas() {
        let batch = declared("table Batch {");
        assert_eq!(batch[batch_slot::ROWS], "rows");
        assert_eq!(batch[batch_slot::COLUMNS], "columns");
        assert_eq!(batch[batch_slot::FEATURES_REQUIRED], "features_required");
        assert_eq!(batch.len(), 3);
        let column = declared("table Column {");
        assert_eq!(column[column_slot::NAME], "name");
        assert_eq!(column[column_slot::TYPE], "type");
        assert_eq!(column[column_slot::VALUES], "values");
        assert_eq!(column[column_slot::VALIDITY], "validity");
        assert_eq!(column[column_slot::DICTIONARY], "dictionary");
        assert_eq!(column[column_slot::BYTES], "bytes");
        assert_eq!(column.len(), column_slot::COUNT);
        let dictionary = declared("table Dictionary {");
        assert_eq!(dictionary[dictionary_slot::CODE_BYTES], "code_bytes");
        assert_eq!(dictionary[dictionary_slot::ITEM_ENDS], "item_ends");
        assert_eq!(dictionary[dictionary_slot::ITEM_BYTES], "item_bytes");
        assert_eq!(dictionary.len(), 3);
        assert!(SCHEMA.contains(&format!(
            "file_identifier \"{}\"",
            std::str::from_utf8(&IDENTIFIER).unwrap()
        )));
    }

    #[test]
    fn type_codes_are_the_schemas() {
        let names = declared("enum ColumnType : ubyte {");
        assert_eq!(names[0], "None");
        assert_eq!(ColumnType::from_code(0), None);
        for (code, name) in names.iter().enumerate().skip(1) {
            assert_eq!(ColumnType::from_code(code as u8).unwrap().name(), *name);
        }
        assert_eq!(names.len(), ColumnType::ALL.len() + 1);
        assert_eq!(ColumnType::from_code(names.len() as u8), None);
    }
}
