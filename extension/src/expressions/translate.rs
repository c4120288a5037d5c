//! Translates PostgreSQL's expressions into expressions of the engine.
//!
//! An expression is translated if the engine has its exact counterpart. Otherwise the translation fails with the
//! reason, which EXPLAIN shows. The planner translates an expression to find out whether that is possible, and the
//! executor translates it again to use the result. So plans contain PostgreSQL's own expressions only, which survive
//! copying, caching and an upgrade of the library.
//!
//! An expression without columns (a constant, a parameter, `now() - interval '1 hour'`) becomes a *scalar*, which
//! PostgreSQL evaluates once a scan ([`scalar`]). Operators are recognised by their B-tree family, strategy and types,
//! and arithmetic and casts by the OIDs of their functions. Names and search paths do not matter.

use std::cell::RefCell;
use std::collections::BTreeMap;

use lanes_columnar::vector::decimal::column::SharedColumn;
use lanes_columnar::vector::external_value::ExternalValue;
use lanes_columnar::vector::number::{Number, NumberType, Operation, Scalar};
use lanes_columnar::vector::text_length::TextLength;
use lanes_columnar::vector::value::Value;
use lanes_columnar::with_number;
use pgrx::pg_sys::{self, Datum, Oid};

use super::joined_columns::CodedExpressions;
use super::joined_columns::{Computed, JoinedColumns};
use super::number_functions::{
    arithmetic, cast, is_absolute, microseconds, negation, rounding, shift, text_unit,
};
use super::scalar::{self, RunningNode};
use crate::pg::catalog;
use crate::pg::exec::node::ExecNode;
use crate::pg::names::{describe, function_name, type_name};
use crate::pg::tree::{Expr, Kind, List, Var, View, plan_node};
use crate::pg::typed_datum::TypedDatum;

/// Why an expression is not translated.
pub type Refusal = String;

/// The result of a translation.
pub type Translation<T> = Result<T, Refusal>;

/// Where the values of scalars come from.
#[derive(Clone, Copy)]
pub enum Scalars {
    /// Scalars have no values yet: the planner translates.
    Unknown,
    /// This plan node evaluates them.
    Evaluated(RunningNode),
}

impl Scalars {
    /// The scalars of a node that has started.
    pub fn of(node: ExecNode<'_>) -> Scalars {
        Scalars::Evaluated(RunningNode::of(node))
    }
}

/// Translates expressions over the columns of one table, and over the columns that a join adds to its rows.
pub struct Translator {
    scalars_from: Scalars,
    /// The scalars of all translated expressions.
    pub scalars: Vec<Option<Scalar>>,
    pub(super) joined: Option<Joined>,
    /// The attributes of the table that translated expressions use.
    pub asked: RefCell<Asked>,
    /// Whether PostgreSQL may evaluate [conditions on one column](super::value_quals).
    pub asks_by_value: bool,
    /// The number of conditions that PostgreSQL evaluates.
    pub by_value: usize,
    /// Whether PostgreSQL may evaluate [expressions for rows](super::row_function).
    pub(super) has_row_functions: bool,
    /// The number of expressions, and of aggregates, that PostgreSQL evaluates for rows.
    pub by_row: usize,
    /// Whether of the array that the next aggregate returns only the first element is wanted.
    pub wants_first_element: bool,
    /// Whether an expression may be a number although its columns are NULL.
    pub(super) has_choices: bool,
    /// The columns of type `numeric` that aggregates share, by attribute.
    pub(super) shared_columns: BTreeMap<usize, SharedColumn>,
    /// Whether the expression that is translated takes them.
    pub(super) shares_columns: bool,
}

/// Attributes that expressions use, and how often.
#[derive(Clone, Default)]
pub struct Asked(BTreeMap<usize, usize>);

impl Asked {
    /// The attributes in order.
    pub fn attributes(&self) -> Vec<usize> {
        self.0.keys().copied().collect()
    }

    /// Whether an attribute is used exactly once.
    pub fn has_once(&self, attribute: usize) -> bool {
        self.0.get(&attribute) == Some(&1)
    }
}

/// The columns that a join adds.
pub(super) struct Joined {
    /// The range-table index of the table. Columns of any other index are the join's.
    table: u32,
    /// The types of the join's columns, where they are numbers.
    columns: Vec<Option<NumberType>>,
    /// Columns of the join that are computed from other columns.
    computed: Vec<Computed>,
    /// Columns of the join that expressions use, in the order in which a frame holds them.
    wanted: Vec<usize>,
    /// The range-table index and number of each of the join's columns; `None` if all are of one sub-select.
    variables: Option<Vec<(i32, i16)>>,
    /// The number of operands that a frame holds before the join's columns.
    pub(super) joined_before: usize,
    /// The [expressions](crate::joins::by_key::coded) whose codes are the last of those operands. They are compared by
    /// address only.
    pub(super) coded: CodedExpressions,
}

