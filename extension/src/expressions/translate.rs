//! From PostgreSQL's expressions to the engine's.
//!
//! What has an exact counterpart is translated; anything else is refused with the reason, which EXPLAIN shows. The
//! planner translates to find out whether it can be done, the executor once more to do it: what is planned stays
//! PostgreSQL's own expressions, which survive copying, caching and a change of the library.
//!
//! Expressions without columns (constants, parameters, `now() - interval '1 hour'`) become *scalars*: PostgreSQL
//! evaluates them once a scan ([`scalar`]). Operators are known by their B-tree family, strategy and types,
//! arithmetic and casts by the OIDs of their functions, so nothing depends on names or search paths.

use std::cell::RefCell;
use std::collections::BTreeMap;

use lanes_columnar::vector::members::Members;
use lanes_columnar::vector::number::{Number, NumberType, Operation, Scalar};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::value::Value;
use lanes_columnar::with_number;
use lanes_simd::Comparison;
use pgrx::pg_sys;

use super::condition_code;
use super::joined_columns::{Computed, JoinedColumns};
use super::number_functions::{arithmetic, cast, microseconds, negation, rounding, shift};
use super::scalar;
use super::text_quals::{TextFunction, text_function};
use super::uuid_quals::uuid_comparison;
use crate::pg::names::{describe, function_name, operator_name, type_name};
use crate::pg::{datum, nodes, ports};

/// Why something is not translated.
pub type Refusal = String;

/// The result of a translation.
pub type Translation<T> = Result<T, Refusal>;

/// Where scalars come from.
#[derive(Clone, Copy)]
pub enum Scalars {
    /// Nowhere: only whether it can be done is asked.
    Unknown,
    /// They are evaluated, as expressions of this plan node.
    Evaluated(*mut pg_sys::PlanState),
}

/// Translates expressions over the columns of one table, and over what a join gives its rows.
pub struct Translator {
    scalars_from: Scalars,
    /// The scalars of all that was translated so far.
    pub scalars: Vec<Option<Scalar>>,
    joined: Option<Joined>,
    /// The table's attributes that were asked for.
    pub asked: RefCell<Asked>,
    /// Whether PostgreSQL may be asked about [conditions on one column](super::value_quals), and how many those are.
    pub asks_by_value: bool,
    pub by_value: usize,
}

/// Attributes that were asked for, and how often.
#[derive(Clone, Default)]
pub struct Asked(BTreeMap<usize, usize>);

impl Asked {
    /// In order.
    pub fn attributes(&self) -> Vec<usize> {
        self.0.keys().copied().collect()
    }

    /// Whether this one was asked for once only.
    pub fn has_once(&self, attribute: usize) -> bool {
        self.0.get(&attribute) == Some(&1)
    }
}

/// What a join gives.
struct Joined {
    /// The range-table index of the table; columns of any other are the join's.
    table: u32,
    /// The types of the join's columns, where they are numbers.
    columns: Vec<Option<NumberType>>,
    /// Those that are computed from others.
    computed: Vec<Computed>,
    /// Those of them that were asked for, in the order of the frame's.
    wanted: Vec<usize>,
    /// The range-table index and column number of each joined column; none if all are of one sub-select.
    variables: Option<Vec<(i32, i16)>>,
    /// How many operands a frame is given before the joined columns.
    joined_before: usize,
    /// The [conditions](crate::joins::by_key::conditions) whose codes are the last of these.
    conditions: Vec<*mut pg_sys::Node>,
}

/// A constant, or a parameter's value, by its datum.
pub type Constant = Option<pg_sys::Datum>;

impl Translator {
    /// Nothing translated yet.
    pub fn new(scalars_from: Scalars) -> Translator {
        Translator {
            scalars_from,
            scalars: Vec::new(),
            joined: None,
            asked: RefCell::default(),
            asks_by_value: true,
            by_value: 0,
        }
    }

    /// For a table that is joined.
    pub fn of_joined(scalars_from: Scalars, columns: JoinedColumns) -> Translator {
        Translator {
            joined: Some(Joined {
                table: columns.table,
                columns: columns.types,
                computed: columns.computed,
                wanted: Vec::new(),
                variables: columns.variables,
                joined_before: columns.codes_before,
                conditions: Vec::new(),
            }),
            ..Translator::new(scalars_from)
        }
    }

