//! Recognises a lateral sub-select that finds one row by time: what the rewrite makes, and what people write by hand.
//!
//! ```text
//! SELECT columns FROM table
//! WHERE [key = outer …] AND [time <= outer] [AND time >= outer …] [AND anything else]
//! ORDER BY time [DESC] [, tie] [, ctid] LIMIT 1
//! ```
//! A pure look at the tree: nothing is changed, nothing planned. Expressions in a [`Shape`] are folded copies in the terms of
//! the sub-select: its table's `Var`s have level 0 and number [`Shape::entry`], the outer query's have level 1.

use pgrx::pg_sys;

use crate::pg::kind::Kind;
use crate::pg::{ports, tree};

/// An equality between a column and an expression of the outer query.
#[derive(Clone, Debug)]
pub struct Key {
    /// The column, counted from 1.
    pub column: i16,
    /// How the column is read.
    pub kind: Kind,
    /// The other side; level-1 variables only.
    pub outer: *mut pg_sys::Node,
    /// How the other side is read.
    pub outer_kind: Kind,
    /// `IS NOT DISTINCT FROM`: NULL equals NULL. Otherwise NULL equals nothing.
    pub nulls_match: bool,
}

/// An inequality between the time and an expression of the outer query.
#[derive(Clone, Debug)]
pub struct Bound {
    /// `time <= outer` or `time < outer`; otherwise `>=` or `>`.
    pub upper: bool,
    /// Whether equal times are within.
    pub inclusive: bool,
    /// The other side; level-1 variables only.
    pub outer: *mut pg_sys::Node,
    /// How the other side is read.
    pub outer_kind: Kind,
}

/// A further column of the order.
#[derive(Clone, Copy, Debug)]
pub struct Tie {
    /// The column, counted from 1.
    pub column: i16,
    /// How it is read.
    pub kind: Kind,
    /// Sorted DESC.
    pub descending: bool,
    /// Where NULLs go in the sort as it is written.
    pub nulls_first: bool,
}

/// What a column of the sub-select is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A column of the table, counted from 1.
    Column(i16),
    /// Something else.
    Other,
}

/// A lateral sub-select that finds one row by time.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The table.
    pub table: pg_sys::Oid,
    /// Its number in the sub-select's range table.
    pub entry: i32,
    /// The time's column, counted from 1.
    pub time: i16,
    /// How the time is read.
    pub time_kind: Kind,
    /// `ORDER BY time DESC`: the latest is wanted, otherwise the earliest.
    pub backward: bool,
    /// Equalities.
    pub keys: Vec<Key>,
    /// Inequalities of the time.
    pub bounds: Vec<Bound>,
    /// The tolerance, when a bound on the far side is the bound on the near side `-` or `+` something.
    pub tolerance: Option<*mut pg_sys::Node>,
    /// Further columns of the order.
    pub ties: Vec<Tie>,
    /// `Some(descending)` when the order ends with `ctid`.
    pub arrival: Option<bool>,
    /// Conditions on the table alone.
    pub table_quals: Vec<*mut pg_sys::Node>,
    /// Conditions on both sides, or on the outer one alone.
    pub residual_quals: Vec<*mut pg_sys::Node>,
    /// The sub-select's columns in their order, with those that only sort.
    pub outputs: Vec<Output>,
}

impl Shape {
    /// Rows of a table, about which nothing else is known yet.
    pub fn without_order(table: pg_sys::Oid, entry: i32, time: i16, time_kind: Kind) -> Shape {
        Shape {
            table,
            entry,
            time,
            time_kind,
            backward: false,
            keys: Vec::new(),
            bounds: Vec::new(),
            tolerance: None,
            ties: Vec::new(),
            arrival: None,
            table_quals: Vec::new(),
            residual_quals: Vec::new(),
            outputs: Vec::new(),
        }
    }
}

/// What an expression refers to.
#[derive(Clone, Copy, Default)]
struct References {
    inner: bool,
    outer: bool,
    /// What cannot be evaluated by itself: sub-selects, aggregates, places further out, whole rows, system columns.
    unfit: bool,
}

