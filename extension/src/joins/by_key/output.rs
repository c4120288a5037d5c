//! The sources of the columns of joined rows.

use pgrx::pg_sys;

use super::plan::{HashJoinPlan, JoinKind};
use crate::expressions::translate::{Translation, Translator};
use crate::pg::columns;
use crate::pg::exec::node::ExecNode;

/// The source of a column of joined rows.
pub enum Output {
    /// An attribute of the lanes table.
    Attribute(usize),
    /// An output of a small side, by its index in the plan.
    Small(usize),
}

impl Output {
    /// The source of each of these columns of a plan.
    ///
    /// # Errors
    /// If a column of the lanes table is not one of its attributes.
    pub fn of(
        columns: &[*mut pg_sys::Node],
        plan: &HashJoinPlan,
        node: ExecNode<'_>,
        translator: &Translator,
    ) -> Translation<Vec<Output>> {
        let output = |column: &*mut pg_sys::Node| {
            let place = columns::column(*column).and_then(|column| plan.place_of(column));
            Ok(match place.or_else(|| equal_output(*column, plan, node)) {
                Some(place) => Output::Small(place),
                None => Output::Attribute(
                    translator.attribute(crate::pg::tree::plan_node((*column).cast()))?,
                ),
            })
        };
        columns.iter().map(output).collect()
    }

    /// The attributes of the lanes table among these columns, ascending.
    pub fn attributes(outputs: &[Output]) -> Vec<usize> {
        let attribute = |output: &Output| match output {
            Output::Attribute(attribute) => Some(*attribute),
            Output::Small(_) => None,
        };
        let mut attributes: Vec<usize> = outputs.iter().filter_map(attribute).collect();
        attributes.sort_unstable();
        attributes.dedup();
        attributes
    }
}

/// The output of the small side that has the value of a column of the lanes table, which is a key of a right semi join:
/// such a join returns no row of the lanes table.
pub fn equal_output(
    column: *mut pg_sys::Node,
    plan: &HashJoinPlan,
    node: ExecNode<'_>,
) -> Option<usize> {
    let dimension = plan.dimensions.first()?;
    if dimension.kind != JoinKind::RightSemi {
        return None;
    }
    let mut keys = dimension.left_keys.iter();
    let key = keys.position(|left| columns::are_equal(*left, column))?;
    let children = node.children();
    let targets = columns::target_expressions(children.first()?.target_list());
    let mut outputs = targets.iter().skip(dimension.left_keys.len());
    outputs.position(|output| columns::are_equal(*output, targets[key]))
}