    /// With conditions on the small sides of a hash join, whose codes the frame is given after the codes of groups.
    pub fn with_conditions(mut self, conditions: &[*mut pg_sys::Node]) -> Translator {
        if let Some(joined) = &mut self.joined {
            joined.joined_before += conditions.len();
            joined.conditions = conditions.to_vec();
        }
        self
    }

    /// A condition whose code the frame is given; none if a node is none of these.
    pub fn given_condition(&mut self, node: *mut pg_sys::Node) -> Option<Predicate> {
        let joined = self.joined.as_ref()?;
        let mut conditions = joined.conditions.iter();
        let condition = conditions.position(|condition| std::ptr::eq(*condition, node))?;
        let place = joined.joined_before - joined.conditions.len() + condition;
        let mut is = |code| {
            let code = self.scalar(Some(Scalar(code)));
            let (given, code) = (
                Value::Joined(NumberType::I64, place),
                Value::Scalar(NumberType::I64, code),
            );
            Predicate::Compare(Comparison::Equal, given, code)
        };
        let (holds, is_null) = (is(condition_code::TRUE), is(condition_code::NULL));
        let null = Predicate::Scalar(self.scalar(None));
        Some(Predicate::Or(vec![
            holds,
            Predicate::And(vec![is_null, null]),
        ]))
    }

    /// The join's columns that were asked for, in the order in which a frame has to have them.
    pub fn given(&self) -> &[usize] {
        self.joined.as_ref().map_or(&[], |joined| &joined.wanted)
    }

    /// Whether a column is the join's.
    pub fn is_given(&self, node: *mut pg_sys::Node) -> bool {
        // SAFETY: the caller's promise.
        let table = unsafe { (*node.cast::<pg_sys::Var>()).varno } as u32;
        self.joined
            .as_ref()
            .is_some_and(|joined| joined.table != table)
    }

    /// The index of the table's attribute that a column is.
    pub fn attribute(&self, node: *mut pg_sys::Node) -> Translation<usize> {
        // SAFETY: the caller's promise.
        unsafe {
            if self.is_given(node) {
                let type_of = type_name((*node.cast::<pg_sys::Var>()).vartype);
                return Err(format!("a joined column of type {type_of}"));
            }
            self.own_attribute(node)
        }
    }

    /// The same of a column that is the table's.
    unsafe fn own_attribute(&self, node: *mut pg_sys::Node) -> Translation<usize> {
        // SAFETY: the caller has a live Var.
        let attribute = unsafe { attribute(node)? };
        *self.asked.borrow_mut().0.entry(attribute).or_default() += 1;
        Ok(attribute)
    }

    /// The table's attributes that were asked for so far.
    pub fn attributes(&self) -> Vec<usize> {
        self.asked.borrow().attributes()
    }

    /// The same with how often.
    pub fn asked(&self) -> Asked {
        self.asked.borrow().clone()
    }

    /// What was asked for since.
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

    /// The place of a joined column among the join's outputs.
    unsafe fn output(&self, node: *mut pg_sys::Node) -> Translation<usize> {
        // SAFETY: the caller has a live Var.
        unsafe {
            let variables = self
                .joined
                .as_ref()
                .and_then(|joined| joined.variables.as_ref());
            let Some(variables) = variables else {
                return attribute(node);
            };
            let column = &*node.cast::<pg_sys::Var>();
            let mut variables = variables.iter();
            variables
                .position(|known| *known == (column.varno, column.varattno))
                .ok_or_else(|| "a joined column that the join does not give".into())
        }
    }

    /// A column that is a number.
    unsafe fn column(&mut self, node: *mut pg_sys::Node, number: NumberType) -> Translation<Value> {
        // SAFETY: `value` has a live Var.
        unsafe {
            if !self.is_given(node) {
                return Ok(Value::Column(number, self.own_attribute(node)?));
            }
            let output = self.output(node)?;
            let computed = self.joined.iter().flat_map(|joined| &joined.computed);
            if let Some((_, expression)) = computed.into_iter().find(|(place, _)| *place == output)
            {
                return self.value(*expression);
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
                _ => Err(
                    "a joined column that is not computed from columns of its table alone".into(),
                ),
            }
        }
    }

