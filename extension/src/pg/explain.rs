//! The output of EXPLAIN for a node.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

use super::exec::node::{CustomPlan, ExecNode};
use super::functions::{Answer, catalog};
use super::ports;
use super::tree::{Expr, List, Name, Node, RangeTblEntry, plan_field};

/// A node that is being explained, and the output.
pub struct Explain {
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    output: *mut pg_sys::ExplainState,
}

impl Explain {
    /// # Safety
    /// All three are live as long as the value is used.
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
    pub fn plan(&self) -> CustomPlan<'_> {
        // SAFETY: `of` was promised a live node.
        unsafe { ExecNode::of(self.node) }.plan()
    }

    /// Whether the output includes the counters of the execution.
    pub fn is_analyze(&self) -> bool {
        // SAFETY: `of` was promised a live output.
        unsafe { (*self.output).analyze }
    }

    /// The texts of expressions of the plan.
    pub fn texts_of(&self, expressions: &[super::tree::Expr<'_>]) -> Vec<String> {
        let nodes: Vec<_> = expressions
            .iter()
            .map(|expr| super::tree::View::as_ptr(*expr))
            .collect();
        self.deparse(&nodes)
    }

    /// Writes a text property.
    pub fn text(&self, label: &CStr, value: &str) {
        let value = CString::new(value.replace('\0', " ")).unwrap_or_default();
        // SAFETY: `of` was promised a live output.
        unsafe { pg_sys::ExplainPropertyText(label.as_ptr(), value.as_ptr(), self.output) }
    }

    /// Writes a number.
    pub fn integer(&self, label: &CStr, value: u64) {
        let unit = std::ptr::null();
        // SAFETY: `of` was promised a live output.
        unsafe {
            pg_sys::ExplainPropertyInteger(label.as_ptr(), unit, value as i64, self.output);
        }
    }

    /// Writes a number of bytes, in kB.
    pub fn kilobytes(&self, label: &CStr, bytes: usize) {
        let (unit, value) = (c"kB".as_ptr(), bytes.div_ceil(1024) as i64);
        // SAFETY: `of` was promised a live output.
        unsafe { pg_sys::ExplainPropertyInteger(label.as_ptr(), unit, value, self.output) }
    }

    /// Writes the table of a node that PostgreSQL shows without one: an index of the query's range table.
    pub fn table(&self, index: u32) {
        // SAFETY: `of` was promised a live output.
        let entries: List<'_, RangeTblEntry<'_>> = plan_field(unsafe { (*self.output).rtable });
        let entry = entries.get(index as usize - 1);
        let Some((table, alias)) = entry.and_then(|entry| Some((entry.relid(), entry.eref()?)))
        else {
            return;
        };
        let (alias, quoted) = (alias.aliasname().unwrap_or_default(), |name| {
            catalog::quote_identifier(name).unwrap_or_default()
        });
        if let Some(name) = catalog::get_rel_name(table) {
            let shown = match name == alias {
                true => quoted(name),
                false => format!("{} {}", quoted(name), quoted(alias)),
            };
            self.text(c"Table", &shown);
        }
    }

    /// Writes the reasons for what is not vectorised, from the plan's list of strings.
    pub fn reasons(&self, reasons: *mut pg_sys::List) {
        let reasons = texts_of(reasons);
        if !reasons.is_empty() {
            self.text(c"Not Vectorised", &reasons.join("; "));
        }
    }

    /// Writes text properties from a plan's list of strings: label, text, label, text, …
    pub fn properties(&self, list: *mut pg_sys::List) {
        let texts = texts_of(list);
        for pair in texts.chunks_exact(2) {
            let label = CString::new(pair[0].as_str()).unwrap_or_default();
            self.text(&label, &pair[1]);
        }
    }

    /// Writes the conditions that the engine evaluates.
    pub fn quals(&self, quals: &[*mut pg_sys::Node]) {
        self.joined_by(" AND ", c"Vector Quals", quals);
    }

    /// Writes the conditions that PostgreSQL evaluates for each row.
    pub fn filter(&self, quals: &[*mut pg_sys::Node]) {
        self.joined_by(" AND ", c"Filter", quals);
    }

    /// Writes a list of the plan's expressions.
    pub fn expressions(&self, label: &CStr, expressions: &[*mut pg_sys::Node]) {
        self.joined_by(", ", label, expressions);
    }

    fn joined_by(&self, separator: &str, label: &CStr, expressions: &[*mut pg_sys::Node]) {
        if !expressions.is_empty() {
            self.text(label, &self.deparse(expressions).join(separator));
        }
    }

    /// The plan's expressions as SQL.
    pub fn deparse(&self, expressions: &[*mut pg_sys::Node]) -> Vec<String> {
        // SAFETY: `of` was promised live structures; the expressions are the plan's.
        unsafe {
            let (output, plan) = (&*self.output, (*self.node).ss.ps.plan);
            let context =
                pg_sys::set_deparse_context_plan(output.deparse_cxt, plan, self.ancestors);
            // The entry for GROUP BY, which PostgreSQL 18 adds, makes no name ambiguous.
            #[cfg(not(feature = "pg18"))]
            let entries = ports::list_length(output.rtable);
            #[cfg(feature = "pg18")]
            let entries = output.rtable_size;
            let prefix = entries > 1 || output.verbose;
            let shown = |expression: &*mut pg_sys::Node| {
                let shown = pg_sys::deparse_expression(*expression, context, prefix, false);
                let text: Option<String> = Answer::of_c(shown);
                text.unwrap_or_default()
            };
            expressions.iter().map(shown).collect()
        }
    }
}

/// The texts of a plan's list of strings.
pub fn texts_of(list: *mut pg_sys::List) -> Vec<String> {
    let strings: List<'_, Expr<'_>> = plan_field(list);
    let texts = strings
        .iter()
        .filter_map(|node| node.downcast::<Name<'_>>()?.sval());
    texts
        .map(|text| text.to_string_lossy().into_owned())
        .collect()
}
