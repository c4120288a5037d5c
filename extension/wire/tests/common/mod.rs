//! Batches written by the official FlatBuffers builder: any content, right or wrong, and another
//! order of bytes than ours.
#![allow(dead_code, reason = "each test file uses its part")]

use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, Vector, WIPOffset};

/// Where the field of a slot is named in a vtable.
pub fn vtable_offset(slot: u16) -> u16 {
    4 + 2 * slot
}

#[derive(Clone, Default)]
pub struct RawDictionary {
    pub code_bytes: u8,
    pub item_ends: Vec<u32>,
    pub item_bytes: Vec<u8>,
}

#[derive(Clone, Default)]
pub struct RawColumn {
    pub name: Option<Vec<u8>>,
    pub code: u8,
    pub values: Option<Vec<u8>>,
    pub validity: Option<Vec<u8>>,
    pub dictionary: Option<RawDictionary>,
    pub bytes: Option<Vec<u8>>,
}

pub fn raw(name: &str, code: u8, values: &[u8]) -> RawColumn {
    RawColumn {
        name: Some(name.as_bytes().to_vec()),
        code,
        values: Some(values.to_vec()),
        ..RawColumn::default()
    }
}

fn vector<'b>(
    builder: &mut FlatBufferBuilder<'b>,
    bytes: &Option<Vec<u8>>,
) -> Option<WIPOffset<Vector<'b, u8>>> {
    bytes.as_ref().map(|bytes| builder.create_vector(bytes))
}

pub fn build(rows: u32, columns: &[RawColumn], features: u32, identifier: &str) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let columns: Vec<WIPOffset<UnionWIPOffset>> = columns
        .iter()
        .map(|column| {
            let name = vector(&mut builder, &column.name);
            let values = vector(&mut builder, &column.values);
            let validity = vector(&mut builder, &column.validity);
            let bytes = vector(&mut builder, &column.bytes);
            let dictionary = column.dictionary.as_ref().map(|dictionary| {
                let ends = builder.create_vector(&dictionary.item_ends);
                let items = builder.create_vector(&dictionary.item_bytes);
                let start = builder.start_table();
                builder.push_slot::<u8>(vtable_offset(0), dictionary.code_bytes, 0);
                builder.push_slot_always(vtable_offset(1), ends);
                builder.push_slot_always(vtable_offset(2), items);
                builder.end_table(start)
            });
            let start = builder.start_table();
            if let Some(bytes) = bytes {
                builder.push_slot_always(vtable_offset(5), bytes);
            }
            if let Some(dictionary) = dictionary {
                builder.push_slot_always(vtable_offset(4), dictionary);
            }
            if let Some(validity) = validity {
                builder.push_slot_always(vtable_offset(3), validity);
            }
            if let Some(values) = values {
                builder.push_slot_always(vtable_offset(2), values);
            }
            if let Some(name) = name {
                builder.push_slot_always(vtable_offset(0), name);
            }
            builder.push_slot::<u8>(vtable_offset(1), column.code, 0);
            builder.end_table(start).as_union_value()
        })
        .collect();
    let columns = builder.create_vector(&columns);
    let start = builder.start_table();
    builder.push_slot_always(vtable_offset(1), columns);
    builder.push_slot::<u32>(vtable_offset(0), rows, 0);
    builder.push_slot::<u32>(vtable_offset(2), features, 0);
    let batch = builder.end_table(start);
    builder.finish(batch, Some(identifier));
    builder.finished_data().to_vec()
}

pub fn ends(ends: &[u32]) -> Vec<u8> {
    ends.iter().flat_map(|end| end.to_le_bytes()).collect()
}