    /// Where scalars come from.
    pub fn scalars_from(&self) -> Scalars {
        self.scalars_from
    }

    /// Whether scalars have values: while a query is planned, they have none.
    pub fn is_evaluated(&self) -> bool {
        matches!(self.scalars_from, Scalars::Evaluated(_))
    }

    /// NULL in every row.
    pub fn null(&mut self, number: NumberType) -> Value {
        Value::Scalar(number, self.scalar(None))
    }

    pub fn scalar(&mut self, value: Option<Scalar>) -> usize {
        self.scalars.push(value);
        self.scalars.len() - 1
    }

    /// The value of an expression without columns.
    pub fn constant(&self, node: *mut pg_sys::Node) -> Translation<Constant> {
        // SAFETY: the caller's promise; the plan node outlives the scan.
        unsafe {
            if (*node).type_ == pg_sys::NodeTag::T_Const {
                let constant = node.cast::<pg_sys::Const>();
                return Ok((!(*constant).constisnull).then_some((*constant).constvalue));
            }
            if pg_sys::contain_volatile_functions(node) {
                return Err("a volatile function".into());
            }
            if nodes::contains_subplan(node) {
                return Err("a subquery".into());
            }
            if scalar::may_divide_by_zero(node) {
                return Err("a division that may be one by zero".into());
            }
            match self.scalars_from {
                Scalars::Unknown => Ok(None),
                Scalars::Evaluated(plan) => Ok(scalar::evaluate(node.cast(), plan)),
            }
        }
    }

    /// A number a row.
    pub fn value(&mut self, node: *mut pg_sys::Node) -> Translation<Value> {
        // SAFETY: the caller's promise; each node is read as what its tag says.
        unsafe {
            let node = strip(node);
            let type_of = pg_sys::exprType(node);
            let Some(number) = number_type(type_of) else {
                return Err(format!("an expression of type {}", type_name(type_of)));
            };
            if !pg_sys::contain_var_clause(node) {
                let value = self.constant(node)?;
                let scalar = value.map(|datum| to_scalar(number, datum));
                return Ok(Value::Scalar(number, self.scalar(scalar)));
            }
            match (*node).type_ {
                pg_sys::NodeTag::T_Var => self.column(node, number),
                pg_sys::NodeTag::T_OpExpr => {
                    let operation = node.cast::<pg_sys::OpExpr>();
                    self.operation((*operation).opfuncid.to_u32(), (*operation).args)
                }
                pg_sys::NodeTag::T_FuncExpr => {
                    let function = node.cast::<pg_sys::FuncExpr>();
                    self.operation((*function).funcid.to_u32(), (*function).args)
                }
                _ => Err(describe(node)),
            }
        }
    }

    unsafe fn operation(
        &mut self,
        function: u32,
        arguments: *mut pg_sys::List,
    ) -> Translation<Value> {
        // SAFETY: as for `value`.
        unsafe {
            let argument = |i| ports::list_nth::<pg_sys::Node>(arguments, i);
            if let Some((number, operation)) = arithmetic(function) {
                let left = self.value(argument(0))?;
                let right = self.value(argument(1))?;
                return Ok(Value::arithmetic(
                    number,
                    operation,
                    widened(number, left),
                    widened(number, right),
                ));
            }
            if let Some(number) = negation(function) {
                let value = self.value(argument(0))?;
                let minus_one = with_number!(number, T => one_less_than_zero::<T>());
                let scalar = self.scalar(Some(minus_one));
                let factor = Value::Scalar(number, scalar);
                return Ok(Value::arithmetic(
                    number,
                    Operation::Multiply,
                    value,
                    factor,
                ));
            }
            if let Some(sign) = shift(function) {
                let value = self.value(argument(0))?;
                let by = microseconds(argument(1), function)?;
                let scalar = self.scalar(Some(Scalar((sign * by) as u64)));
                return Ok(Value::shift(value, scalar));
            }
            if let Some(rounding) = rounding(function) {
                return Ok(Value::round(rounding, self.value(argument(0))?));
            }
            if let Some((from, to)) = cast(function) {
                let value = self.value(argument(0))?;
                if value.number() != from {
                    return Err("a cast from an unexpected type".into());
                }
                return Ok(Value::convert(to, value));
            }
            Err(format!("function {}", function_name(function)))
        }
    }

