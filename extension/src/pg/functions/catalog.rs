//! Look-ups in the system catalogs, by OID or by name. All run inside a transaction, as every callback that needs them
//! does. An object that does not exist has the OID 0, no name, or is an ERROR.

use std::ffi::{CStr, c_char};

use pgrx::pg_sys::{self, Datum, Oid};

use super::{Answer, Null, Place, functions};
use crate::pg::definitions::Definitions;
use crate::pg::table::OpenTable;
use crate::pg::tree::{Expr, List, Name, Oids, RangeVar, View};

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

    /// The name of a function.
    fn get_func_name(function: Oid) -> Option<&'p CStr>;

    /// The schema of a function.
    fn get_func_namespace(function: Oid) -> Oid;

    /// The number of a function's arguments.
    fn get_func_nargs(function: Oid) -> i32;

    /// The type of a function's result.
    fn get_func_rettype(function: Oid) -> Oid;

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

/// The relation that a name refers to; invalid if there is none. It is not locked.
pub fn relation_by_name(name: RangeVar<'_>) -> Oid {
    let (no_lock, missing_ok) = (pg_sys::NoLock as i32, pg_sys::RVROption::RVR_MISSING_OK);
    // SAFETY: a live name; missing is no error, and there is no callback.
    unsafe {
        let none = std::ptr::null_mut();
        pg_sys::RangeVarGetRelidExtended(name.as_ptr(), no_lock, missing_ok, None, none)
    }
}

/// A function by its name and the types of its arguments; invalid if there is none.
pub fn LookupFuncName(name: List<'_, Name<'_>>, arguments: &[Oid]) -> Oid {
    let count = arguments.len() as i32;
    // SAFETY: live names, and as many types as are counted.
    unsafe { pg_sys::LookupFuncName(name.as_ptr(), count, arguments.as_ptr(), true) }
}

/// The types of a function's arguments, and the type of its result. It is an ERROR if there is no such function.
pub fn get_func_signature(function: Oid) -> (Vec<Oid>, Oid) {
    let (mut types, mut count) = (std::ptr::null_mut(), 0);
    // SAFETY: the look-up writes the address of an allocated array and its length.
    unsafe {
        let result = pg_sys::get_func_signature(function, &raw mut types, &raw mut count);
        let types = (0..count as usize).map(|index| *types.add(index));
        (types.collect(), result)
    }
}

/// What the type cache knows of a type, with what the flags ask for. PostgreSQL keeps it as long as the process.
pub fn lookup_type_cache(type_of: Oid, flags: u32) -> &'static pg_sys::TypeCacheEntry {
    // SAFETY: the type cache never returns null; an entry stays in its place.
    unsafe { &*pg_sys::lookup_type_cache(type_of, flags as i32) }
}

/// The meanings of a comparison operator in operator families: in PostgreSQL 18 by its comparison, before by its
/// strategy number. Both have the same numbers.
pub fn comparison_meanings(operator: Oid) -> Vec<ComparisonMeaning> {
    #[cfg(not(feature = "pg18"))]
    type Interpretation = pg_sys::OpBtreeInterpretation;
    #[cfg(feature = "pg18")]
    type Interpretation = pg_sys::OpIndexInterpretation;
    let meaning = |found: &Interpretation| ComparisonMeaning {
        family: found.opfamily_id,
        #[cfg(not(feature = "pg18"))]
        number: found.strategy as u32,
        #[cfg(feature = "pg18")]
        number: found.cmptype as u32,
        types: (found.oplefttype, found.oprighttype),
    };
    // SAFETY: a look-up, whose list of structures is in the current memory context.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        let found = pg_sys::get_op_btree_interpretation(operator);
        #[cfg(feature = "pg18")]
        let found = pg_sys::get_op_index_interpretation(operator);
        let count = found.as_ref().map_or(0, |list| list.length as usize);
        let element = |index| {
            (*(*found).elements.add(index))
                .ptr_value
                .cast::<Interpretation>()
        };
        (0..count).map(|index| meaning(&*element(index))).collect()
    }
}

