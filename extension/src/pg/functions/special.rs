//! Functions that no line of a table can declare. Some take or return arrays, lists of structures, or bytes with their
//! length. Some return results through pointers, or need arguments that callers must not choose. Some have declarations
//! that differ between versions of PostgreSQL. In a table, the types of a function say all that it requires. Here the
//! Rust function makes sure of the rest, or is `unsafe` and says what its caller has to make sure of.

use pgrx::IntoDatum;
use pgrx::pg_sys::{self, Datum, Oid};

use super::Answer;
use super::catalog::GetUserId;
use crate::pg::definitions::Definitions;
use crate::pg::tree::{
    Expr, List, Name, Oids, PlannerInfo, RangeTblEntry, RangeVar, RelOptInfo, Relids, View,
};

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

/// PostgreSQL's cached facts about a type, such as its comparison operators. The flags (`TYPECACHE_…`) say which facts
/// are looked up. The entry stays in its place until the process ends.
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

/// The meaning of a comparison operator: its family, its strategy and the types of its operands.
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
        let mut number = 0;
        let found =
            pg_sys::get_ordering_op_properties(operator, &mut family, &mut input, &mut number);
        #[cfg(not(feature = "pg18"))]
        let is_descending = number as u32 == pg_sys::BTGreaterStrategyNumber;
        #[cfg(feature = "pg18")]
        let is_descending = number == pg_sys::CompareType::COMPARE_GT;
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

/// A constant of type text.
pub fn text_constant<'p>(bytes: &[u8]) -> Expr<'p> {
    let (text, collation) = (pg_sys::TEXTOID, pg_sys::DEFAULT_COLLATION_OID);
    let value = bytes.into_datum();
    let (datum, is_null) = (value.unwrap_or(Datum::null()), value.is_none());
    // SAFETY: bytes as a datum are a varlena, as a text is one.
    unsafe {
        Answer::of_c(pg_sys::makeConst(
            text, -1, collation, -1, datum, is_null, false,
        ))
    }
}

/// A constant of type bigint.
pub fn bigint_constant<'p>(value: i64) -> Expr<'p> {
    let (value, none) = (Datum::from(value), pg_sys::InvalidOid);
    // SAFETY: a bigint has eight bytes and is passed by value.
    unsafe {
        Answer::of_c(pg_sys::makeConst(
            pg_sys::INT8OID,
            -1,
            none,
            8,
            value,
            false,
            true,
        ))
    }
}

/// The names and the columns of an entry of a range table, which has this index at the query's own level. Dropped
/// columns are NULL.
pub fn expandRTE<'p>(
    entry: RangeTblEntry<'p>,
    index: i32,
) -> (List<'p, Name<'p>>, List<'p, Expr<'p>>) {
    let (mut names, mut values) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: a live entry; the lists are in the current memory context.
    unsafe {
        pg_sys::expandRTE(
            entry.as_ptr(),
            index,
            0,
            #[cfg(feature = "pg18")]
            pg_sys::VarReturningType::VAR_RETURNING_DEFAULT,
            -1,
            true,
            &raw mut names,
            &raw mut values,
        );
        (Answer::of_c(names), Answer::of_c(values))
    }
}

/// Expressions over a relation as expressions over one of its children.
pub fn adjust_appendrel_attrs_multilevel<'p, T: View<'p>>(
    root: PlannerInfo<'p>,
    expressions: List<'p, T>,
    child: RelOptInfo<'p>,
    parent: RelOptInfo<'p>,
) -> List<'p, T> {
    let (child, parent) = (child.as_ptr(), parent.as_ptr());
    // SAFETY: live structures. A copy of a list of nodes is a list of such nodes.
    unsafe {
        #[cfg(feature = "pg15")]
        let (child, parent) = ((*child).relids, (*parent).relids);
        let expressions = expressions.as_ptr().cast();
        Answer::of_c(pg_sys::adjust_appendrel_attrs_multilevel(
            root.as_ptr(),
            expressions,
            child,
            parent,
        ))
    }
}

/// The attributes of a relation that an expression uses, counted from the first system column.
pub fn pull_varattnos<'p>(expr: Expr<'_>, relation: u32) -> Relids<'p> {
    let mut found = std::ptr::null_mut();
    // SAFETY: a live expression; the new set is in the current memory context.
    unsafe {
        pg_sys::pull_varattnos(expr.as_ptr(), relation, &raw mut found);
        Answer::of_c(found)
    }
}

/// A text in another encoding; `None` if its bytes are the same there. It is an ERROR if the other encoding cannot
/// express it.
pub fn pg_do_encoding_conversion(text: &[u8], from: i32, to: i32) -> Option<Vec<u8>> {
    // SAFETY: the source has this length and is not changed; a converted result is an allocated string that ends with a
    // NUL.
    unsafe {
        let source = text.as_ptr().cast_mut();
        let converted = pg_sys::pg_do_encoding_conversion(source, text.len() as i32, from, to);
        if converted == source {
            return None;
        }
        let bytes = std::ffi::CStr::from_ptr(converted.cast())
            .to_bytes()
            .to_vec();
        pg_sys::pfree(converted.cast());
        Some(bytes)
    }
}

/// Whether bytes are valid text in an encoding, without a NUL.
pub fn pg_verify_mbstr(encoding: i32, text: &[u8]) -> bool {
    // SAFETY: reads this number of bytes and raises no error.
    unsafe { pg_sys::pg_verify_mbstr(encoding, text.as_ptr().cast(), text.len() as i32, true) }
}