    /// A truth a row that is the engine's, but for what is in it.
    ///
    /// # Safety
    /// `node` is a live expression of type bool over one table.
    pub unsafe fn vector_predicate(&mut self, node: *mut pg_sys::Node) -> Translation<Predicate> {
        // SAFETY: the caller's promise; each node is read as what its tag says.
        unsafe {
            let node = strip(node);
            if !pg_sys::contain_var_clause(node) {
                let value = self.constant(node)?;
                let scalar = value.map(|datum| Scalar((datum.value() & 0xff != 0).into()));
                return Ok(Predicate::Scalar(self.scalar(scalar)));
            }
            match (*node).type_ {
                pg_sys::NodeTag::T_Var => Ok(Predicate::Bool(self.attribute(node)?)),
                pg_sys::NodeTag::T_BoolExpr => {
                    let expression = node.cast::<pg_sys::BoolExpr>();
                    let mut parts = Vec::new();
                    for part in nodes::list::<pg_sys::Node>((*expression).args) {
                        parts.push(self.predicate(part)?);
                    }
                    Ok(match (*expression).boolop {
                        pg_sys::BoolExprType::AND_EXPR => Predicate::And(parts),
                        pg_sys::BoolExprType::OR_EXPR => Predicate::Or(parts),
                        _ => Predicate::Not(Box::new(parts.remove(0))),
                    })
                }
                pg_sys::NodeTag::T_NullTest => self.null_test(node.cast()),
                pg_sys::NodeTag::T_BooleanTest => {
                    let test = node.cast::<pg_sys::BooleanTest>();
                    let inner = Box::new(self.predicate((*test).arg.cast())?);
                    let not = |predicate| Predicate::Not(Box::new(predicate));
                    Ok(match (*test).booltesttype {
                        pg_sys::BoolTestType::IS_TRUE => Predicate::IsTrue(inner),
                        pg_sys::BoolTestType::IS_NOT_TRUE => not(Predicate::IsTrue(inner)),
                        pg_sys::BoolTestType::IS_FALSE => Predicate::IsFalse(inner),
                        pg_sys::BoolTestType::IS_NOT_FALSE => not(Predicate::IsFalse(inner)),
                        pg_sys::BoolTestType::IS_UNKNOWN => Predicate::IsUnknown(inner),
                        _ => not(Predicate::IsUnknown(inner)),
                    })
                }
                pg_sys::NodeTag::T_OpExpr => self.comparison(node.cast()),
                pg_sys::NodeTag::T_ScalarArrayOpExpr => self.member(node.cast()),
                _ => Err(describe(node)),
            }
        }
    }

    unsafe fn null_test(&mut self, test: *mut pg_sys::NullTest) -> Translation<Predicate> {
        // SAFETY: as for `predicate`.
        unsafe {
            if (*test).argisrow {
                return Err("a test of a row for NULL".into());
            }
            let argument = strip((*test).arg.cast());
            let is_null = if (*argument).type_ == pg_sys::NodeTag::T_Var && !self.is_given(argument)
            {
                Predicate::ColumnIsNull(self.own_attribute(argument)?)
            } else if pg_sys::exprType(argument) == pg_sys::BOOLOID {
                Predicate::IsUnknown(Box::new(self.predicate(argument)?))
            } else {
                Predicate::IsNull(self.value(argument)?)
            };
            Ok(match (*test).nulltesttype {
                pg_sys::NullTestType::IS_NULL => is_null,
                _ => Predicate::Not(Box::new(is_null)),
            })
        }
    }