/// The value of a constant or a parameter; `None` is NULL.
pub type Constant = Option<TypedDatum>;

impl Translator {
    /// A translator for expressions over one table.
    pub fn new(scalars_from: Scalars) -> Translator {
        Translator {
            scalars_from,
            scalars: Vec::new(),
            joined: None,
            asked: RefCell::default(),
            asks_by_value: true,
            by_value: 0,
            has_row_functions: false,
            by_row: 0,
            wants_first_element: false,
            has_choices: true,
            shared_columns: BTreeMap::new(),
            shares_columns: false,
        }
    }

    /// A translator for expressions over a table and the columns that a join adds to it.
    pub fn of_joined(scalars_from: Scalars, columns: JoinedColumns) -> Translator {
        Translator {
            joined: Some(Joined {
                table: columns.table,
                columns: columns.types,
                computed: columns.computed,
                wanted: Vec::new(),
                variables: columns.variables,
                joined_before: columns.codes_before,
                coded: CodedExpressions::default(),
            }),
            ..Translator::new(scalars_from)
        }
    }

    /// The join's columns that expressions use, in the order in which a frame must hold them.
    pub fn given(&self) -> &[usize] {
        self.joined.as_ref().map_or(&[], |joined| &joined.wanted)
    }

    /// Whether a column is the join's.
    pub fn is_given(&self, column: Var<'_>) -> bool {
        let table = column.varno() as u32;
        self.joined
            .as_ref()
            .is_some_and(|joined| joined.table != table)
    }

    /// The table's attribute that a column stands for, counted from 0.
    ///
    /// # Errors
    /// If the column is the join's, a system column or a whole row.
    pub fn attribute(&self, column: Var<'_>) -> Translation<usize> {
        if self.is_given(column) {
            return Err(format!(
                "a joined column of type {}",
                type_name(column.vartype())
            ));
        }
        let attribute = attribute(column)?;
        *self.asked.borrow_mut().0.entry(attribute).or_default() += 1;
        Ok(attribute)
    }

    /// As [`attribute`](Self::attribute), of a column of the table with this number.
    ///
    /// # Errors
    /// If it is a system column or a whole row.
    pub fn numbered_attribute(&self, number: i16) -> Translation<usize> {
        let attribute = numbered(number)?;
        *self.asked.borrow_mut().0.entry(attribute).or_default() += 1;
        Ok(attribute)
    }

    /// The table's attributes that expressions have used so far.
    pub fn attributes(&self) -> Vec<usize> {
        self.asked.borrow().attributes()
    }

    /// The table's attributes that expressions have used so far, and how often.
    pub fn asked(&self) -> Asked {
        self.asked.borrow().clone()
    }

    /// The attributes that expressions have used since `before` was returned by [`asked`](Self::asked).
    pub fn asked_since(&self, before: &Asked) -> Asked {
        let mut since = self.asked();
        for (attribute, times) in &before.0 {
            if let Some(now) = since.0.get_mut(attribute) {
                *now -= times;
            }
        }
        since.0.retain(|_, times| *times > 0);
        since
    }

    /// The index of a column among the join's columns.
    fn output(&self, column: Var<'_>) -> Translation<usize> {
        let variables = self
            .joined
            .as_ref()
            .and_then(|joined| joined.variables.as_ref());
        let Some(variables) = variables else {
            return attribute(column);
        };
        variables
            .iter()
            .position(|known| *known == (column.varno(), column.varattno()))
            .ok_or_else(|| "a joined column that the join does not produce".into())
    }

    /// The value of a column that is a number.
    fn column(&mut self, column: Var<'_>, number: NumberType) -> Translation<Value> {
        if !self.is_given(column) {
            return Ok(Value::Column(number, self.attribute(column)?));
        }
        let output = self.output(column)?;
        let computed = self.joined.iter().flat_map(|joined| &joined.computed);
        if let Some((_, expression)) = computed.into_iter().find(|(place, _)| *place == output) {
            return self.strict_value(*expression);
        }
        match &mut self.joined {
            Some(joined) if joined.columns.get(output) == Some(&Some(number)) => {
                let known = joined.wanted.iter().position(|wanted| *wanted == output);
                let place = known.unwrap_or_else(|| {
                    joined.wanted.push(output);
                    joined.wanted.len() - 1
                });
                Ok(Value::Joined(number, joined.joined_before + place))
            }
            _ => Err("a joined column that is not computed from columns of its table alone".into()),
        }
    }

