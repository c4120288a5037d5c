//! The official FlatBuffers crate reads what this crate writes. (`refusals.rs` reads what the
//! official crate writes.)

mod common;

use common::vtable_offset;
use flatbuffers::{
    Follow, ForwardsUOffset, InvalidFlatbuffer, Table, Vector, Verifiable, Verifier,
    VerifierOptions,
};
use lanes_wire::{BatchBuilder, ColumnType};

type Bytes<'a> = ForwardsUOffset<Vector<'a, u8>>;

macro_rules! oracle_table {
    ($name:ident { $($slot:literal $label:literal $field:ty, $required:literal;)* }) => {
        struct $name<'a>(Table<'a>);
        impl<'a> Follow<'a> for $name<'a> {
            type Inner = Self;
            unsafe fn follow(buffer: &'a [u8], location: usize) -> Self {
                // SAFETY: the caller has verified that a table lies at `location`.
                $name(unsafe { Table::new(buffer, location) })
            }
        }
        impl Verifiable for $name<'_> {
            fn run_verifier(verifier: &mut Verifier<'_, '_>, position: usize) -> Result<(), InvalidFlatbuffer> {
                verifier
                    .visit_table(position)?
                    $(.visit_field::<$field>($label, vtable_offset($slot), $required)?)*
                    .finish();
                Ok(())
            }
        }
    };
}

oracle_table!(OracleDictionary {
    0 "code_bytes" u8, true;
    1 "item_ends" ForwardsUOffset<Vector<'_, u32>>, true;
    2 "item_bytes" Bytes<'_>, true;
});
oracle_table!(OracleColumn {
    0 "name" ForwardsUOffset<&str>, true;
    1 "type" u8, true;
    2 "values" Bytes<'_>, true;
    3 "validity" Bytes<'_>, false;
    4 "dictionary" ForwardsUOffset<OracleDictionary<'_>>, false;
    5 "bytes" Bytes<'_>, false;
});
oracle_table!(OracleBatch {
    0 "rows" u32, true;
    1 "columns" ForwardsUOffset<Vector<'_, ForwardsUOffset<OracleColumn<'_>>>>, true;
    2 "features_required" u32, false;
});

#[test]
fn the_official_crate_reads_our_batches() {
    let mut builder = BatchBuilder::new();
    for (index, column_type) in ColumnType::ALL.into_iter().enumerate() {
        let name = format!("{}{}", "x".repeat(index), column_type.name());
        builder.add_column(&name, column_type).unwrap();
    }
    for row in 0..1_000_u32 {
        for column in builder.columns_mut() {
            if row % 3 == 1 && column.name().len() % 2 == 0 {
                column.push_null();
                continue;
            }
            match column.column_type() {
                ColumnType::Bool => column.push_bool(row % 5 == 0),
                ColumnType::Int16 => column.push_i16(row as i16),
                ColumnType::Int32 | ColumnType::Date => column.push_i32(row as i32),
                ColumnType::Int64 | ColumnType::Timestamp => column.push_i64(i64::from(row)),
                ColumnType::Float32 => column.push_f32(row as f32),
                ColumnType::Float64 => column.push_f64(f64::from(row)),
                ColumnType::Uuid => column.push_uuid([row as u8; 16]),
                ColumnType::Text => column.push_text(["api", "web", "worker"][row as usize % 3]),
                ColumnType::Bytes => column.push_bytes(&row.to_be_bytes()),
            }
            .unwrap();
        }
    }
    let mut batch = Vec::new();
    builder.finish(&mut batch).unwrap();

    let options = VerifierOptions::default();
    let read = flatbuffers::root_with_opts::<OracleBatch<'_>>(&options, &batch).unwrap();
    assert!(flatbuffers::buffer_has_identifier(&batch, "LNB1", false));
    // SAFETY: verified above, and every field is read as the type it was verified as.
    let (rows, columns) = unsafe {
        (
            read.0.get::<u32>(vtable_offset(0), None),
            read.0
                .get::<ForwardsUOffset<Vector<'_, ForwardsUOffset<OracleColumn<'_>>>>>(
                    vtable_offset(1),
                    None,
                )
                .unwrap(),
        )
    };
    assert_eq!(rows, Some(1_000));
    assert_eq!(columns.len(), ColumnType::ALL.len());
    let view = lanes_wire::BatchView::verify(&batch).unwrap();
    for (column, ours) in columns.iter().zip(view.columns()) {
        // SAFETY: as above.
        let (name, code, values, validity, dictionary) = unsafe {
            let table = column.0;
            (
                table.get::<ForwardsUOffset<&str>>(vtable_offset(0), None),
                table.get::<u8>(vtable_offset(1), None),
                table.get::<Bytes<'_>>(vtable_offset(2), None).unwrap(),
                table.get::<Bytes<'_>>(vtable_offset(3), None),
                table.get::<ForwardsUOffset<OracleDictionary<'_>>>(vtable_offset(4), None),
            )
        };
        assert_eq!(name, Some(ours.name()));
        assert_eq!(code, Some(ours.column_type().code()));
        assert_eq!(validity.is_some(), ours.null_count() > 0);
        let place = values.bytes().as_ptr().addr() - batch.as_ptr().addr();
        assert_eq!(place % 8, 0);
        match ours.values() {
            lanes_wire::Values::Fixed { bytes, .. } => assert_eq!(values.bytes(), *bytes),
            lanes_wire::Values::Codes { codes, items } => {
                assert_eq!(values.len(), codes.len());
                let dictionary = dictionary.unwrap().0;
                // SAFETY: as above.
                let item_bytes =
                    unsafe { dictionary.get::<Bytes<'_>>(vtable_offset(2), None) }.unwrap();
                assert_eq!(item_bytes.len(), items.bytes_total());
            }
            _ => {}
        }
    }
}