unsafe fn references(expression: *mut pg_sys::Node) -> References {
    let mut found = References::default();
    // SAFETY: live nodes; the cast follows the tag.
    unsafe {
        tree::walk_expression(expression, &mut |node, _| {
            match (*node).type_ {
                pg_sys::NodeTag::T_Var => {
                    let variable: *const pg_sys::Var = node.cast();
                    match (*variable).varlevelsup {
                        0 => {
                            found.inner = true;
                            found.unfit |= (*variable).varattno <= 0;
                        }
                        1 => found.outer = true,
                        _ => found.unfit = true,
                    }
                }
                pg_sys::NodeTag::T_Param => {
                    let parameter: *const pg_sys::Param = node.cast();
                    found.unfit |= (*parameter).paramkind != pg_sys::ParamKind::PARAM_EXTERN;
                }
                pg_sys::NodeTag::T_SubLink
                | pg_sys::NodeTag::T_SubPlan
                | pg_sys::NodeTag::T_AlternativeSubPlan
                | pg_sys::NodeTag::T_Query
                | pg_sys::NodeTag::T_Aggref
                | pg_sys::NodeTag::T_GroupingFunc
                | pg_sys::NodeTag::T_WindowFunc
                | pg_sys::NodeTag::T_PlaceHolderVar
                | pg_sys::NodeTag::T_CurrentOfExpr => found.unfit = true,
                _ => {}
            }
            found.unfit
        });
    }
    found
}

/// Looks at a lateral sub-select. `Err`: why it is not of the shape, for EXPLAIN.
///
/// # Safety
/// A live planner and the unplanned query of one of its range-table entries.
pub unsafe fn match_shape(
    root: *mut pg_sys::PlannerInfo,
    query: *const pg_sys::Query,
) -> Result<Shape, &'static str> {
    // SAFETY: the caller's promise; casts follow tags.
    unsafe {
        let plain = reads_plainly(query)
            && !(*query).hasAggs
            && (*query).limitOption == pg_sys::LimitOption::LIMIT_OPTION_COUNT;
        if !plain || !is_one(root, (*query).limitCount) {
            return Err("it is not a plain SELECT … ORDER BY … LIMIT 1");
        }
        let (entry, table) = single_table(query)?;
        let (time, time_kind, backward, ties, arrival) = order(query)?;
        let mut shape = Shape {
            backward,
            ties,
            arrival,
            outputs: outputs(query),
            ..Shape::without_order((*table).relid, entry, time, time_kind)
        };
        for condition in tree::conjuncts((*(*query).jointree).quals) {
            sort_in(root, &mut shape, condition)?;
        }
        if shape.bounds.is_empty() {
            return Err("nothing bounds its time");
        }
        shape.tolerance = tolerance(&shape);
        Ok(shape)
    }
}

/// Whether a query does nothing with the rows of one FROM and WHERE but what its target list, order and limit say.
pub unsafe fn reads_plainly(query: *const pg_sys::Query) -> bool {
    // SAFETY: a live query.
    unsafe {
        (*query).commandType == pg_sys::CmdType::CMD_SELECT
            && (*query).setOperations.is_null()
            && (*query).cteList.is_null()
            && (*query).groupClause.is_null()
            && (*query).groupingSets.is_null()
            && (*query).havingQual.is_null()
            && (*query).distinctClause.is_null()
            && (*query).windowClause.is_null()
            && (*query).rowMarks.is_null()
            && (*query).limitOffset.is_null()
            && !(*query).hasTargetSRFs
            // What nobody looks at is evaluated all the same if it has effects.
            && !pg_sys::contain_volatile_functions((*query).targetList.cast())
    }
}