    /// Where the values of scalars come from.
    pub fn scalars_from(&self) -> Scalars {
        self.scalars_from
    }

    /// Whether scalars have values. While a query is planned, they have none.
    pub fn is_evaluated(&self) -> bool {
        matches!(self.scalars_from, Scalars::Evaluated(_))
    }

    /// A value that is NULL in every row.
    pub fn null(&mut self, number: NumberType) -> Value {
        Value::Scalar(number, self.scalar(None))
    }

    /// Adds a scalar and returns its index.
    pub fn scalar(&mut self, value: Option<Scalar>) -> usize {
        self.scalars.push(value);
        self.scalars.len() - 1
    }

    /// The value of an expression without columns; NULL while a query is planned, unless it is a constant.
    ///
    /// # Errors
    /// If the value may differ between evaluations, or evaluating the expression once a scan may raise an error that
    /// evaluating it row by row would not raise.
    pub fn constant(&self, expr: Expr<'_>) -> Translation<Constant> {
        if let Some(constant) = expr.as_const() {
            return Ok(constant.value());
        }
        if expr.is_volatile() {
            return Err("a volatile function".into());
        }
        if expr.has_subplan() {
            return Err("a subquery".into());
        }
        if scalar::may_divide_by_zero(expr) {
            return Err("a division that may be one by zero".into());
        }
        match self.scalars_from {
            Scalars::Unknown => Ok(None),
            Scalars::Evaluated(node) => Ok(scalar::evaluate(expr, node)),
        }
    }

    /// An expression that is a number in each row.
    ///
    /// # Errors
    /// Why the engine cannot compute it.
    pub fn value(&mut self, expr: Expr<'_>) -> Translation<Value> {
        let expr = expr.stripped();
        let type_of = expr.type_of();
        let Some(number) = number_type(type_of) else {
            return Err(format!("an expression of type {}", type_name(type_of)));
        };
        if !expr.has_vars() {
            let value = self.constant(expr)?;
            let scalar = value.map(|value| to_scalar(number, value.datum()));
            return Ok(Value::Scalar(number, self.scalar(scalar)));
        }
        let before = self.progress();
        self.vector_value(expr, number).or_else(|reason| {
            if !self.has_row_functions {
                return Err(reason);
            }
            self.go_back(before);
            self.row_number(expr, number).ok_or(reason)
        })
    }

    /// An expression that is NULL in a row without joined columns, because the join computes it below itself.
    fn strict_value(&mut self, expr: Expr<'_>) -> Translation<Value> {
        let before = (self.has_row_functions, self.has_choices);
        (self.has_row_functions, self.has_choices) = (false, false);
        let value = self.value(expr);
        (self.has_row_functions, self.has_choices) = before;
        value
    }

    /// An expression that the engine has, with columns.
    fn vector_value(&mut self, expr: Expr<'_>, number: NumberType) -> Translation<Value> {
        match expr.kind() {
            Kind::Var(column) => self.column(column, number),
            Kind::OpExpr(operation) => self.operation(operation.opfuncid(), operation.args()),
            Kind::FuncExpr(call) => self.operation(call.funcid(), call.args()),
            Kind::CaseExpr(case) if self.has_choices => self.case(case, number),
            Kind::CoalesceExpr(coalesce) if self.has_choices => self.coalesce(coalesce, number),
            Kind::NullIfExpr(comparison) if self.has_choices => self.null_if(comparison, number),
            Kind::MinMaxExpr(of) if self.has_choices => self.extreme_of(of, number),
            _ => Err(describe(expr)),
        }
    }

