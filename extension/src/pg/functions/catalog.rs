//! Look-ups in the system catalogs, by OID or by name. All run inside a transaction, as every callback that needs them
//! does. An object that does not exist has the OID 0, no name, or is an ERROR.

use std::ffi::{CStr, c_char};

use pgrx::pg_sys::{self, Oid};

use super::{Null, Place, functions};
use crate::pg::table::OpenTable;
use crate::pg::tree::{Expr, RangeVar};

pub use super::special::{
    LookupFuncName, comparison_meanings, function_aclcheck, get_func_signature,
    get_ordering_op_properties, lc_collate_is_c, lookup_type_cache, owns_relation,
    relation_by_name, untransformRelOptions, varstr_cmp, with_inheritors,
};

functions! {
    /// Makes what this command has changed visible to itself.
    fn CommandCounterIncrement();

    /// The user whose privileges count now.
    fn GetUserId() -> Oid;

    /// The schema in which a relation of this name would be created.
    fn RangeVarGetCreationNamespace(name: RangeVar<'_>) -> Oid;

    /// Raises the error of a check of privileges.
    fn aclcheck_error(
        result: pg_sys::AclResult::Type,
        kind: pg_sys::ObjectType::Type,
        name: Option<&CStr>,
    );

    /// The default of a table's column, counted from 1.
    fn build_column_default(table: OpenTable<'_>, column: i32) -> Option<Expr<'p>>;

    /// Whether row-level security hides rows from a user; an invalid OID is the current one.
    fn check_enable_rls(table: Oid, user: Oid, is_lenient: bool) -> i32;

    /// The name of a type as SQL writes it.
    fn format_type_be(type_of: Oid) -> Option<String>;

    /// `provolatile` of a function, which exists.
    fn func_volatile(function: Oid) -> c_char;

    /// The type below a domain; another type itself.
    fn getBaseType(type_of: Oid) -> Oid;

    /// The extension that an object belongs to.
    fn getExtensionOfObject(catalog: Oid, object: Oid) -> Oid;

    /// The send function of a type.
    fn getTypeBinaryOutputInfo(type_of: Oid, send: Place<'_, Oid>, is_varlena: Place<'_, bool>);

    /// The input function of a type, and the parameter that it takes.
    fn getTypeInputInfo(type_of: Oid, input: Place<'_, Oid>, parameter: Place<'_, Oid>);

    /// The output function of a type.
    fn getTypeOutputInfo(type_of: Oid, output: Place<'_, Oid>, is_varlena: Place<'_, bool>);

    /// An access method by its name.
    fn get_am_oid(name: &CStr, missing_ok: bool) -> Oid;

    /// The name of a table's column.
    fn get_attname(table: Oid, column: i16, missing_ok: bool) -> Option<String>;

    /// The number of a table's column; 0 if there is none.
    fn get_attnum(table: Oid, name: &CStr) -> i16;

    /// The expected bytes of a column's values, by statistics; 0 if there are none.
    fn get_attavgwidth(table: Oid, column: i16) -> i32;

    /// The type of a table's column.
    fn get_atttype(table: Oid, column: i16) -> Oid;

    /// Whether texts of a collation, which exists, are equal only if their bytes are.
    fn get_collation_isdeterministic(collation: Oid) -> bool;

    /// The name of a collation.
    fn get_collation_name(collation: Oid) -> Option<&'p CStr>;

    /// The name of a database.
    fn get_database_name(database: Oid) -> Option<String>;

    /// The type of an array's elements.
    fn get_element_type(array: Oid) -> Oid;

    /// Whether a function reveals nothing of its arguments, not even by an error.
    fn get_func_leakproof(function: Oid) -> bool;

    /// The name of a function.
    fn get_func_name(function: Oid) -> Option<&'p CStr>;

    /// The schema of a function.
    fn get_func_namespace(function: Oid) -> Oid;

    /// The number of a function's arguments.
    fn get_func_nargs(function: Oid) -> i32;

    /// The type of a function's result.
    fn get_func_rettype(function: Oid) -> Oid;

    /// Whether a function is NULL if one of its arguments is.
    fn func_strict(function: Oid) -> bool;

    /// Whether values that an operator of this type finds equal have equal hashes.
    fn op_hashjoinable(operator: Oid, type_of: Oid) -> bool;

    /// A schema by its name.
    fn get_namespace_oid(name: &CStr, missing_ok: bool) -> Oid;

    /// The name of a schema.
    fn get_namespace_name(schema: Oid) -> Option<String>;

    /// The strategy number of an operator in a family; 0 if it is not in the family.
    fn get_op_opfamily_strategy(operator: Oid, family: Oid) -> i32;

    /// The function of an operator.
    fn get_opcode(operator: Oid) -> Oid;

    /// An operator of a family.
    fn get_opfamily_member(family: Oid, left: Oid, right: Oid, strategy: i16) -> Oid;

    /// The name of an operator.
    fn get_opname(operator: Oid) -> Option<String>;

    /// The name of a relation.
    fn get_rel_name(relation: Oid) -> Option<&'p CStr>;

    /// The expected bytes of a row of a table.
    fn get_relation_data_width(table: Oid, widths: Null) -> i32;

    /// The sort of object that a kind of relation is.
    fn get_relkind_objtype(relkind: c_char) -> pg_sys::ObjectType::Type;

    /// A relation by its name and schema.
    fn get_relname_relid(name: &CStr, schema: Oid) -> Oid;

    /// The operators of a type's default order. It is an ERROR if the type lacks one that is needed.
    fn get_sort_group_operators(
        type_of: Oid,
        need_less: bool,
        need_equal: bool,
        need_greater: bool,
        less: Place<'_, Oid>,
        equal: Place<'_, Oid>,
        greater: Place<'_, Oid>,
        is_hashable: Place<'_, bool>,
    );

    /// The expected bytes of a type's values.
    fn get_typavgwidth(type_of: Oid, modifier: i32) -> i32;

    /// Whether values of a type are passed by value.
    fn get_typbyval(type_of: Oid) -> bool;

    /// The collation of a type.
    fn get_typcollation(type_of: Oid) -> Oid;

    /// The bytes of a type's values; -1 if they begin with their length.
    fn get_typlen(type_of: Oid) -> i16;

    /// The bytes of a type's values, and whether they are passed by value.
    fn get_typlenbyval(type_of: Oid, length: Place<'_, i16>, by_value: Place<'_, bool>);

    /// The types of an operator's operands.
    fn op_input_types(operator: Oid, left: Place<'_, Oid>, right: Place<'_, Oid>);

    /// Whether a user has a privilege for a table's column.
    fn pg_attribute_aclcheck(
        table: Oid,
        column: i16,
        user: Oid,
        mode: pg_sys::AclMode,
    ) -> pg_sys::AclResult::Type;

    /// Whether a user has a privilege for a table.
    fn pg_class_aclcheck(table: Oid, user: Oid, mode: pg_sys::AclMode) -> pg_sys::AclResult::Type;

    /// A name as SQL writes it.
    fn quote_identifier(name: &CStr) -> Option<String>;

    /// Whether values of a type have collations.
    fn type_is_collatable(type_of: Oid) -> bool;
}
