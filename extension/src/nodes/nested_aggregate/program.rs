//! A nested aggregation as the engine executes it.

use std::ops::Range;

use lanes_columnar::aggregate::{Aggregation, Key};
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::Value;
use lanes_columnar::vector::{Evaluation, narrow};

use super::finished::Finished;
use super::group_lanes::GroupLanes;
use super::outputs::{Outputs, over_entries};
use crate::expressions::aggregate_call::{self, KeyShape, Shape};
use crate::expressions::lanes_aggregate::Arrival;
use crate::expressions::row_function::KeysByCode;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::nodes::engine::plan::EnginePlan;
use crate::pg::exec::node::{CustomPlan, ExecNode};
use crate::pg::tree::{Expr, Expression, List, Node, View, plan_field, plan_node};
use crate::vectors::prune::predicates;

/// The aggregation.
pub struct Program {
    /// The conditions of HAVING below, or those on results of window functions.
    having: Vec<Predicate>,
    pub aggregation: Aggregation,
    /// The shapes of the keys and of the aggregates.
    pub keys: Vec<KeyShape>,
    pub shapes: Vec<Shape>,
    /// The keys below that are grouping keys here, by the codes of their shapes.
    pub grouped: Vec<usize>,
    scalars: Vec<Option<Scalar>>,
    /// The attributes that are read: entries, and after them the number lanes of keys.
    pub wanted: Vec<usize>,
    /// How many entries there are.
    entries: usize,
}

/// What stands for the values of keys below that are grouping keys here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeysBelow {
    /// Their numbers.
    Numbers,
    /// The values, as those of a column: in each part of the groups below, numbers have another meaning.
    Values,
}

impl Program {
    /// The program of a plan over the plan below it.
    ///
    /// # Errors
    /// The reason why the engine cannot evaluate an expression.
    pub fn of(
        plan: &EnginePlan,
        outputs: &Outputs<'_>,
        node: ExecNode<'_>,
        (below, keys_below): (CustomPlan<'_>, KeysBelow),
    ) -> Translation<Program> {
        let scalars = Scalars::of(node);
        let mut translator = Translator::of_other_table(scalars);
        let conditions: List<'_, Expr<'_>> = plan_field(below.quals());
        let conditions = conditions.iter();
        let conditions = conditions.map(|condition| over_entries(plan.index, condition).as_ptr());
        let having = predicates(&mut translator, conditions)?;
        let (mut keys, mut key_shapes, mut grouped) = (Vec::new(), Vec::new(), Vec::new());
        for expression in &plan.keys {
            let expression = plan_node(*expression);
            let number = outputs.key_of(expression);
            if let Some(key) = number.filter(|_| keys_below == KeysBelow::Numbers) {
                let lane = outputs.entry_types.len() + key;
                keys.push(Key::Number(Value::Column(NumberType::I64, lane)));
                key_shapes.push(KeyShape::Joined(grouped.len()));
                grouped.push(key);
                continue;
            }
            let expression = outputs.over_entries(expression)?;
            let (key, shape) = aggregate_call::key(&mut translator, expression)?;
            keys.push(key);
            key_shapes.push(shape);
        }
        let (mut aggregates, mut shapes) = (Vec::new(), Vec::new());
        for call in &plan.calls {
            let call = outputs.over_entries(call.as_expr())?.downcast();
            let call = call.ok_or("an aggregate that is a column below")?;
            let by_code = &mut KeysByCode::default();
            let (aggregate, shape) =
                aggregate_call::aggregate(&mut translator, call, Arrival::Any, by_code)?;
            aggregates.push(aggregate);
            shapes.push(shape);
        }
        let mut wanted = translator.attributes();
        outputs.check(&wanted)?;
        wanted.extend(grouped.iter().map(|key| outputs.entry_types.len() + key));
        Ok(Program {
            having,
            aggregation: Aggregation::new(keys, aggregates),
            keys: key_shapes,
            shapes,
            grouped,
            scalars: translator.scalars,
            wanted,
            entries: outputs.entry_types.len(),
        })
    }

    /// The entries that are read, also those of which only numbers are.
    pub fn wanted_entries(&self) -> Vec<usize> {
        let wanted = self.wanted.iter();
        let entry = |attribute: &usize| attribute.checked_sub(self.entries).unwrap_or(*attribute);
        wanted.map(entry).collect()
    }

    /// Aggregates at most a vector of groups, and returns how many passed HAVING below.
    ///
    /// # Errors
    /// The error that an expression raises.
    pub fn add(
        &mut self,
        groups: Range<usize>,
        lanes: &mut GroupLanes,
        below: &dyn Finished,
    ) -> Evaluation<usize> {
        let rows = groups.len();
        lanes.fill(groups, below);
        let frame = lanes.frame(rows, &self.scalars);
        let mut selection = Selection::first(rows);
        narrow(&mut self.having, &frame, &mut selection)?;
        let passed = selection.count();
        self.aggregation.add_counted(&frame, &selection, passed)?;
        Ok(passed)
    }
}
