//! What a plan stores for its execution, in lists that PostgreSQL copies and adjusts.
//!
//! | list of the plan | content |
//! |---|---|
//! | `custom_private` | the node's numbers; nodes of its own; the reasons for what is not vectorised, as strings |
//! | `custom_exprs` | expressions over the scanned table, or the parameters of the expressions in `custom_scan_tlist` |
//! | `custom_scan_tlist` | for a node that stands for more than a scan of a table: the node's expressions |
//!
//! A path holds the three lists and the table's range-table index in its `custom_private`, so its plan takes them over
//! without change.

use pgrx::pg_sys;

use super::node::Planned;
use crate::pg::exec::node::CustomPlan;
use crate::pg::tree::{
    CustomScan, Expr, Expression, Integers, List, Node, RelabelType, RestrictInfo, TargetEntry,
    Var, View, make, plan_field, plan_node, walk,
};
use crate::planner::quals;
use crate::planner::reasons::{self, About};

/// The place of the node's own nodes in `custom_private`.
const NODES: usize = 1;
/// The place of the reasons in `custom_private`.
const REASONS: usize = 2;

/// The data that a path or plan stores. Its lists are live or null.
pub struct PrivateData {
    /// The range-table index of the table.
    pub index: u32,
    pub numbers: Vec<i32>,
    pub nodes: *mut pg_sys::List,
    pub expressions: *mut pg_sys::List,
    pub targets: *mut pg_sys::List,
}

impl PrivateData {
    /// The list that a path stores.
    pub fn to_path_list(&self) -> *mut pg_sys::List {
        let (expressions, targets) = (self.expressions(), self.targets());
        let parts = [
            self.to_plan_list().as_node(),
            expressions.as_node(),
            targets.as_node(),
            Integers::new([self.index as i32]).as_node(),
        ];
        List::of_options(parts).as_ptr()
    }

    /// The plan's `custom_private`, without reasons.
    fn to_plan_list<'p>(&self) -> List<'p, Expr<'p>> {
        let nodes: List<'p, Expr<'p>> = plan_field(self.nodes);
        let numbers = Integers::new(self.numbers.iter().copied());
        List::of_options([numbers.as_node(), nodes.as_node(), None])
    }

    fn expressions<'p>(&self) -> List<'p, Expr<'p>> {
        plan_field(self.expressions)
    }

    fn targets<'p>(&self) -> List<'p, TargetEntry<'p>> {
        plan_field(self.targets)
    }
}

impl Planned {
    /// The plan, as far as it is filled in.
    pub fn plan(&self) -> CustomPlan<'static> {
        self.scan
    }

    /// Moves the lists of the [path](PrivateData::to_path_list) into the plan, and returns the index of the table.
    pub fn take_path(&self) -> u32 {
        let stored = self.path.custom_private();
        let nodes = |part| stored.get(part).and_then(Expr::as_nodes);
        self.scan.set_private(nodes(0).unwrap_or(List::EMPTY));
        self.scan.set_expressions(nodes(1).unwrap_or(List::EMPTY));
        let entries = stored.get(2).and_then(Expr::as_list);
        self.scan.set_entries(entries.unwrap_or(List::EMPTY));
        let index = stored.get(3).and_then(Expr::as_integers);
        let index = index.and_then(|index| index.iter().next());
        index.expect("a path stores the index of its table") as u32
    }

    /// Stores data in the plan that no path has stored.
    pub fn store(&self, data: &PrivateData) {
        self.scan.set_private(data.to_plan_list());
        self.scan.set_expressions(data.expressions());
        self.scan.set_entries(data.targets());
    }

    /// Splits the conditions of a scan: those of `pushed` that the plan has to evaluate, in their
    /// order, and all others, in the order in which PostgreSQL would evaluate them.
    pub fn split_quals(
        &self,
        pushed: List<'static, RestrictInfo<'static>>,
    ) -> (List<'static, Expr<'static>>, List<'static, Expr<'static>>) {
        let is_wanted = |clause: &RestrictInfo<'_>| self.clauses.iter().any(|own| own == *clause);
        let vectorised = pushed.iter().filter(is_wanted);
        let is_kept = |clause: &RestrictInfo<'_>| pushed.iter().all(|other| other != *clause);
        let kept = List::new(self.clauses.iter().filter(is_kept));
        (
            List::new(vectorised.map(RestrictInfo::clause)),
            quals::clauses(kept),
        )
    }

    /// Stores the reasons for what is not vectorised in a plan that has its [lists](Self::take_path).
    pub fn store_reasons(&self, index: u32, about: Option<About>) {
        if let Some(reasons) = reasons::reason_list(self.root, index, about).as_node() {
            self.scan.custom_private().set(REASONS, reasons);
        }
    }
}

