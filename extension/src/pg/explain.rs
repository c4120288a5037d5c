//! The output of EXPLAIN for a node.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

use super::exec::node::{CustomPlan, ExecNode};
use super::functions::{catalog, executor as functions};
use super::tree::view::views;
use super::tree::{Expr, List, Name, Node, RangeTblEntry, plan_field};

views! {
    /// The output of EXPLAIN.
    Output of ExplainState {
        analyze: bool;
        verbose: bool;
        /// How many entries the query's range table has, without the one for GROUP BY.
        #[cfg(feature = "pg18")]
        rtable_size: i32;
    } {
        rtable: List<'p, RangeTblEntry<'p>>;
        /// The plans and tables in which EXPLAIN looks up names of columns.
        deparse_cxt: List<'p, Expr<'p>>;
    } {}
}

/// A node that is being explained, and the output.
pub struct Explain<'a> {
    node: ExecNode<'a>,
    ancestors: List<'a, Expr<'a>>,
    output: Output<'a>,
}

impl<'a> Explain<'a> {
    /// A node with the plans above it, and the output.
    pub fn of(
        node: ExecNode<'a>,
        ancestors: List<'a, Expr<'a>>,
        output: Output<'a>,
    ) -> Explain<'a> {
        Explain {
            node,
            ancestors,
            output,
        }
    }

    /// The node's plan.
    pub fn plan(&self) -> CustomPlan<'a> {
        self.node.plan()
    }

    /// Whether the output includes the counters of the execution.
    pub fn is_analyze(&self) -> bool {
        self.output.analyze()
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
        functions::ExplainPropertyText(label, &value, self.output);
    }

    /// Writes a number.
    pub fn integer(&self, label: &CStr, value: u64) {
        functions::ExplainPropertyInteger(label, None, value as i64, self.output);
    }

    /// Writes a number of bytes, in kB.
    pub fn kilobytes(&self, label: &CStr, bytes: usize) {
        let value = bytes.div_ceil(1024) as i64;
        functions::ExplainPropertyInteger(label, Some(c"kB"), value, self.output);
    }

    /// Writes the table of a node that PostgreSQL shows without one: an index of the query's range table.
    pub fn table(&self, index: u32) {
        let entry = self.output.rtable().get(index as usize - 1);
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

    /// Writes a list of the plan's conditions, all of which must hold.
    pub fn conditions(&self, label: &CStr, conditions: &[*mut pg_sys::Node]) {
        self.joined_by(" AND ", label, conditions);
    }

    fn joined_by(&self, separator: &str, label: &CStr, expressions: &[*mut pg_sys::Node]) {
        if !expressions.is_empty() {
            self.text(label, &self.deparse(expressions).join(separator));
        }
    }

    /// The plan's expressions as SQL.
    pub fn deparse(&self, expressions: &[*mut pg_sys::Node]) -> Vec<String> {
        let (output, plan) = (self.output, self.node.plan().as_plan());
        let names = output.deparse_cxt();
        let context = functions::set_deparse_context_plan(names, plan, self.ancestors);
        // The entry for GROUP BY, which PostgreSQL 18 adds, makes no name ambiguous.
        #[cfg(not(feature = "pg18"))]
        let entries = output.rtable().len();
        #[cfg(feature = "pg18")]
        let entries = output.rtable_size();
        let prefix = entries > 1 || output.verbose();
        let shown = |expression: &*mut pg_sys::Node| {
            let expression: Option<Expr<'_>> = plan_field(*expression);
            let shown = functions::deparse_expression(expression, context, prefix, false);
            shown.unwrap_or_default()
        };
        expressions.iter().map(shown).collect()
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