/// The one table that a query reads, to which no row-level security applies, with its number.
pub unsafe fn single_table(
    query: *const pg_sys::Query,
) -> Result<(i32, *mut pg_sys::RangeTblEntry), &'static str> {
    // SAFETY: a live query; the cast follows the tag.
    unsafe {
        let from = tree::elements::<pg_sys::Node>((*(*query).jointree).fromlist);
        let [from] = from[..] else {
            return Err("it reads more than one table");
        };
        if !tree::is_a(from, pg_sys::NodeTag::T_RangeTblRef) {
            return Err("it reads more than one table");
        }
        let entry = (*from.cast::<pg_sys::RangeTblRef>()).rtindex;
        let table = tree::entry(query, entry);
        if (*table).rtekind != pg_sys::RTEKind::RTE_RELATION || !(*table).tablesample.is_null() {
            return Err("it does not read a plain table");
        }
        if !(*table).securityQuals.is_null() {
            return Err("row-level security applies to its table");
        }
        Ok((entry, table))
    }
}

/// Whether an expression refers to the outer query, or cannot be evaluated by itself.
pub unsafe fn mentions_outer(call: *mut pg_sys::Aggref) -> bool {
    // SAFETY: a live aggregate.
    unsafe {
        let inputs = [
            (*call).args.cast::<pg_sys::Node>(),
            (*call).aggfilter.cast(),
        ];
        inputs.into_iter().any(|input| {
            let about = references(input);
            about.outer || about.unfit
        })
    }
}

/// The column that a condition bounds by an expression of the outer query.
pub unsafe fn bounded_time(
    root: *mut pg_sys::PlannerInfo,
    condition: *mut pg_sys::Node,
) -> Option<(i16, Kind)> {
    // SAFETY: a live condition; the cast follows the tag.
    unsafe {
        let condition = pg_sys::eval_const_expressions(root, tree::copy(condition));
        if !tree::is_a(condition, pg_sys::NodeTag::T_OpExpr) || !references(condition).outer {
            return None;
        }
        let found = comparison(condition.cast())?;
        let bounds = found.strategy != pg_sys::BTEqualStrategyNumber as i32;
        (bounds && found.kind.is_ordered()).then_some((found.column, found.kind))
    }
}

unsafe fn is_one(root: *mut pg_sys::PlannerInfo, limit: *mut pg_sys::Node) -> bool {
    // SAFETY: a live expression or null; the cast follows the tag.
    unsafe {
        if limit.is_null() {
            return false;
        }
        let limit = pg_sys::eval_const_expressions(root, tree::copy(limit));
        if !tree::is_a(limit, pg_sys::NodeTag::T_Const) {
            return false;
        }
        let constant: *const pg_sys::Const = limit.cast();
        !(*constant).constisnull && (*constant).constvalue.value() as i64 == 1
    }
}

/// A plain column: through relabelling too, which changes nothing about the value.
unsafe fn column(mut expression: *mut pg_sys::Node) -> Option<i16> {
    // SAFETY: a live expression; casts follow tags.
    unsafe {
        while tree::is_a(expression, pg_sys::NodeTag::T_RelabelType) {
            expression = (*expression.cast::<pg_sys::RelabelType>()).arg.cast();
        }
        if !tree::is_a(expression, pg_sys::NodeTag::T_Var) {
            return None;
        }
        let variable: *const pg_sys::Var = expression.cast();
        ((*variable).varlevelsup == 0 && (*variable).varattno > 0).then_some((*variable).varattno)
    }
}

type Order = (i16, Kind, bool, Vec<Tie>, Option<bool>);

unsafe fn order(query: *const pg_sys::Query) -> Result<Order, &'static str> {
    // SAFETY: a live query; casts follow tags.
    unsafe {
        let targets = tree::elements::<pg_sys::TargetEntry>((*query).targetList);
        let mut time = None;
        let mut ties = Vec::new();
        let mut arrival = None;
        for key in tree::elements::<pg_sys::SortGroupClause>((*query).sortClause) {
            if arrival.is_some() {
                return Err("its order goes on after ctid");
            }
            let Some(&target) = targets
                .iter()
                .find(|&&target| (*target).ressortgroupref == (*key).tleSortGroupRef)
            else {
                return Err("its order is not of columns");
            };
            let expression: *mut pg_sys::Node = (*target).expr.cast();
            let (mut family, mut kind, mut strategy) = (pg_sys::InvalidOid, pg_sys::InvalidOid, 0);
            if !pg_sys::get_ordering_op_properties(
                (*key).sortop,
                &mut family,
                &mut kind,
                &mut strategy,
            ) {
                return Err("its order is not a usual one");
            }
            let descending = i32::from(strategy) == pg_sys::BTGreaterStrategyNumber as i32;
            if is_ctid(expression) && time.is_some() {
                arrival = Some(descending);
                continue;
            }
            let (Some(column), Some(kind)) = (column(expression), Kind::of_type(kind)) else {
                return Err("its order is not of columns of times or numbers");
            };
            if !kind.is_ordered() || family != default_family(kind_oid(expression)) {
                return Err("its order is not of columns of times or numbers");
            }
            if time.is_none() {
                time = Some((column, kind, descending));
            } else {
                ties.push(Tie {
                    column,
                    kind,
                    descending,
                    nulls_first: (*key).nulls_first,
                });
            }
        }
        let Some((column, kind, descending)) = time else {
            return Err("it has no order");
        };
        Ok((column, kind, descending, ties, arrival))
    }
}

