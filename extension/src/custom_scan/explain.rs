//! What EXPLAIN says of the nodes.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

use super::sort_key::OrderedBy;
use super::vector_source::Counters;
use crate::pg::{nodes, ports};

/// A property that is text.
///
/// # Safety
/// `output` is EXPLAIN's live state.
pub unsafe fn text(label: &CStr, value: &str, output: *mut pg_sys::ExplainState) {
    let value = CString::new(value.replace('\0', " ")).unwrap_or_default();
    // SAFETY: the caller's promise.
    unsafe { pg_sys::ExplainPropertyText(label.as_ptr(), value.as_ptr(), output) }
}

/// A property that is a number.
///
/// # Safety
/// As for [`text`].
pub unsafe fn integer(label: &CStr, value: u64, output: *mut pg_sys::ExplainState) {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::ExplainPropertyInteger(label.as_ptr(), std::ptr::null(), value as i64, output);
    }
}

/// A property that is a size.
///
/// # Safety
/// As for [`text`].
pub unsafe fn kilobytes(label: &CStr, bytes: usize, output: *mut pg_sys::ExplainState) {
    let value = bytes.div_ceil(1024) as i64;
    // SAFETY: the caller's promise.
    unsafe { pg_sys::ExplainPropertyInteger(label.as_ptr(), c"kB".as_ptr(), value, output) }
}

/// What a source did.
///
/// # Safety
/// As for [`text`].
pub unsafe fn counters(counters: &Counters, output: *mut pg_sys::ExplainState) {
    // SAFETY: the caller's promise.
    unsafe {
        integer(c"Segments", counters.segments, output);
        integer(c"Vectors", counters.vectors, output);
        integer(c"Vectors Skipped", counters.vectors_skipped, output);
        integer(c"Rows Scanned", counters.rows, output);
    }
}

/// What reading the right side of a join took, and how its rows were found.
///
/// # Safety
/// As for [`text`].
pub unsafe fn joined(joined: &Option<(Counters, &'static str)>, output: *mut pg_sys::ExplainState) {
    if let Some((counters, algorithm)) = joined {
        // SAFETY: the caller's promise.
        unsafe {
            text(c"Join Algorithm", algorithm, output);
            integer(c"Joined Vectors", counters.vectors, output);
            integer(c"Joined Vectors Skipped", counters.vectors_skipped, output);
            integer(c"Joined Rows", counters.rows, output);
        }
    }
}

/// The table of a node that names none itself.
///
/// # Safety
/// As for [`text`]; `index` is of the query's range table.
pub unsafe fn table(index: u32, output: *mut pg_sys::ExplainState) {
    // SAFETY: the caller's promise.
    unsafe {
        let entry: *mut pg_sys::RangeTblEntry = ports::list_nth((*output).rtable, index as i32 - 1);
        let alias = (*(*entry).eref).aliasname;
        let name = pg_sys::get_rel_name((*entry).relid);
        if name.is_null() {
            return;
        }
        let (name, alias) = (CStr::from_ptr(name), CStr::from_ptr(alias));
        let quoted = |name: &CStr| {
            CStr::from_ptr(pg_sys::quote_identifier(name.as_ptr()))
                .to_string_lossy()
                .into_owned()
        };
        let shown = if name == alias {
            quoted(name)
        } else {
            format!("{} {}", quoted(name), quoted(alias))
        };
        text(c"Table", &shown, output);
    }
}

/// Why something was not vectorised.
///
/// # Safety
/// As for [`text`]; the list is of the plan.
pub unsafe fn reasons(reasons: *mut pg_sys::List, output: *mut pg_sys::ExplainState) {
    // SAFETY: the caller's promise.
    unsafe {
        let reasons: Vec<String> = nodes::list(reasons)
            .map(|node| nodes::text_of(node))
            .collect();
        if !reasons.is_empty() {
            text(c"Not Vectorised", &reasons.join("; "), output);
        }
    }
}

/// Quals that are vectorised.
///
/// # Safety
/// As for [`text`]; the list is of the node's plan.
pub unsafe fn quals(
    node: *mut pg_sys::CustomScanState,
    quals: *mut pg_sys::List,
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let quals: Vec<*mut pg_sys::Node> = nodes::list(quals).collect();
        expressions(c"Vector Quals", node, &quals, ancestors, output);
    }
}

/// Quals that are evaluated a row at a time by the node itself.
///
/// # Safety
/// As for [`quals`].
pub unsafe fn filter(
    node: *mut pg_sys::CustomScanState,
    quals: *mut pg_sys::List,
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let quals: Vec<*mut pg_sys::Node> = nodes::list(quals).collect();
        if !quals.is_empty() {
            let shown = deparse(node, &quals, ancestors, output);
            text(c"Filter", &shown.join(" AND "), output);
        }
    }
}

/// What rows are ordered by.
///
/// # Safety
/// As for [`quals`].
pub unsafe fn order(
    keys: &[OrderedBy],
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let expressions: Vec<*mut pg_sys::Node> = keys.iter().map(|key| key.expression).collect();
        let mut shown = deparse(node, &expressions, ancestors, output);
        for (text, key) in shown.iter_mut().zip(keys) {
            if key.order.descending {
                text.push_str(" DESC");
            }
            if key.order.nulls_first != key.order.descending {
                let first = key.order.nulls_first;
                text.push_str(if first { " NULLS FIRST" } else { " NULLS LAST" });
            }
        }
        if !shown.is_empty() {
            text(c"Order By", &shown.join(", "), output);
        }
    }
}

/// Expressions over the scanned table.
///
/// # Safety
/// As for [`quals`].
pub unsafe fn expressions(
    label: &CStr,
    node: *mut pg_sys::CustomScanState,
    expressions: &[*mut pg_sys::Node],
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
) {
    if expressions.is_empty() {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let shown = deparse(node, expressions, ancestors, output);
        let separator = if label == c"Vector Quals" {
            " AND "
        } else {
            ", "
        };
        text(label, &shown.join(separator), output);
    }
}

/// Expressions as SQL.
unsafe fn deparse(
    node: *mut pg_sys::CustomScanState,
    expressions: &[*mut pg_sys::Node],
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
) -> Vec<String> {
    // SAFETY: the caller has EXPLAIN's live structures and expressions of the node's plan.
    unsafe {
        let context =
            pg_sys::set_deparse_context_plan((*output).deparse_cxt, (*node).ss.ps.plan, ancestors);
        let prefix = ports::list_length((*output).rtable) > 1 || (*output).verbose;
        let shown = |expression: &*mut pg_sys::Node| {
            let shown = pg_sys::deparse_expression(*expression, context, prefix, false);
            CStr::from_ptr(shown).to_string_lossy().into_owned()
        };
        expressions.iter().map(shown).collect()
    }
}
