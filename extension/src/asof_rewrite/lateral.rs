//! Builds the sub-select that a join with a marker becomes.
//!
//! ```text
//! one search:  SELECT <the right side's columns> FROM <right side> WHERE <conditions>
//!              ORDER BY time DESC | ASC [, tie] [, tableoid], ctid LIMIT 1
//! the nearest: SELECT <columns> FROM (<backward, time> UNION ALL <forward, time>)
//!              ORDER BY lanes.asof_distance(time, left), time LIMIT 1
//! ```
//! Among equal times the order of arrival decides, which is the order of `ctid`: in a lanes table the row number, in a heap
//! table the row's position. The rows of other sides have no order of arrival.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::condition::{Asof, Direction, Look, Operators, SortKey};
use super::descend::{self, Moved};
use super::tolerance;
use crate::pg::{permission, ports, tree};

/// The right side of a join, by its range-table entry.
#[derive(Clone, Copy)]
pub struct RightSide {
    /// The query that contains the join.
    pub parent: *mut pg_sys::Query,
    /// The entry's index.
    pub index: i32,
}

/// The sub-select that returns the match for a row of the left side: the right-hand side of `JOIN LATERAL … ON true`. Its
/// columns are the columns of the right side's entry in their places, so references to them need no change.
///
/// # Safety
/// Live trees; the right side's entry is not used otherwise afterwards.
pub unsafe fn sub_select(
    side: RightSide,
    asof: &Asof,
    residual: &[*mut pg_sys::Node],
) -> *mut pg_sys::Query {
    // SAFETY: the caller's promise.
    unsafe {
        match &asof.looks[..] {
            [look] => candidates(side, asof, look, residual, false),
            looks => nearest(side, asof, looks, residual),
        }
    }
}

/// The candidate of one search, one level below the parent, optionally with its time as the last column.
unsafe fn candidates(
    side: RightSide,
    asof: &Asof,
    look: &Look,
    residual: &[*mut pg_sys::Node],
    with_time: bool,
) -> *mut pg_sys::Query {
    // SAFETY: every expression is copied, so that nothing is shared.
    unsafe {
        let entry: *mut pg_sys::RangeTblEntry = tree::copy(tree::entry(side.parent, side.index));
        let query = empty(side.parent);
        let mut targets = columns(entry, side.index);
        if with_time {
            let time = tree::copy(asof.time.expression);
            targets.push(output(time, targets.len() + 1, c"time"));
        }
        let mut order = Order::new(&mut targets);
        let direction = look.direction;
        order.by(asof.time.expression, asof.time.operators, direction);
        if let Some(SortKey {
            expression,
            operators,
        }) = asof.tie
        {
            // A row whose tie is NULL comes after every row whose tie is not.
            order.by_with_nulls(expression, operators, direction, false);
        }
        for (expression, kind) in arrival(entry, side.index) {
            order.by(expression, Operators::of_type(kind), direction);
        }
        (*query).sortClause = order.clause;
        (*query).targetList = tree::list(&targets);
        let conditions: Vec<_> = residual
            .iter()
            .chain(&look.conditions)
            .map(|&condition| tree::copy(condition))
            .collect();
        (*query).rtable = tree::list(&[entry]);
        (*query).jointree = pg_sys::makeFromExpr(
            tree::list(&[reference(side.index)]),
            tree::conjunction(&conditions),
        );
        // The entry is alone in its query, so it has no other entry to refer to.
        (*entry).lateral = false;
        permission::adopt(side.parent, query);
        descend::descend(query, &Moved(vec![side.index]));
        limit_one(query);
        query
    }
}

