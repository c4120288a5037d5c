//! Look-ups in the system catalogs. All run inside a transaction, as every callback that needs them does.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};

use super::tree::{List, make};

/// The type below a domain; another type itself: `getBaseType`.
pub fn base_type(type_of: Oid) -> Oid {
    if type_of.to_u32() < pg_sys::FirstUnpinnedObjectId {
        // The first domains are those of the information schema.
        return type_of;
    }
    // SAFETY: a look-up by OID.
    unsafe { pg_sys::getBaseType(type_of) }
}

/// The type of an array's elements; invalid for another type.
pub fn element_type(array: Oid) -> Oid {
    // SAFETY: a look-up by OID.
    unsafe { pg_sys::get_element_type(array) }
}

/// The expected bytes of a row of a table with all of its columns.
pub fn row_width(table: Oid) -> i32 {
    // SAFETY: a look-up of a table that the planner has locked; no widths are known already.
    unsafe { pg_sys::get_relation_data_width(table, std::ptr::null_mut()) }
}

/// The expected bytes of these columns in a row of a table, by the same statistics.
pub fn columns_width(table: Oid, attributes: &[i16]) -> i32 {
    let columns = attributes.iter().filter(|attribute| **attribute > 0);
    let widths = columns.map(|attribute| {
        // SAFETY: look-ups of a column by its table and number.
        unsafe {
            match pg_sys::get_attavgwidth(table, *attribute) {
                width if width > 0 => width,
                _ => pg_sys::get_typavgwidth(pg_sys::get_atttype(table, *attribute), -1),
            }
        }
    });
    widths.sum()
}

/// The function of an operator.
pub fn operator_function(operator: Oid) -> Oid {
    // SAFETY: a look-up by OID.
    unsafe { pg_sys::get_opcode(operator) }
}

/// The types of an operator's operands.
pub fn operand_types(operator: Oid) -> (Oid, Oid) {
    let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: a look-up by OID that writes two OIDs.
    unsafe { pg_sys::op_input_types(operator, &mut left, &mut right) };
    (left, right)
}

/// The strategy number of an operator in a family; 0 if it is not in the family.
pub fn strategy(operator: Oid, family: Oid) -> i32 {
    // SAFETY: a look-up by OID.
    unsafe { pg_sys::get_op_opfamily_strategy(operator, family) }
}

/// The B-tree family that orders a type by default; invalid if there is none.
pub fn btree_family(type_of: Oid) -> Oid {
    // SAFETY: the type cache never returns null.
    unsafe {
        (*pg_sys::lookup_type_cache(type_of, pg_sys::TYPECACHE_BTREE_OPFAMILY as i32)).btree_opf
    }
}

/// Whether a type's values have hashes that are equal wherever an operator says that the values are.
pub fn hashes_for(type_of: Oid, equality: Oid) -> bool {
    let wanted = pg_sys::TYPECACHE_EQ_OPR | pg_sys::TYPECACHE_HASH_PROC;
    // SAFETY: the type cache never returns null.
    let known = unsafe { &*pg_sys::lookup_type_cache(type_of, wanted as i32) };
    known.hash_proc != pg_sys::InvalidOid && known.eq_opr == equality
}

/// An operator of a family by the types of its operands and its strategy number; invalid if there is none.
pub fn family_member(family: Oid, left: Oid, right: Oid, strategy: i32) -> Oid {
    // SAFETY: a look-up by OID.
    unsafe { pg_sys::get_opfamily_member(family, left, right, strategy as i16) }
}

/// The operators `<`, `=` and `>` of a type's default order. It is an ERROR if the type has none.
pub fn sort_operators(type_of: Oid) -> (Oid, Oid, Oid) {
    let (mut less, mut equal, mut greater) =
        (pg_sys::InvalidOid, pg_sys::InvalidOid, pg_sys::InvalidOid);
    let mut is_hashable = false;
    // SAFETY: a look-up by OID that writes three OIDs and a flag.
    unsafe {
        pg_sys::get_sort_group_operators(
            type_of,
            true,
            true,
            true,
            &mut less,
            &mut equal,
            &mut greater,
            &mut is_hashable,
        );
    }
    (less, equal, greater)
}

/// Whether values of a type have collations.
pub fn is_collatable(type_of: Oid) -> bool {
    // SAFETY: a look-up by OID.
    unsafe { pg_sys::type_is_collatable(type_of) }
}

/// Whether texts of a collation are equal only if their bytes are. No collation at all is deterministic too.
pub fn is_deterministic(collation: Oid) -> bool {
    // SAFETY: a look-up by OID; it is an ERROR if the collation does not exist.
    collation == pg_sys::InvalidOid || unsafe { pg_sys::get_collation_isdeterministic(collation) }
}

/// Whether a function has a number of arguments.
pub fn takes(function: Oid, arguments: i32) -> bool {
    // SAFETY: a look-up by OID.
    unsafe { pg_sys::get_func_nargs(function) == arguments }
}

