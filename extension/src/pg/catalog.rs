//! Look-ups in the system catalogs. All run inside a transaction, as every callback that needs them does.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};

use super::functions::{Null, Place, catalog as functions};
use super::table::OpenedTable;
use super::tree::{List, make};

/// The type below a domain; another type itself: `getBaseType`.
pub fn base_type(type_of: Oid) -> Oid {
    if type_of.to_u32() < pg_sys::FirstUnpinnedObjectId {
        // The first domains are those of the information schema.
        return type_of;
    }
    functions::getBaseType(type_of)
}

/// The type of an array's elements; invalid for another type.
pub fn element_type(array: Oid) -> Oid {
    functions::get_element_type(array)
}

/// The expected bytes of a row of a table with all of its columns.
pub fn row_width(table: Oid) -> i32 {
    functions::get_relation_data_width(table, Null)
}

/// The expected bytes of these columns in a row of a table, by the same statistics.
pub fn columns_width(table: Oid, attributes: &[i16]) -> i32 {
    let columns = attributes.iter().filter(|attribute| **attribute > 0);
    let widths = columns.map(
        |&attribute| match functions::get_attavgwidth(table, attribute) {
            width if width > 0 => width,
            _ => functions::get_typavgwidth(functions::get_atttype(table, attribute), -1),
        },
    );
    widths.sum()
}

/// The function of an operator.
pub fn operator_function(operator: Oid) -> Oid {
    functions::get_opcode(operator)
}

/// The types of an operator's operands.
pub fn operand_types(operator: Oid) -> (Oid, Oid) {
    let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    functions::op_input_types(operator, Place(&mut left), Place(&mut right));
    (left, right)
}

/// The strategy number of an operator in a family; 0 if it is not in the family.
pub fn strategy(operator: Oid, family: Oid) -> i32 {
    functions::get_op_opfamily_strategy(operator, family)
}

/// The B-tree family that orders a type by default; invalid if there is none.
pub fn btree_family(type_of: Oid) -> Oid {
    functions::lookup_type_cache(type_of, pg_sys::TYPECACHE_BTREE_OPFAMILY).btree_opf
}

/// Whether a type's values have hashes that are equal wherever an operator says that the values are.
pub fn hashes_for(type_of: Oid, equality: Oid) -> bool {
    let wanted = pg_sys::TYPECACHE_EQ_OPR | pg_sys::TYPECACHE_HASH_PROC;
    let known = functions::lookup_type_cache(type_of, wanted);
    known.hash_proc != pg_sys::InvalidOid && known.eq_opr == equality
}

/// An operator of a family by the types of its operands and its strategy number; invalid if there is none.
pub fn family_member(family: Oid, left: Oid, right: Oid, strategy: i32) -> Oid {
    functions::get_opfamily_member(family, left, right, strategy as i16)
}

/// The operators `<`, `=` and `>` of a type's default order. It is an ERROR if the type has none.
pub fn sort_operators(type_of: Oid) -> (Oid, Oid, Oid) {
    let (mut less, mut equal, mut greater) =
        (pg_sys::InvalidOid, pg_sys::InvalidOid, pg_sys::InvalidOid);
    let mut is_hashable = false;
    functions::get_sort_group_operators(
        type_of,
        true,
        true,
        true,
        Place(&mut less),
        Place(&mut equal),
        Place(&mut greater),
        Place(&mut is_hashable),
    );
    (less, equal, greater)
}

/// Whether a function reveals nothing of its arguments, not even by an error.
pub fn is_leakproof(function: Oid) -> bool {
    functions::get_func_leakproof(function)
}

/// Whether values that an operator of this type finds equal have equal hashes.
pub fn is_hashable(operator: Oid, type_of: Oid) -> bool {
    functions::op_hashjoinable(operator, type_of)
}

/// Whether a function is NULL if one of its arguments is.
pub fn is_strict(function: Oid) -> bool {
    functions::func_strict(function)
}

/// Whether values of a type have collations.
pub fn is_collatable(type_of: Oid) -> bool {
    functions::type_is_collatable(type_of)
}

/// Whether texts of a collation are equal only if their bytes are. No collation at all is deterministic too.
pub fn is_deterministic(collation: Oid) -> bool {
    collation == pg_sys::InvalidOid || functions::get_collation_isdeterministic(collation)
}

/// Whether a function has a number of arguments.
pub fn takes(function: Oid, arguments: i32) -> bool {
    functions::get_func_nargs(function) == arguments
}

/// This extension's schema; `None` in a database without the extension.
pub fn lanes_schema() -> Option<Oid> {
    let schema = functions::get_namespace_oid(c"lanes", true);
    (schema != pg_sys::InvalidOid).then_some(schema)
}

/// Whether a function is in this extension's schema.
pub fn is_lanes_function(function: Oid) -> bool {
    function.to_u32() >= pg_sys::FirstNormalObjectId
        && lanes_schema().is_some_and(|schema| functions::get_func_namespace(function) == schema)
}

/// A function of this extension by its name and the types of its arguments; invalid if there is none.
pub fn lanes_function(name: &CStr, arguments: &[Oid]) -> Oid {
    let name = List::new([make::name(c"lanes"), make::name(name)]);
    functions::LookupFuncName(name, arguments)
}

/// The type of a function's result; invalid if there is no such function.
pub fn function_result(function: Oid) -> Oid {
    functions::get_func_rettype(function)
}

/// Whether a table, which is locked, has or had tables that inherit it.
pub fn has_children(table: Oid) -> bool {
    OpenedTable::open_locked(table).get().has_children()
}

/// A table of this extension by its name; `None` in a database without it.
pub fn lanes_table(name: &CStr) -> Option<Oid> {
    let schema = lanes_schema()?;
    let table = functions::get_relname_relid(name, schema);
    (table != pg_sys::InvalidOid).then_some(table)
}

/// Whether the schema `pg_catalog` has a table of this name.
pub fn has_system_table(name: &CStr) -> bool {
    let schema = pg_sys::Oid::from(pg_sys::PG_CATALOG_NAMESPACE);
    functions::get_relname_relid(name, schema) != pg_sys::InvalidOid
}

/// The types of a function's arguments, and the type of its result.
pub fn signature(function: Oid) -> (Vec<Oid>, Oid) {
    functions::get_func_signature(function)
}

/// The type of a table's column, counted from 1.
pub fn column_type(table: Oid, column: i16) -> Oid {
    functions::get_atttype(table, column)
}

/// Whether values of a type are passed by value.
pub fn is_by_value(type_of: Oid) -> bool {
    functions::get_typbyval(type_of)
}