/// The nearer one of two candidates.
unsafe fn nearest(
    side: RightSide,
    asof: &Asof,
    looks: &[Look],
    residual: &[*mut pg_sys::Node],
) -> *mut pg_sys::Query {
    // SAFETY: every expression is copied.
    unsafe {
        let mut arms = Vec::new();
        for look in looks {
            let arm = candidates(side, asof, look, residual, true);
            // Made for the level below the parent; two more lie between.
            pg_sys::IncrementVarSublevelsUp(arm.cast(), 2, 1);
            arms.push(arm);
        }
        let names = output_names(arms[0]);
        let both = union_all(side.parent, &arms, &names);
        let query = empty(side.parent);
        (*query).rtable = tree::list(&[sub_select_entry(both, c"candidate", &names)]);
        let places = variables_of(both, 1);
        let Some((&time, places)) = places.split_last() else {
            unreachable!("the time is the last column")
        };
        let mut targets: Vec<_> = places
            .iter()
            .zip(tree::elements::<pg_sys::TargetEntry>((*arms[0]).targetList))
            .enumerate()
            .map(|(index, (&place, of))| {
                pg_sys::makeTargetEntry(place.cast(), index as i16 + 1, (*of).resname, false)
            })
            .collect();
        let left = tree::copy(asof.left);
        descend::descend_expression(left, &Moved::default());
        let measured = pg_sys::exprType(left);
        let function = tolerance::distance_function(measured);
        let kind = pg_sys::get_func_rettype(function);
        let distance = pg_sys::makeFuncExpr(
            function,
            kind,
            tree::list(&[time.cast(), left]),
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
            pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
        );
        let mut order = Order::new(&mut targets);
        order.by(
            distance.cast(),
            Operators::of_type(kind),
            Direction::Forward,
        );
        order.by(time.cast(), asof.time.operators, Direction::Forward);
        (*query).sortClause = order.clause;
        (*query).targetList = tree::list(&targets);
        (*query).jointree = pg_sys::makeFromExpr(tree::list(&[reference(1)]), std::ptr::null_mut());
        limit_one(query);
        query
    }
}

/// `first UNION ALL second`.
unsafe fn union_all(
    parent: *const pg_sys::Query,
    arms: &[*mut pg_sys::Query],
    names: &[*mut pg_sys::Node],
) -> *mut pg_sys::Query {
    // SAFETY: live queries of equal columns.
    unsafe {
        let query = empty(parent);
        let entries: Vec<_> = arms
            .iter()
            .map(|&arm| sub_select_entry(arm, c"candidate", names))
            .collect();
        (*query).rtable = tree::list(&entries);
        (*query).jointree = pg_sys::makeFromExpr(std::ptr::null_mut(), std::ptr::null_mut());
        let union: *mut pg_sys::SetOperationStmt = tree::make(pg_sys::NodeTag::T_SetOperationStmt);
        (*union).op = pg_sys::SetOperation::SETOP_UNION;
        (*union).all = true;
        (*union).larg = reference(1).cast();
        (*union).rarg = reference(2).cast();
        let columns = variables_of(arms[0], 1);
        for &column in &columns {
            (*union).colTypes = pg_sys::lappend_oid((*union).colTypes, (*column).vartype);
            (*union).colTypmods = pg_sys::lappend_int((*union).colTypmods, (*column).vartypmod);
            (*union).colCollations =
                pg_sys::lappend_oid((*union).colCollations, (*column).varcollid);
        }
        (*query).setOperations = union.cast();
        let targets: Vec<_> = columns
            .iter()
            .zip(names)
            .enumerate()
            .map(|(index, (&column, &name))| {
                let name = string_of(name);
                pg_sys::makeTargetEntry(column.cast(), index as i16 + 1, name, false)
            })
            .collect();
        (*query).targetList = tree::list(&targets);
        query
    }
}

/// A `SELECT` without clauses. It inherits the flags that say what the query may contain.
unsafe fn empty(parent: *const pg_sys::Query) -> *mut pg_sys::Query {
    // SAFETY: a live parent.
    unsafe {
        let query: *mut pg_sys::Query = tree::make(pg_sys::NodeTag::T_Query);
        (*query).commandType = pg_sys::CmdType::CMD_SELECT;
        (*query).querySource = pg_sys::QuerySource::QSRC_ORIGINAL;
        (*query).canSetTag = true;
        (*query).hasSubLinks = (*parent).hasSubLinks;
        (*query).hasRowSecurity = (*parent).hasRowSecurity;
        (*query).stmt_location = -1;
        query
    }
}

unsafe fn limit_one(query: *mut pg_sys::Query) {
    // SAFETY: a live query.
    unsafe {
        (*query).limitCount = pg_sys::makeConst(
            pg_sys::INT8OID,
            -1,
            pg_sys::InvalidOid,
            8,
            pg_sys::Datum::from(1i64),
            false,
            true,
        )
        .cast();
        (*query).limitOption = pg_sys::LimitOption::LIMIT_OPTION_COUNT;
    }
}