    unsafe fn comparison(&mut self, expression: *mut pg_sys::OpExpr) -> Translation<Predicate> {
        // SAFETY: as for `predicate`.
        unsafe {
            let (left, right) = (
                strip(ports::list_nth((*expression).args, 0)),
                match ports::list_length((*expression).args) {
                    2 => strip(ports::list_nth((*expression).args, 1)),
                    _ => return Err("a prefix operator".into()),
                },
            );
            let function = (*expression).opfuncid.to_u32();
            let collation = (*expression).inputcollid;
            if let Some(found) = self.text_comparison(function, collation, left, right)? {
                return Ok(found);
            }
            if let Some(comparison) = uuid_comparison(function) {
                return self.compared_uuid(comparison, left, right);
            }
            let of_bytes = match function {
                pg_sys::F_BYTEAEQ => Some(Comparison::Equal),
                pg_sys::F_BYTEANE => Some(Comparison::NotEqual),
                _ => None,
            };
            if let Some(comparison) = of_bytes {
                return self.bits(comparison, left, right);
            }
            let Some((comparison, family, types)) = ports::btree_operator((*expression).opno)
            else {
                return Err(format!("operator {}", operator_name((*expression).opno)));
            };
            let numbers = matches!(
                family,
                pg_sys::INTEGER_BTREE_FAM_OID | ports::FLOAT_BTREE_FAM_OID
            );
            // Times of different types are not comparable as numbers.
            if !numbers && types.0 != types.1 {
                return Err("a comparison of times of different types".into());
            }
            let (a, b) = (self.value(left)?, self.value(right)?);
            let number = wider(a.number(), b.number());
            Ok(Predicate::Compare(
                comparison,
                widened(number, a),
                widened(number, b),
            ))
        }
    }

    /// `float8send(column)` compared with bytes for equality: how one NaN is told from another, as `lanes.is_stale_marker` does.
    unsafe fn bits(
        &mut self,
        comparison: Comparison,
        left: *mut pg_sys::Node,
        right: *mut pg_sys::Node,
    ) -> Translation<Predicate> {
        let refused = "a comparison of bytes";
        // SAFETY: as for `predicate`.
        unsafe {
            if (*left).type_ != pg_sys::NodeTag::T_FuncExpr
                || (*left.cast::<pg_sys::FuncExpr>()).funcid.to_u32() != pg_sys::F_FLOAT8SEND
                || pg_sys::contain_var_clause(right)
            {
                return Err(refused.into());
            }
            let sent = ports::list_nth((*left.cast::<pg_sys::FuncExpr>()).args, 0);
            let Value::Column(NumberType::F64, attribute) = self.value(sent)? else {
                return Err(refused.into());
            };
            let bytes = self
                .constant(right)?
                .map(|datum| datum::text_payload(datum));
            let bits = match bytes.map(|bytes| <[u8; 8]>::try_from(&bytes[..])) {
                // A float is sent with its highest byte first.
                Some(Ok(bytes)) => Some(Scalar(u64::from_be_bytes(bytes))),
                Some(Err(_)) => return Err(refused.into()),
                None => None,
            };
            let bits = Value::Scalar(NumberType::I64, self.scalar(bits));
            let column = Value::Column(NumberType::I64, attribute);
            Ok(Predicate::Compare(comparison, column, bits))
        }
    }

    unsafe fn member(
        &mut self,
        expression: *mut pg_sys::ScalarArrayOpExpr,
    ) -> Translation<Predicate> {
        // SAFETY: as for `predicate`.
        unsafe {
            let column = strip(ports::list_nth((*expression).args, 0));
            let array = strip(ports::list_nth((*expression).args, 1));
            if pg_sys::contain_var_clause(array) {
                return Err("an array of the row".into());
            }
            let any = (*expression).useOr;
            let function = (*expression).opfuncid.to_u32();
            let element = pg_sys::get_element_type(pg_sys::exprType(array));
            let constant = self.constant(array)?;
            let null_array = constant.is_none();
            let elements =
                constant.map_or(Vec::new(), |datum| datum::array_elements(datum, element));
            if text_function(function) != TextFunction::None {
                let elements = (!null_array).then_some(elements);
                return self.text_member(expression, column, elements);
            }
            if let Some(comparison) = uuid_comparison(function) {
                let elements = (!null_array).then_some(elements);
                return self.uuid_member(comparison, any, column, elements);
            }
            let Some((comparison, _, types)) = ports::btree_operator((*expression).opno) else {
                return Err(format!("operator {}", operator_name((*expression).opno)));
            };
            let negated = match (comparison, any) {
                (Comparison::Equal, true) => false,
                (Comparison::NotEqual, false) => true,
                _ => return Err("a list with this operator".into()),
            };
            let Some(number) = number_type(element) else {
                return Err(format!("a list of type {}", type_name(element)));
            };
            if types.0 != types.1 {
                return Err("a list of another type".into());
            }
            let value = self.value(column)?;
            if value.number() != number {
                return Err("a list of another type".into());
            }
            if null_array {
                let unknown = self.scalar(None);
                return Ok(Predicate::Scalar(unknown));
            }
            let list = elements
                .into_iter()
                .map(|datum| self.scalar(datum.map(|datum| to_scalar(number, datum))))
                .collect();
            let list = Members::new(list);
            Ok(if negated {
                Predicate::NotMember(value, list)
            } else {
                Predicate::Member(value, list)
            })
        }
    }
}

