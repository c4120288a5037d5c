//! Codes of an expression over a small side: one that is grouped by, a condition, or a value that is counted. Equal
//! values have the same code.
//!
//! The expression is evaluated at most once for each small row, when that row first finds a left
//! row. The engine groups by the codes, and the values are looked up when the groups are
//! returned. Where rows are known to have the same value, only the first of them is evaluated.

use lanes_columnar::join::equal::SmallKey;
use lanes_columnar::join::key_codes::KeyCodes;
use lanes_columnar::join::series::SeriesColumn;
use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys;

use super::plan::HashJoinPlan;
use super::small_expression::SmallExpression;
use super::small_side::SmallSide;
use crate::expressions::condition_code;
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::value_codes::ValueCodes;

/// Marks a row whose code is not known yet.
const UNKNOWN: u64 = u64::MAX;

/// How rows of the batch are recognised that have the same value, without evaluating the
/// expression.
enum Alike {
    No,
    /// All columns belong to these shared rows.
    Shared(usize),
    /// The expression has a single column, whose values are passed by value. Equal values have
    /// the same number.
    ByValue(usize, Box<KeyCodes>),
}

impl Alike {
    /// Chooses the way for an expression with these columns.
    fn of(outputs: &[usize], small: &SmallSide) -> Alike {
        if let Some(of) = small.shared_by(outputs) {
            return Alike::Shared(of);
        }
        match outputs {
            [output, rest @ ..] if rest.iter().all(|other| other == output) => {
                match small.is_by_value(*output) {
                    true => Alike::ByValue(*output, Box::default()),
                    false => Alike::No,
                }
            }
            _ => Alike::No,
        }
    }

    /// The number that a row shares with the rows that have the same value.
    fn number(&mut self, row: u32, small: &SmallSide) -> Option<u32> {
        match self {
            Alike::No => None,
            Alike::Shared(of) => small.shared_place(*of, row),
            Alike::ByValue(output, numbers) => {
                let value = small.value(*output, row)?.value() as i64;
                numbers.code(SmallKey::Integer(value))
            }
        }
    }
}

/// What the codes are for, and so which values have certain codes.
#[derive(Clone, Copy)]
pub enum CodesOf {
    /// A grouping expression.
    Groups,
    /// A condition: [`condition_code`] defines the codes.
    Condition,
    /// A value that is counted: NULL has the code [`condition_code::NULL_VALUE`].
    Value,
}

impl CodesOf {
    /// The values that have certain codes, in the order of these.
    fn given(self) -> Vec<(u64, Option<pg_sys::Datum>)> {
        match self {
            CodesOf::Groups => Vec::new(),
            CodesOf::Condition => vec![
                (condition_code::FALSE, Some(pg_sys::Datum::from(false))),
                (condition_code::TRUE, Some(pg_sys::Datum::from(true))),
                (condition_code::NULL, None),
            ],
            CodesOf::Value => vec![(condition_code::NULL_VALUE, None)],
        }
    }
}

/// The codes of one expression.
pub struct GroupCodes {
    expression: SmallExpression,
    /// The codes of the values.
    of_values: ValueCodes,
    /// The code of each small row of the batch.
    codes: SeriesColumn,
    /// The number of rows in the batch that may still be found and have no code yet.
    unknown: usize,
    /// The row that stands for a missing match, if left rows never find it.
    never: Option<u32>,
    /// The columns of the expression.
    outputs: Vec<usize>,
    alike: Alike,
    /// Codes by the number that rows with the same value share.
    by_number: Vec<u64>,
}

impl GroupCodes {
    /// Prepares the codes of an expression over one side. No row has a code yet.
    pub fn new(
        expression: *mut pg_sys::Node,
        plan: &HashJoinPlan,
        node: ExecNode<'_>,
        of: CodesOf,
    ) -> GroupCodes {
        let mut of_values = ValueCodes::new(expression, node.lasting_memory());
        for (code, value) in of.given() {
            let given = u64::from(of_values.code(value));
            debug_assert_eq!(given, code);
        }
        GroupCodes {
            expression: SmallExpression::of(expression, plan, node),
            of_values,
            codes: SeriesColumn::new(NumberType::I64),
            unknown: 0,
            never: None,
            outputs: plan.places_in_dimension(expression),
            alike: Alike::No,
            by_number: Vec::new(),
        }
    }

    /// Starts a batch of `rows` small rows, none of which has a code. One more row stands for a
    /// missing match, unless every left row `needs_match`.
    pub fn begin(&mut self, rows: usize, needs_match: bool, small: &SmallSide) {
        self.alike = Alike::of(&self.outputs, small);
        self.by_number.clear();
        self.codes.values.clear();
        self.codes.values.resize(rows + 1, UNKNOWN);
        self.unknown = rows + usize::from(!needs_match);
        self.never = needs_match.then_some(rows as u32);
    }

    /// Whether every row that may be found has a code.
    pub fn are_known(&self) -> bool {
        self.unknown == 0
    }

    /// Evaluates the expression for a row of the batch, unless the row has a code already.
    pub fn evaluate(&mut self, row: u32, small: &SmallSide) {
        if self.codes.values[row as usize] != UNKNOWN {
            return;
        }
        self.unknown -= usize::from(self.never != Some(row));
        let number = self.alike.number(row, small);
        let number = number.map(|number| number as usize);
        if let Some(code) = number.and_then(|number| self.by_number.get(number))
            && *code != UNKNOWN
        {
            self.codes.values[row as usize] = *code;
            return;
        }
        let value = self.expression.value(row, small);
        let code = u64::from(self.of_values.code(value));
        self.expression.reset();
        self.codes.values[row as usize] = code;
        if let Some(number) = number {
            let numbers = self.by_number.len().max(number + 1);
            self.by_number.resize(numbers, UNKNOWN);
            self.by_number[number] = code;
        }
    }

    /// The codes by the rows of the batch.
    pub fn codes(&self) -> &SeriesColumn {
        &self.codes
    }

    /// The values by code; `None` is NULL.
    pub fn values(&self) -> &[Option<pg_sys::Datum>] {
        self.of_values.values()
    }
}