/// What a comparison operator means in an operator family.
#[derive(Clone, Copy, Debug)]
pub struct ComparisonMeaning {
    /// The family.
    pub family: Oid,
    /// The strategy number of a B-tree; 6 is the negator of an equality.
    pub number: u32,
    /// The types of the operands.
    pub types: (Oid, Oid),
}

/// Whether an ordering operator is descending, and its B-tree family; `None` for another operator.
pub fn get_ordering_op_properties(operator: Oid) -> Option<(bool, Oid)> {
    let (mut family, mut input) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: a look-up that writes to these places.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        let (found, is_descending) = {
            let mut number = 0;
            let found =
                pg_sys::get_ordering_op_properties(operator, &mut family, &mut input, &mut number);
            (found, number as u32 == pg_sys::BTGreaterStrategyNumber)
        };
        #[cfg(feature = "pg18")]
        let (found, is_descending) = {
            let mut number = 0;
            let found =
                pg_sys::get_ordering_op_properties(operator, &mut family, &mut input, &mut number);
            (found, number == pg_sys::CompareType::COMPARE_GT)
        };
        found.then_some((is_descending, family))
    }
}

/// Whether a user may execute a function.
pub fn function_aclcheck(function: Oid, user: Oid) -> pg_sys::AclResult::Type {
    let execute = pg_sys::ACL_EXECUTE as pg_sys::AclMode;
    // SAFETY: a look-up by OIDs.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_proc_aclcheck(function, user, execute);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, user, execute);
    }
}

/// Whether the current user owns a relation.
pub fn owns_relation(relation: Oid) -> bool {
    // SAFETY: a look-up by OIDs.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_class_ownercheck(relation, GetUserId());
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::RelationRelationId, relation, GetUserId());
    }
}

/// The parameters in an array of texts, as `pg_class.reloptions` has them.
///
/// # Safety
/// The datum is such an array.
pub unsafe fn untransformRelOptions<'p>(options: Datum) -> Definitions<'p> {
    // SAFETY: this function's contract; the list is made in the current memory context.
    unsafe { Answer::of_c(pg_sys::untransformRelOptions(options)) }
}

unsafe extern "C-unwind" {
    fn find_all_inheritors(
        relation: Oid,
        lock: pg_sys::LOCKMODE,
        parents: *mut *mut pg_sys::List,
    ) -> *mut pg_sys::List;
}

/// A table and all tables that inherit it, directly or indirectly. They are not locked.
pub fn with_inheritors<'p>(table: Oid) -> Oids<'p> {
    let (lock, none) = (pg_sys::NoLock as pg_sys::LOCKMODE, std::ptr::null_mut());
    // SAFETY: look-ups, which give a list of OIDs; the boundary turns an ERROR into a panic.
    unsafe {
        Answer::of_c(pg_sys::ffi::pg_guard_ffi_boundary(|| {
            find_all_inheritors(table, lock, none)
        }))
    }
}

#[cfg(not(feature = "pg18"))]
unsafe extern "C-unwind" {
    /// PostgreSQL's own, which the bindings leave out.
    #[link_name = "lc_collate_is_c"]
    fn collates_bytes(collation: Oid) -> bool;
}

/// Whether bytes decide the order of texts in a collation, as far as PostgreSQL tells. PostgreSQL 18 does not.
#[cfg(not(feature = "pg18"))]
pub fn lc_collate_is_c(collation: Oid) -> bool {
    // SAFETY: a look-up by OID; it is an ERROR if there is no such collation. The boundary turns that into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| collates_bytes(collation)) }
}

/// Whether bytes decide the order of texts in a collation, as far as PostgreSQL tells. PostgreSQL 18 does not.
#[cfg(feature = "pg18")]
pub fn lc_collate_is_c(_collation: Oid) -> bool {
    false
}

/// Compares two texts, given by the bytes after their headers, in a collation.
pub fn varstr_cmp(a: &[u8], b: &[u8], collation: Oid) -> i32 {
    let (at_a, at_b) = (a.as_ptr().cast_mut().cast(), b.as_ptr().cast_mut().cast());
    // SAFETY: PostgreSQL only reads the bytes, which have these lengths.
    unsafe { pg_sys::varstr_cmp(at_a, a.len() as i32, at_b, b.len() as i32, collation) }
}