unsafe fn reference(index: i32) -> *mut pg_sys::RangeTblRef {
    // SAFETY: the tag's own type.
    unsafe {
        let reference: *mut pg_sys::RangeTblRef = tree::make(pg_sys::NodeTag::T_RangeTblRef);
        (*reference).rtindex = index;
        reference
    }
}

/// The ORDER BY of a target list that is being built.
struct Order<'a> {
    targets: &'a mut Vec<*mut pg_sys::TargetEntry>,
    clause: *mut pg_sys::List,
    keys: u32,
}

impl Order<'_> {
    fn new(targets: &mut Vec<*mut pg_sys::TargetEntry>) -> Order<'_> {
        Order {
            targets,
            clause: std::ptr::null_mut(),
            keys: 0,
        }
    }

    /// Adds a key, with NULLs where an index of the type has them when it is scanned in this direction.
    unsafe fn by(
        &mut self,
        expression: *mut pg_sys::Node,
        operators: Operators,
        direction: Direction,
    ) {
        let nulls_first = direction == Direction::Backward;
        // SAFETY: the caller's promise.
        unsafe { self.by_with_nulls(expression, operators, direction, nulls_first) };
    }

    unsafe fn by_with_nulls(
        &mut self,
        expression: *mut pg_sys::Node,
        operators: Operators,
        direction: Direction,
        nulls_first: bool,
    ) {
        // SAFETY: live nodes; the expression is copied.
        unsafe {
            let place = self
                .targets
                .iter()
                .copied()
                .find(|&target| pg_sys::equal((*target).expr.cast(), expression.cast()));
            let target = place.unwrap_or_else(|| {
                let target = pg_sys::makeTargetEntry(
                    tree::copy(expression).cast(),
                    self.targets.len() as i16 + 1,
                    std::ptr::null_mut(),
                    true,
                );
                self.targets.push(target);
                target
            });
            if (*target).ressortgroupref > 0 {
                return;
            }
            self.keys += 1;
            (*target).ressortgroupref = self.keys;
            let key: *mut pg_sys::SortGroupClause = tree::make(pg_sys::NodeTag::T_SortGroupClause);
            (*key).tleSortGroupRef = self.keys;
            (*key).eqop = operators.equal;
            (*key).sortop = match direction {
                Direction::Backward => operators.greater,
                Direction::Forward => operators.less,
            };
            ports::set_reverse_sort(key, direction == Direction::Backward);
            (*key).nulls_first = nulls_first;
            self.clause = pg_sys::lappend(self.clause, key.cast());
        }
    }
}

unsafe fn output(
    expression: *mut pg_sys::Node,
    place: usize,
    name: &CStr,
) -> *mut pg_sys::TargetEntry {
    // SAFETY: a live expression; the name is copied.
    unsafe {
        pg_sys::makeTargetEntry(
            expression.cast(),
            place as i16,
            pg_sys::pstrdup(name.as_ptr()),
            false,
        )
    }
}

/// All columns of an entry in their places. Dropped columns are NULL.
unsafe fn columns(entry: *mut pg_sys::RangeTblEntry, index: i32) -> Vec<*mut pg_sys::TargetEntry> {
    let (mut names, mut values) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: a live entry; a relation is locked since the query was parsed.
    unsafe {
        ports::expandRTE(entry, index, &mut names, &mut values);
        tree::elements::<pg_sys::Expr>(values)
            .into_iter()
            .zip(tree::elements::<pg_sys::Node>(names))
            .enumerate()
            .map(|(place, (value, name))| {
                pg_sys::makeTargetEntry(value, place as i16 + 1, string_of(name), false)
            })
            .collect()
    }
}