/// `-1` of a type.
fn one_less_than_zero<T: Number>() -> Scalar {
    if T::TYPE.is_float() {
        match T::TYPE {
            NumberType::F32 => (-1f32).to_scalar(),
            _ => (-1f64).to_scalar(),
        }
    } else {
        Scalar(-1i64 as u64)
    }
}

/// The number of the type that both sides are converted to.
fn wider(a: NumberType, b: NumberType) -> NumberType {
    if a.width() >= b.width() { a } else { b }
}

/// A value as a number of a wider type, if it is not yet one.
fn widened(number: NumberType, value: Value) -> Value {
    match value {
        value if value.number() == number => value,
        // A scalar of an integer is the same in every width. As a plain scalar, zone maps can be asked about it.
        Value::Scalar(from, index) if !from.is_float() && !number.is_float() => {
            Value::Scalar(number, index)
        }
        value => Value::convert(number, value),
    }
}

/// The number type of an SQL type.
pub fn number_type(type_of: pg_sys::Oid) -> Option<NumberType> {
    let base = if type_of.to_u32() < pg_sys::FirstNormalObjectId {
        type_of
    } else {
        // SAFETY: a catalogue look-up.
        unsafe { pg_sys::getBaseType(type_of) }
    };
    Some(match base {
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

/// A datum of a number type.
pub fn to_scalar(number: NumberType, datum: pg_sys::Datum) -> Scalar {
    let bits = datum.value() as u64;
    match number {
        NumberType::I16 => (bits as i16).to_scalar(),
        NumberType::I32 => (bits as i32).to_scalar(),
        NumberType::F32 => Scalar(bits & 0xffff_ffff),
        NumberType::I64 | NumberType::F64 => Scalar(bits),
    }
}

/// A number as a datum, sign-extended as PostgreSQL's macros do.
pub fn to_datum(number: NumberType, scalar: Scalar) -> pg_sys::Datum {
    match number {
        NumberType::F32 => pg_sys::Datum::from(scalar.0 as u32 as i32),
        _ => pg_sys::Datum::from(scalar.0 as usize),
    }
}

/// Without relabelling, which changes no bytes.
pub fn strip(mut node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise.
    unsafe {
        while (*node).type_ == pg_sys::NodeTag::T_RelabelType {
            node = (*node.cast::<pg_sys::RelabelType>()).arg.cast();
        }
    }
    node
}

/// The index of the attribute that a Var stands for.
///
/// # Safety
/// `node` is a live Var.
unsafe fn attribute(node: *mut pg_sys::Node) -> Translation<usize> {
    // SAFETY: the caller's promise.
    let number = unsafe { (*node.cast::<pg_sys::Var>()).varattno };
    if number <= 0 {
        return Err("a system column or whole row".into());
    }
    Ok(number as usize - 1)
}

/// Whether an expression is a column of text or varchar, whose items are equal if their bytes are.
///
/// # Safety
/// `node` is a live expression.
pub unsafe fn is_text_column(node: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        (*node).type_ == pg_sys::NodeTag::T_Var && {
            let base = pg_sys::getBaseType((*node.cast::<pg_sys::Var>()).vartype);
            matches!(base, pg_sys::TEXTOID | pg_sys::VARCHAROID)
        }
    }
}
