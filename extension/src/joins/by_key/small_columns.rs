//! The columns of small sides that the engine reads: a value for each row of the vector, of the small row that it has
//! found.
//!
//! ```text
//! codes of grouping expressions │ of conditions │ of counted values │ numbers
//! ```

use lanes_columnar::join::joined_column::JoinedColumn;
use lanes_columnar::join::series::SeriesColumn;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::Operand;
use pgrx::pg_sys;

use super::group_codes::{CodesOf, GroupCodes};
use super::joined_side::JoinedSide;
use super::plan::HashJoinPlan;
use crate::expressions::translate::{Translation, Translator};
use crate::pg::exec::node::ExecNode;
use crate::pg::tree::{Expr, View, walk};

/// The side and index of an output.
#[derive(Clone, Copy)]
pub struct Place {
    pub side: usize,
    /// The index among the outputs of its side.
    pub output: usize,
}

impl Place {
    /// The places of a plan's outputs.
    pub fn of_outputs(plan: &HashJoinPlan) -> Vec<Place> {
        let outputs = 0..plan.outputs.len();
        let place = |output: usize| Place {
            side: plan.outputs[output].dimension,
            output: plan.place_in_dimension(output),
        };
        outputs.map(place).collect()
    }
}

/// The columns.
pub struct SmallColumns {
    /// The codes of expressions, each with its side.
    codes: Vec<(usize, GroupCodes)>,
    /// Outputs that the engine needs as numbers. The numbers of this batch are here if the side
    /// does not keep them itself.
    wanted: Vec<(Place, Option<SeriesColumn>)>,
    /// Whether each column is read by more than conditions of the join.
    is_result: Vec<bool>,
    joined: Vec<JoinedColumn>,
    operands: Vec<Operand>,
}

impl SmallColumns {
    /// Prepares the columns. `translator` has translated all expressions of the query, and those of the join after the
    /// first `of_results` columns that they want. `grouped` are the grouping expressions over small sides.
    ///
    /// # Errors
    /// Why the engine cannot read one of them.
    pub fn of(
        plan: &HashJoinPlan,
        sides: &[JoinedSide],
        node: ExecNode<'_>,
        translator: &Translator,
        (grouped, of_results): (&[*mut pg_sys::Node], usize),
    ) -> Translation<SmallColumns> {
        let outputs = Place::of_outputs(plan);
        let given = translator.given().iter();
        let wanted: Vec<Place> = given.map(|&of| outputs[of]).collect();
        let (mut codes, mut is_result) = (Vec::new(), Vec::new());
        let of_join = plan.conditions();
        let mut add = |expressions: &[*mut pg_sys::Node], of: CodesOf| -> Translation<()> {
            for expression in expressions {
                let side = plan.dimension_of(*expression)?;
                codes.push((side, GroupCodes::new(*expression, plan, node, of)));
                let expression: Expr<'_> = crate::pg::tree::plan_node(*expression);
                is_result.push(!of_join.iter().any(|whole| has_part(*whole, expression)));
            }
            Ok(())
        };
        add(grouped, CodesOf::Groups)?;
        if let Some(coded) = translator.coded() {
            add(&coded.conditions, CodesOf::Condition)?;
            add(&coded.values, CodesOf::Value)?;
        }
        is_result.extend((0..wanted.len()).map(|index| index < of_results));
        let numbers = codes.iter().map(|(_, codes)| Some(codes.codes().number));
        let of_outputs = wanted
            .iter()
            .map(|place| sides[place.side].small.number(place.output));
        let joined: Option<Vec<JoinedColumn>> = numbers
            .chain(of_outputs)
            .map(|number| number.map(JoinedColumn::new))
            .collect();
        let joined = joined.ok_or("a joined column that is no number")?;
        Ok(SmallColumns {
            codes,
            wanted: wanted.into_iter().map(|place| (place, None)).collect(),
            is_result,
            operands: joined.iter().map(JoinedColumn::operand).collect(),
            joined,
        })
    }

    /// The indexes of the columns that a translated condition reads.
    pub fn read_by(
        condition: Expr<'_>,
        plan: &HashJoinPlan,
        translator: &Translator,
    ) -> Vec<usize> {
        let mut read = translator.codes_in(|part| has_part(condition.as_ptr(), part));
        let places: Vec<usize> = plan.places(condition.as_ptr()).collect();
        let given = translator.given().iter().enumerate();
        let given = given.filter(|(_, output)| places.contains(output));
        read.extend(given.map(|(index, _)| translator.codes_before() + index));
        read
    }

    /// The side of a column.
    pub fn side_of(&self, index: usize) -> usize {
        match self.codes.get(index) {
            Some((side, _)) => *side,
            None => self.wanted[index - self.codes.len()].0.side,
        }
    }

    /// Starts a batch of the sides.
    pub fn begin(&mut self, sides: &[JoinedSide]) {
        for (side, codes) in &mut self.codes {
            let side = &sides[*side];
            codes.begin(side.join.rows(), side.needs_match(), &side.small);
        }
        for (place, numbers) in &mut self.wanted {
            *numbers = sides[place.side].small.numbers(place.output);
        }
    }

    /// Looks up what is not only read by conditions of the join, for the small rows that were found.
    pub fn gather_results(&mut self, sides: &[JoinedSide], selection: &Selection) {
        for index in 0..self.joined.len() {
            if self.is_result[index] {
                self.gather(index, &sides[self.side_of(index)], selection);
            }
        }
    }

    /// Looks up a column, of this side, for the small rows that were found.
    pub fn gather(&mut self, index: usize, side: &JoinedSide, selection: &Selection) {
        let found = side.join.found();
        let codes = self.codes.len();
        let column = match self.codes.get_mut(index) {
            Some((_, codes)) => {
                if !codes.are_known() {
                    let evaluate = |small_row| codes.evaluate(small_row, &side.small);
                    found.each(selection, evaluate);
                }
                Some(codes.codes())
            }
            None => {
                let (place, numbers) = &self.wanted[index - codes];
                let kept = || side.small.kept_numbers(place.output);
                numbers.as_ref().or_else(kept)
            }
        };
        if let Some(column) = column {
            self.joined[index].gather_found(column, found, selection);
        }
    }

    /// The operands for the rows of the vector: codes, then numbers.
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }

    /// The values of expressions by code.
    pub fn values(&self) -> Vec<Vec<Option<pg_sys::Datum>>> {
        let codes = self.codes.iter();
        codes.map(|(_, codes)| codes.values().to_vec()).collect()
    }
}

/// Whether an expression is a part of another one.
fn has_part(whole: *mut pg_sys::Node, part: Expr<'_>) -> bool {
    let whole: Expr<'_> = crate::pg::tree::plan_node(whole);
    walk::expression(whole, &mut |node, _| node.is_at(part.as_ptr()))
}