/// The keys of the order in which the rows of a table arrived.
unsafe fn arrival(
    entry: *const pg_sys::RangeTblEntry,
    index: i32,
) -> Vec<(*mut pg_sys::Node, pg_sys::Oid)> {
    let system = |attribute: i32, kind| {
        // SAFETY: plain construction.
        let variable = unsafe {
            pg_sys::makeVar(
                index as _,
                attribute as i16,
                kind,
                -1,
                pg_sys::InvalidOid,
                0,
            )
        };
        (variable.cast(), kind)
    };
    let tid = || system(pg_sys::SelfItemPointerAttributeNumber, pg_sys::TIDOID);
    let table = || system(pg_sys::TableOidAttributeNumber, pg_sys::OIDOID);
    // SAFETY: a live entry.
    unsafe {
        if (*entry).rtekind != pg_sys::RTEKind::RTE_RELATION {
            return Vec::new();
        }
        match (*entry).relkind as u8 {
            // Rows of several tables have no common order of arrival, but their order is always the same.
            pg_sys::RELKIND_PARTITIONED_TABLE => vec![table(), tid()],
            pg_sys::RELKIND_RELATION if (*entry).inh && has_children((*entry).relid) => {
                vec![table(), tid()]
            }
            pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW => vec![tid()],
            _ => Vec::new(),
        }
    }
}

unsafe fn has_children(table: pg_sys::Oid) -> bool {
    // SAFETY: the table is locked since the query was parsed.
    unsafe {
        let open = pg_sys::relation_open(table, pg_sys::NoLock as i32);
        let children = (*(*open).rd_rel).relhassubclass;
        pg_sys::relation_close(open, pg_sys::NoLock as i32);
        children
    }
}

unsafe fn string_of(name: *mut pg_sys::Node) -> *mut std::ffi::c_char {
    // SAFETY: a live String node.
    unsafe { (*name.cast::<pg_sys::String>()).sval }
}

/// The names of a query's columns.
unsafe fn output_names(query: *const pg_sys::Query) -> Vec<*mut pg_sys::Node> {
    // SAFETY: a live query, whose columns have names.
    unsafe {
        tree::elements::<pg_sys::TargetEntry>((*query).targetList)
            .into_iter()
            .filter(|&target| !(*target).resjunk)
            .map(|target| pg_sys::makeString((*target).resname).cast())
            .collect()
    }
}

/// References to a query's columns, as entry `index` of another.
unsafe fn variables_of(query: *const pg_sys::Query, index: i32) -> Vec<*mut pg_sys::Var> {
    // SAFETY: a live query.
    unsafe {
        tree::elements::<pg_sys::TargetEntry>((*query).targetList)
            .into_iter()
            .filter(|&target| !(*target).resjunk)
            .map(|target| pg_sys::makeVarFromTargetEntry(index as _, target))
            .collect()
    }
}

/// A range-table entry for a sub-select.
///
/// # Safety
/// Live trees.
pub unsafe fn sub_select_entry(
    query: *mut pg_sys::Query,
    name: &CStr,
    columns: &[*mut pg_sys::Node],
) -> *mut pg_sys::RangeTblEntry {
    // SAFETY: the caller's promise.
    unsafe {
        let entry: *mut pg_sys::RangeTblEntry = tree::make(pg_sys::NodeTag::T_RangeTblEntry);
        (*entry).rtekind = pg_sys::RTEKind::RTE_SUBQUERY;
        (*entry).subquery = query;
        (*entry).inFromCl = true;
        (*entry).eref = pg_sys::makeAlias(name.as_ptr(), tree::list(columns));
        (*entry).alias = tree::copy((*entry).eref);
        entry
    }
}

/// Replaces the right side's entry by a lateral sub-select with the same names.
///
/// # Safety
/// Live trees.
pub unsafe fn replace_entry(side: RightSide, query: *mut pg_sys::Query) {
    // SAFETY: the caller's promise; the old entry went into `query` as a copy.
    unsafe {
        let old = tree::entry(side.parent, side.index);
        let new: *mut pg_sys::RangeTblEntry = tree::make(pg_sys::NodeTag::T_RangeTblEntry);
        (*new).rtekind = pg_sys::RTEKind::RTE_SUBQUERY;
        (*new).subquery = query;
        (*new).lateral = true;
        (*new).inFromCl = (*old).inFromCl;
        (*new).alias = (*old).alias;
        (*new).eref = (*old).eref;
        tree::list_set((*side.parent).rtable, side.index - 1, new);
    }
}
