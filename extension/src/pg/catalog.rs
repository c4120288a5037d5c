//! Look-ups in the system catalogs. All run inside a transaction, as every callback that needs them does.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};

/// The type below a domain; another type itself: `getBaseType`.
pub fn base_type(type_of: Oid) -> Oid {
    if type_of.to_u32() < pg_sys::FirstNormalObjectId {
        // No domain is built in.
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