    /// The call of a function of numbers.
    fn operation(&mut self, function: Oid, arguments: List<'_, Expr<'_>>) -> Translation<Value> {
        let function = function.to_u32();
        let argument = |index| {
            let argument: Option<Expr<'_>> = arguments.get(index);
            argument.ok_or_else(|| format!("function {}", function_name(function)))
        };
        if let Some((number, operation)) = arithmetic(function) {
            let left = self.value(argument(0)?)?;
            let right = self.value(argument(1)?)?;
            return Ok(Value::arithmetic(
                number,
                operation,
                widened(number, left),
                widened(number, right),
            ));
        }
        if let Some(number) = negation(function) {
            let value = self.value(argument(0)?)?;
            let minus_one = with_number!(number, T => minus_one::<T>());
            let factor = Value::Scalar(number, self.scalar(Some(minus_one)));
            let product = Value::arithmetic(number, Operation::Multiply, value, factor);
            return Ok(product);
        }
        if let Some(sign) = shift(function) {
            let value = self.value(argument(0)?)?;
            let by = microseconds(argument(1)?, function)?;
            let scalar = self.scalar(Some(Scalar((sign * by) as u64)));
            return Ok(Value::shift(value, scalar));
        }
        if is_absolute(function) {
            return Ok(Value::absolute(self.value(argument(0)?)?));
        }
        if let Some(rounding) = rounding(function) {
            return Ok(Value::round(rounding, self.value(argument(0)?)?));
        }
        if let Some((from, to)) = cast(function) {
            let value = self.value(argument(0)?)?;
            if value.number() != from {
                return Err("a cast from an unexpected type".into());
            }
            return Ok(Value::convert(to, value));
        }
        if let Some(unit) = text_unit(function)
            && let Some(column) = text_column(argument(0)?.stripped())
        {
            let attribute = self.attribute(column)?;
            let length = Box::new(TextLength::new(attribute, unit));
            let value = ExternalValue::new(NumberType::I32, vec![attribute], length);
            return Ok(Value::External(value));
        }
        Err(format!("function {}", function_name(function)))
    }
}

/// The scalar `-1` of a type.
fn minus_one<T: Number>() -> Scalar {
    match T::TYPE {
        NumberType::F32 => (-1f32).to_scalar(),
        NumberType::F64 => (-1f64).to_scalar(),
        _ => Scalar(-1i64 as u64),
    }
}

/// The type to which both sides of a comparison are converted.
pub(super) fn wider(a: NumberType, b: NumberType) -> NumberType {
    if a.width() >= b.width() { a } else { b }
}

/// A value converted to a wider type.
pub(super) fn widened(number: NumberType, value: Value) -> Value {
    match value {
        value if value.number() == number => value,
        // The scalar of an integer is the same in every width. Only a plain scalar can be compared with zone maps.
        Value::Scalar(from, index) if !from.is_float() && !number.is_float() => {
            Value::Scalar(number, index)
        }
        value => Value::convert(number, value),
    }
}

/// The engine's number type for an SQL type, if it has one.
pub fn number_type(type_of: Oid) -> Option<NumberType> {
    Some(match catalog::base_type(type_of) {
        pg_sys::INT2OID => NumberType::I16,
        pg_sys::INT4OID | pg_sys::DATEOID => NumberType::I32,
        pg_sys::INT8OID | pg_sys::TIMEOID | pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID => {
            NumberType::I64
        }
        pg_sys::FLOAT4OID => NumberType::F32,
        pg_sys::FLOAT8OID => NumberType::F64,
        _ => return None,
    })
}

/// The scalar of a datum of a number type.
pub fn to_scalar(number: NumberType, datum: Datum) -> Scalar {
    let bits = datum.value() as u64;
    match number {
        NumberType::I16 => (bits as i16).to_scalar(),
        NumberType::I32 => (bits as i32).to_scalar(),
        NumberType::F32 => Scalar(bits & 0xffff_ffff),
        NumberType::I64 | NumberType::F64 => Scalar(bits),
    }
}

/// The datum of a scalar, sign-extended as PostgreSQL's macros do.
pub fn to_datum(number: NumberType, scalar: Scalar) -> Datum {
    match number {
        NumberType::F32 => Datum::from(scalar.0 as u32 as i32),
        _ => Datum::from(scalar.0 as usize),
    }
}

/// The attribute that a column stands for, counted from 0.
fn attribute(column: Var<'_>) -> Translation<usize> {
    numbered(column.varattno())
}

/// The attribute with a column's number, counted from 0.
fn numbered(number: i16) -> Translation<usize> {
    match number {
        ..=0 => Err("a system column or whole row".into()),
        number => Ok(number as usize - 1),
    }
}

/// An expression of a plan below any relabelling, which changes no bytes.
pub fn strip(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    plan_node::<Expr<'_>>(node).stripped().as_ptr()
}

/// The column of text or varchar that an expression is, if it is one. Its values are equal if their bytes are.
pub fn text_column(expr: Expr<'_>) -> Option<Var<'_>> {
    expr.as_var().filter(|column| {
        let base = catalog::base_type(column.vartype());
        matches!(base, pg_sys::TEXTOID | pg_sys::VARCHAROID)
    })
}
