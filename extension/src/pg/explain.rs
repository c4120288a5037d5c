//! What EXPLAIN says of the nodes.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

use super::{names, nodes, ports};

/// A node that is being explained, and where to.
pub struct Explain {
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
}

impl Explain {
    /// # Safety
    /// All are live as long as this is used.
    pub unsafe fn of(
        node: *mut pg_sys::CustomScanState,
        ancestors: *mut pg_sys::List,
        output: *mut pg_sys::ExplainState,
    ) -> Explain {
        Explain {
            node,
            ancestors,
            output,
        }
    }

    /// The node's plan.
    pub fn plan(&self) -> *mut pg_sys::CustomScan {
        // SAFETY: a live node.
        unsafe { (*self.node).ss.ps.plan.cast() }
    }

    /// Whether what was done is told too.
    pub fn is_analyze(&self) -> bool {
        // SAFETY: EXPLAIN's live state.
        unsafe { (*self.output).analyze }
    }

    /// A property that is text.
    pub fn text(&self, label: &CStr, value: &str) {
        let value = CString::new(value.replace('\0', " ")).unwrap_or_default();
        // SAFETY: EXPLAIN's live state.
        unsafe { pg_sys::ExplainPropertyText(label.as_ptr(), value.as_ptr(), self.output) }
    }

    /// A property that is a number.
    pub fn integer(&self, label: &CStr, value: u64) {
        let unit = std::ptr::null();
        // SAFETY: EXPLAIN's live state.
        unsafe {
            pg_sys::ExplainPropertyInteger(label.as_ptr(), unit, value as i64, self.output);
        }
    }

    /// A property that is a size.
    pub fn kilobytes(&self, label: &CStr, bytes: usize) {
        let (unit, value) = (c"kB".as_ptr(), bytes.div_ceil(1024) as i64);
        // SAFETY: EXPLAIN's live state.
        unsafe { pg_sys::ExplainPropertyInteger(label.as_ptr(), unit, value, self.output) }
    }

    /// The table of a node that names none itself.
    ///
    /// # Safety
    /// An index of the query's range table.
    pub unsafe fn table(&self, index: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            let entry: *mut pg_sys::RangeTblEntry =
                ports::list_nth((*self.output).rtable, index as i32 - 1);
            let alias = (*(*entry).eref).aliasname;
            let name = pg_sys::get_rel_name((*entry).relid);
            if name.is_null() {
                return;
            }
            let (name, alias) = (CStr::from_ptr(name), CStr::from_ptr(alias));
            let quoted = |name: &CStr| {
                names::text(pg_sys::quote_identifier(name.as_ptr())).unwrap_or_default()
            };
            let shown = if name == alias {
                quoted(name)
            } else {
                format!("{} {}", quoted(name), quoted(alias))
            };
            self.text(c"Table", &shown);
        }
    }

    /// Why something was not vectorised.
    ///
    /// # Safety
    /// A list of the plan's.
    pub unsafe fn reasons(&self, reasons: *mut pg_sys::List) {
        // SAFETY: the caller's promise.
        let reasons: Vec<String> = unsafe {
            nodes::list(reasons)
                .map(|node| nodes::text_of(node))
                .collect()
        };
        if !reasons.is_empty() {
            self.text(c"Not Vectorised", &reasons.join("; "));
        }
    }

    /// Quals that are vectorised.
    ///
    /// # Safety
    /// Expressions of the plan's.
    pub unsafe fn quals(&self, quals: &[*mut pg_sys::Node]) {
        // SAFETY: the caller's promise.
        unsafe { self.joined_by(" AND ", c"Vector Quals", quals) }
    }

    /// Quals that are evaluated a row at a time by the node itself.
    ///
    /// # Safety
    /// Expressions of the plan's.
    pub unsafe fn filter(&self, quals: &[*mut pg_sys::Node]) {
        // SAFETY: the caller's promise.
        unsafe { self.joined_by(" AND ", c"Filter", quals) }
    }

    /// Expressions over the scanned table.
    ///
    /// # Safety
    /// Expressions of the plan's.
    pub unsafe fn expressions(&self, label: &CStr, expressions: &[*mut pg_sys::Node]) {
        // SAFETY: the caller's promise.
        unsafe { self.joined_by(", ", label, expressions) }
    }

    unsafe fn joined_by(&self, separator: &str, label: &CStr, expressions: &[*mut pg_sys::Node]) {
        if !expressions.is_empty() {
            // SAFETY: the caller has expressions of the plan's.
            let shown = unsafe { self.deparse(expressions) };
            self.text(label, &shown.join(separator));
        }
    }

    /// Expressions as SQL.
    ///
    /// # Safety
    /// Expressions of the plan's.
    pub unsafe fn deparse(&self, expressions: &[*mut pg_sys::Node]) -> Vec<String> {
        // SAFETY: EXPLAIN's live structures; the caller has expressions of the plan's.
        unsafe {
            let (output, plan) = (&*self.output, (*self.node).ss.ps.plan);
            let context =
                pg_sys::set_deparse_context_plan(output.deparse_cxt, plan, self.ancestors);
            let prefix = ports::list_length(output.rtable) > 1 || output.verbose;
            let shown = |expression: &*mut pg_sys::Node| {
                let shown = pg_sys::deparse_expression(*expression, context, prefix, false);
                names::text(shown).unwrap_or_default()
            };
            expressions.iter().map(shown).collect()
        }
    }
}