unsafe fn kind_oid(expression: *const pg_sys::Node) -> pg_sys::Oid {
    // SAFETY: a live expression.
    unsafe { pg_sys::getBaseType(pg_sys::exprType(expression)) }
}

unsafe fn is_ctid(expression: *const pg_sys::Node) -> bool {
    // SAFETY: a live expression; the cast follows the tag.
    unsafe {
        tree::is_a(expression, pg_sys::NodeTag::T_Var) && {
            let variable: *const pg_sys::Var = expression.cast();
            (*variable).varlevelsup == 0
                && i32::from((*variable).varattno) == pg_sys::SelfItemPointerAttributeNumber
        }
    }
}

unsafe fn default_family(kind: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: a catalogue look-up.
    unsafe { (*pg_sys::lookup_type_cache(kind, pg_sys::TYPECACHE_BTREE_OPFAMILY as i32)).btree_opf }
}

unsafe fn outputs(query: *const pg_sys::Query) -> Vec<Output> {
    // SAFETY: a live query.
    unsafe {
        tree::elements::<pg_sys::TargetEntry>((*query).targetList)
            .into_iter()
            .map(|target| {
                let expression: *mut pg_sys::Node = (*target).expr.cast();
                let plain = tree::is_a(expression, pg_sys::NodeTag::T_Var);
                match column(expression) {
                    Some(column) if plain => Output::Column(column),
                    _ => Output::Other,
                }
            })
            .collect()
    }
}

/// A comparison `column operator outer`, whichever way it was written.
struct Comparison {
    column: i16,
    kind: Kind,
    outer: *mut pg_sys::Node,
    outer_kind: Kind,
    /// As if the column stood first.
    strategy: i32,
}

unsafe fn comparison(expression: *const pg_sys::OpExpr) -> Option<Comparison> {
    // SAFETY: a live OpExpr or DistinctExpr.
    unsafe {
        let operands = tree::elements::<pg_sys::Node>((*expression).args);
        let [first, second] = operands[..] else {
            return None;
        };
        let (mut first_type, mut second_type) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
        pg_sys::op_input_types((*expression).opno, &mut first_type, &mut second_type);
        let kinds = (Kind::of_type(first_type)?, Kind::of_type(second_type)?);
        let strategy =
            pg_sys::get_op_opfamily_strategy((*expression).opno, default_family(first_type));
        if strategy == 0 || !kinds.0.compares_with(kinds.1) {
            return None;
        }
        if kinds.0 == Kind::Text
            && !pg_sys::get_collation_isdeterministic((*expression).inputcollid)
        {
            return None;
        }
        let outer_alone = |side| !references(side).inner;
        match (column(first), column(second)) {
            (Some(column), _) if outer_alone(second) => Some(Comparison {
                column,
                kind: kinds.0,
                outer: second,
                outer_kind: kinds.1,
                strategy,
            }),
            (_, Some(column)) if outer_alone(first) => Some(Comparison {
                column,
                kind: kinds.1,
                outer: first,
                outer_kind: kinds.0,
                // < and >, <= and >= change places; = stays.
                strategy: 6 - strategy,
            }),
            _ => None,
        }
    }
}