fn part(plan: CustomPlan<'_>, place: usize) -> Option<Expr<'_>> {
    let stored: List<'_, Expr<'_>> = plan_field(plan.private());
    stored.get(place)
}

/// The numbers that a plan stores.
pub fn numbers(plan: CustomPlan<'_>) -> Vec<i32> {
    numbers_of(part(plan, 0))
}

/// The numbers that a list of a path or plan stores first.
pub fn numbers_of(stored: Option<Expr<'_>>) -> Vec<i32> {
    let numbers = stored.and_then(Expr::as_integers);
    numbers.into_iter().flat_map(Integers::iter).collect()
}

/// The nodes that a plan stores.
pub fn nodes(plan: CustomPlan<'_>) -> *mut pg_sys::List {
    list_of(part(plan, NODES))
}

/// Replaces the nodes that a plan stores.
pub fn set_nodes<'p>(plan: CustomScan<'p>, nodes: List<'p, Expr<'p>>) {
    if let Some(nodes) = nodes.as_node() {
        plan.custom_private().set(NODES, nodes);
    }
}

/// The reasons that a plan stores, as strings.
pub fn reasons(plan: CustomPlan<'_>) -> *mut pg_sys::List {
    list_of(part(plan, REASONS))
}

fn list_of(stored: Option<Expr<'_>>) -> *mut pg_sys::List {
    let nodes = stored.and_then(Expr::as_nodes);
    nodes.unwrap_or(List::EMPTY).as_ptr()
}

/// A target list that is being made, with the parameters of its expressions, which are live.
pub struct Targets {
    pub entries: *mut pg_sys::List,
    pub parameters: *mut pg_sys::List,
}

impl Targets {
    /// An empty target list.
    pub fn new() -> Targets {
        Targets {
            entries: std::ptr::null_mut(),
            parameters: std::ptr::null_mut(),
        }
    }

    /// Adds an expression that the node evaluates and does not return. PostgreSQL takes the entries of this list for
    /// columns of the node's rows: it would read an equal expression of the query's own target list from a column that
    /// is never written. So the expression is wrapped into a relabelling to its own type, which no query contains;
    /// [`hidden`] unwraps it.
    pub fn push_hidden(&mut self, expression: *mut pg_sys::Node) {
        let relabelled = make::relabelled(plan_node(expression));
        self.push(relabelled.as_expr().as_ptr());
    }

    /// Adds an expression whose value the node returns.
    pub fn push(&mut self, expression: *mut pg_sys::Node) {
        let expression: Expr<'_> = plan_node(expression);
        let mut entries: List<'_, TargetEntry<'_>> = plan_field(self.entries);
        entries.push(make::target(expression, entries.len() + 1, None, false));
        self.entries = entries.as_ptr();
        self.want_parameters(expression);
    }

    /// Adds the parameters of an expression that is no entry.
    pub fn want_parameters(&mut self, expression: Expr<'_>) {
        let mut parameters = plan_field(self.parameters);
        walk::parameters(expression, &mut parameters);
        self.parameters = parameters.as_ptr();
    }
}

/// The expression of an entry that [`Targets::push_hidden`] added.
pub fn hidden(entry: *mut pg_sys::Node) -> *mut pg_sys::Node {
    let relabelling = plan_node::<Expr<'_>>(entry).downcast::<RelabelType<'_>>();
    let hidden = relabelling.and_then(RelabelType::arg);
    hidden.expect("a hidden entry is a relabelling").as_ptr()
}

/// A column that identifies a table, also after PostgreSQL has renumbered the range table.
pub fn table_column(index: u32) -> *mut pg_sys::Node {
    let (column, none) = (pg_sys::TableOidAttributeNumber as i16, pg_sys::InvalidOid);
    let column = make::var(index as i32, column, pg_sys::OIDOID, none);
    column.as_expr().as_ptr()
}

/// The range-table index of a [`table_column`].
pub fn table_of(column: *mut pg_sys::Node) -> u32 {
    let column = plan_node::<Expr<'_>>(column).as_var();
    column
        .map(Var::varno)
        .expect("a column identifies the table") as u32
}