/// This extension's schema; `None` in a database without the extension.
pub fn lanes_schema() -> Option<Oid> {
    // SAFETY: a look-up by name that tolerates a missing schema.
    let schema = unsafe { pg_sys::get_namespace_oid(c"lanes".as_ptr(), true) };
    (schema != pg_sys::InvalidOid).then_some(schema)
}

/// Whether a function is in this extension's schema.
pub fn is_lanes_function(function: Oid) -> bool {
    function.to_u32() >= pg_sys::FirstNormalObjectId
        && lanes_schema().is_some_and(|schema| {
            // SAFETY: a look-up by OID.
            unsafe { pg_sys::get_func_namespace(function) == schema }
        })
}

/// A function of this extension by its name and the types of its arguments; invalid if there is none.
pub fn lanes_function(name: &CStr, arguments: &[Oid]) -> Oid {
    let name = List::new([make::name(c"lanes"), make::name(name)]).as_ptr();
    // SAFETY: live names and as many types as are counted; nothing found is no error.
    unsafe { pg_sys::LookupFuncName(name, arguments.len() as i32, arguments.as_ptr(), true) }
}

/// The type of a function's result; invalid if there is no such function.
pub fn function_result(function: Oid) -> Oid {
    // SAFETY: a look-up by OID.
    unsafe { pg_sys::get_func_rettype(function) }
}

/// Has a function called whenever what a system cache holds changes, which may be at any time: it raises no error. The
/// callback stays for the life of the process.
pub fn on_change(cache: pg_sys::SysCacheIdentifier::Type, changed: fn()) {
    unsafe extern "C-unwind" fn run(changed: pg_sys::Datum, _: i32, _: u32) {
        // SAFETY: the datum is the function that was registered below.
        let changed: fn() =
            unsafe { std::mem::transmute(changed.cast_mut_ptr::<std::ffi::c_void>()) };
        changed();
    }
    // SAFETY: PostgreSQL keeps the function with the datum, which it only hands back.
    unsafe {
        let changed = pg_sys::Datum::from(changed as *mut std::ffi::c_void);
        pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(run), changed);
    }
}

/// Whether a table, which is locked, has or had tables that inherit it.
pub fn has_children(table: Oid) -> bool {
    // SAFETY: the relation is closed again; it is an ERROR if there is none.
    unsafe {
        let open = pg_sys::relation_open(table, pg_sys::NoLock as i32);
        let has = (*(*open).rd_rel).relhassubclass;
        pg_sys::relation_close(open, pg_sys::NoLock as i32);
        has
    }
}

/// A table of this extension by its name; `None` in a database without it.
pub fn lanes_table(name: &CStr) -> Option<Oid> {
    let schema = lanes_schema()?;
    // SAFETY: a look-up by name that tolerates a missing table.
    let table = unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) };
    (table != pg_sys::InvalidOid).then_some(table)
}

/// Whether the schema `pg_catalog` has a table of this name.
pub fn has_system_table(name: &CStr) -> bool {
    // SAFETY: a look-up by name that tolerates a missing table.
    unsafe {
        let schema = pg_sys::Oid::from(pg_sys::PG_CATALOG_NAMESPACE);
        pg_sys::get_relname_relid(name.as_ptr(), schema) != pg_sys::InvalidOid
    }
}

/// The types of a function's arguments, and the type of its result.
pub fn signature(function: Oid) -> (Vec<Oid>, Oid) {
    let (mut types, mut count) = (std::ptr::null_mut(), 0);
    // SAFETY: the look-up writes the address of an allocated array and its length; it is an ERROR if there is no such
    // function.
    unsafe {
        let result = pg_sys::get_func_signature(function, &mut types, &mut count);
        let types: Vec<Oid> = (0..count as usize).map(|index| *types.add(index)).collect();
        (types, result)
    }
}

/// The type of a table's column, counted from 1.
pub fn column_type(table: Oid, column: i16) -> Oid {
    // SAFETY: a look-up by OID.
    unsafe { pg_sys::get_atttype(table, column) }
}

/// Whether values of a type are passed by value.
pub fn is_by_value(type_of: Oid) -> bool {
    // SAFETY: a look-up of an existing type.
    unsafe { pg_sys::get_typbyval(type_of) }
}

/// Whether a table, which the caller has locked, has an access method, given by its routine.
pub fn has_access_method(table: Oid, routine: *const pg_sys::TableAmRoutine) -> bool {
    // SAFETY: the relation is closed again; it is null if there is no such relation. The routine is only compared.
    unsafe {
        let opened = pg_sys::RelationIdGetRelation(table);
        if opened.is_null() {
            return false;
        }
        let has = std::ptr::eq((*opened).rd_tableam, routine);
        pg_sys::RelationClose(opened);
        has
    }
}