/// Puts a condition where it belongs.
pub unsafe fn sort_in(
    root: *mut pg_sys::PlannerInfo,
    shape: &mut Shape,
    condition: *mut pg_sys::Node,
) -> Result<(), &'static str> {
    // SAFETY: live expressions; casts follow tags.
    unsafe {
        let condition = pg_sys::eval_const_expressions(root, tree::copy(condition));
        let about = references(condition);
        if about.unfit {
            return Err(
                "a condition holds a sub-select, a whole row, a system column, or a value from further out",
            );
        }
        if pg_sys::contain_volatile_functions(condition) {
            return Err("a condition is volatile");
        }
        if about.inner && !about.outer && !compares_time_with_constant(shape, condition) {
            shape.table_quals.push(condition);
            return Ok(());
        }
        let (compared, nulls_match) = if let Some(inside) = not_distinct(condition) {
            (comparison(inside), true)
        } else if tree::is_a(condition, pg_sys::NodeTag::T_OpExpr) {
            (comparison(condition.cast()), false)
        } else {
            (None, false)
        };
        match compared {
            Some(found) if found.strategy == pg_sys::BTEqualStrategyNumber as i32 => {
                shape.keys.push(Key {
                    column: found.column,
                    kind: found.kind,
                    outer: found.outer,
                    outer_kind: found.outer_kind,
                    nulls_match,
                });
            }
            Some(found)
                if !nulls_match && found.column == shape.time && found.kind == shape.time_kind =>
            {
                shape.bounds.push(Bound {
                    upper: found.strategy < pg_sys::BTEqualStrategyNumber as i32,
                    inclusive: found.strategy == pg_sys::BTLessEqualStrategyNumber as i32
                        || found.strategy == pg_sys::BTGreaterEqualStrategyNumber as i32,
                    outer: found.outer,
                    outer_kind: found.outer_kind,
                });
            }
            _ => shape.residual_quals.push(condition),
        }
        Ok(())
    }
}

/// `time <= constant` bounds the search; any other condition on the table alone filters its rows once.
unsafe fn compares_time_with_constant(shape: &Shape, condition: *mut pg_sys::Node) -> bool {
    // SAFETY: a live expression.
    unsafe {
        tree::is_a(condition, pg_sys::NodeTag::T_OpExpr)
            && comparison(condition.cast()).is_some_and(|found| {
                found.column == shape.time
                    && found.kind == shape.time_kind
                    && found.strategy != pg_sys::BTEqualStrategyNumber as i32
            })
    }
}

/// The inside of `NOT (a IS DISTINCT FROM b)`.
unsafe fn not_distinct(condition: *mut pg_sys::Node) -> Option<*const pg_sys::OpExpr> {
    // SAFETY: a live expression; casts follow tags.
    unsafe {
        if !tree::is_a(condition, pg_sys::NodeTag::T_BoolExpr) {
            return None;
        }
        let negation: *const pg_sys::BoolExpr = condition.cast();
        if (*negation).boolop != pg_sys::BoolExprType::NOT_EXPR {
            return None;
        }
        let inside: *const pg_sys::OpExpr = ports::list_nth((*negation).args, 0);
        tree::is_a(inside, pg_sys::NodeTag::T_DistinctExpr).then_some(inside)
    }
}

/// The `i` of `time >= x - i` beside `time <= x`, or of `time <= x + i` beside `time >= x`.
unsafe fn tolerance(shape: &Shape) -> Option<*mut pg_sys::Node> {
    let near = shape
        .bounds
        .iter()
        .find(|bound| bound.upper == shape.backward)?;
    let far = shape
        .bounds
        .iter()
        .find(|bound| bound.upper != shape.backward)?;
    // SAFETY: live expressions; the cast follows the tag.
    unsafe {
        if !tree::is_a(far.outer, pg_sys::NodeTag::T_OpExpr) {
            return None;
        }
        let operands = tree::elements::<pg_sys::Node>((*far.outer.cast::<pg_sys::OpExpr>()).args);
        match operands[..] {
            [from, by] if pg_sys::equal(from.cast(), near.outer.cast()) => Some(by),
            _ => None,
        }
    }
}
