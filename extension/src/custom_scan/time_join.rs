//! A join by time below an aggregation: each row of a lanes table with what a lateral sub-select over another says of it.
//!
//! ```text
//! planner:  join of a lanes table and a lateral sub-select ── asof_join::match_shape │ match_window ──► TimeJoin ──► JoinPlan
//! executor: JoinPlan ──► join_stage: the right side as a series; each vector of the left side is given what it found
//! ```
//! The join that PostgreSQL would run stays in the plan as a child that is never executed: by it the plan has the sub-select's
//! tables, with their locks and permissions.

use pgrx::pg_sys;

use super::right_side::RightSide;
use super::translate::{Translation, Translator, number_type};
use super::{aggregate_call, offer, plan};
use crate::asof_join::kind::Kind;
use crate::asof_join::match_shape::{Output, Shape, match_shape};
use crate::asof_join::match_window::match_window;
use crate::asof_join::{plan as asof_plan, tree};
use crate::gucs;
use crate::pg::{nodes, ports};

/// One side's part of an equality.
#[derive(Clone, Copy, Debug)]
pub struct KeyColumn {
    /// The right side's column, counted from 1.
    pub column: i16,
    /// How it is read.
    pub kind: Kind,
    /// NULL equals NULL.
    pub nulls_match: bool,
}

/// A bound of the right side's time.
#[derive(Clone, Copy, Debug)]
pub struct TimeBound {
    /// Equal is within.
    pub inclusive: bool,
    /// The time, an expression over the left side.
    pub time: *mut pg_sys::Node,
}

/// What is wanted of the rows within bounds.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// The nearest: the latest when looking back.
    Nearest {
        /// Looking back.
        backward: bool,
        /// The right side's columns that are the sub-select's, counted from 1; 0 for what is no column.
        outputs: Vec<i16>,
    },
    /// Aggregates of all.
    Aggregates(Vec<*mut pg_sys::Aggref>),
}

/// What a plan remembers of a join by time.
#[derive(Clone, Debug)]
pub struct JoinPlan {
    /// The right side's table.
    pub table: pg_sys::Oid,
    /// Its time, counted from 1.
    pub time: i16,
    /// Left rows that find nothing are left out.
    pub inner: bool,
    /// Equalities.
    pub keys: Vec<KeyColumn>,
    /// Their other sides, expressions over the left side.
    pub left_keys: Vec<*mut pg_sys::Node>,
    /// The lower bound.
    pub lower: Option<TimeBound>,
    /// The upper bound.
    pub upper: Option<TimeBound>,
    /// Conditions on the right side's table alone, in its own terms.
    pub table_quals: *mut pg_sys::List,
    /// What is wanted.
    pub wanted: Wanted,
}

/// A join by time as the planner finds it.
pub struct TimeJoin {
    /// The left side.
    pub left_relation: *mut pg_sys::RelOptInfo,
    /// Rows of the right side's table, as the planner believes.
    pub right_rows: f64,
    /// Conditions on what was found, evaluated after the join.
    pub quals: Vec<*mut pg_sys::Node>,
    /// PostgreSQL's own way to join.
    pub path: *mut pg_sys::Path,
    /// What the plan is to remember.
    pub plan: JoinPlan,
}

/// Two sides of a join.
pub struct Sides {
    /// The table.
    pub outer: *mut pg_sys::RelOptInfo,
    /// The sub-select.
    pub inner: *mut pg_sys::RelOptInfo,
    /// INNER, LEFT, …
    pub kind: pg_sys::JoinType::Type,
    /// PostgreSQL's own way to join them.
    pub path: *mut pg_sys::Path,
}

impl Sides {
    /// Whether they are a lanes table and a sub-select lateral to it alone.
    ///
    /// # Safety
    /// The planner's live structures.
    pub unsafe fn are_alike(&self, root: *mut pg_sys::PlannerInfo) -> bool {
        let (outer, inner) = (self.outer, self.inner);
        // SAFETY: the caller's promise.
        unsafe {
            (*outer).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
                && (*inner).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
                && (*inner).rtekind == pg_sys::RTEKind::RTE_SUBQUERY
                && pg_sys::bms_equal((*inner).lateral_relids, (*outer).relids)
                && (*outer).lateral_relids.is_null()
                && offer::is_lanes_scan(outer, tree::planner_entry(root, (*outer).relid as i32))
        }
    }
}

impl TimeJoin {
    /// The join that a relation is; `None` if it is none of two sides of which the second is lateral to the first.
    ///
    /// # Safety
    /// The planner's live structures.
    pub unsafe fn of(
        root: *mut pg_sys::PlannerInfo,
        joined: *mut pg_sys::RelOptInfo,
    ) -> Option<Translation<TimeJoin>> {
        // SAFETY: the caller's promise; casts follow tags.
        unsafe {
            if (*joined).reloptkind != pg_sys::RelOptKind::RELOPT_JOINREL
                || !gucs::enable_asof()
                || pg_sys::bms_num_members((*joined).relids) != 2
            {
                return None;
            }
            let nested = nested_loop((*joined).cheapest_total_path)?;
            let sides = Sides {
                outer: (*(*nested).jpath.outerjoinpath).parent,
                inner: (*(*nested).jpath.innerjoinpath).parent,
                kind: (*nested).jpath.jointype,
                path: (*joined).cheapest_total_path,
            };
            let conditions = (*sides.inner).joininfo;
            sides
                .are_alike(root)
                .then(|| Self::of_sides(root, &sides, conditions))
        }
    }

    /// The join of two sides, with the conditions that hold between them.
    ///
    /// # Safety
    /// The planner's live structures; the sides [are such](Sides::are_alike).
    pub unsafe fn of_sides(
        root: *mut pg_sys::PlannerInfo,
        sides: &Sides,
        conditions: *mut pg_sys::List,
    ) -> Translation<TimeJoin> {
        let (outer, inner) = (sides.outer, sides.inner);
        // SAFETY: as for `of`.
        unsafe {
            let is_inner = match sides.kind {
                pg_sys::JoinType::JOIN_INNER => true,
                pg_sys::JoinType::JOIN_LEFT => false,
                _ => return Err("a join of another kind than INNER and LEFT".into()),
            };
            let query = (*tree::planner_entry(root, (*inner).relid as i32)).subquery;
            let subroot = (*inner).subroot;
            if query.is_null() || subroot.is_null() {
                return Err("a sub-select that is not planned".into());
            }
            let (shape, wanted) = match match_window(root, query) {
                Ok(window) => (window.rows, Wanted::Aggregates(window.calls)),
                Err(no_window) => {
                    let shape = match_shape(root, query).map_err(|no_match| {
                        let aggregates = (*query).hasAggs;
                        format!(
                            "the lateral sub-select: {}",
                            if aggregates { no_window } else { no_match }
                        )
                    })?;
                    let outputs = shape.outputs.iter().map(|output| match output {
                        Output::Column(column) => *column,
                        Output::Other => 0,
                    });
                    let wanted = Wanted::Nearest {
                        backward: shape.backward,
                        outputs: outputs.collect(),
                    };
                    (shape, wanted)
                }
            };
            let table = *(*subroot).simple_rel_array.add(shape.entry as usize);
            if table.is_null() || !offer::is_lanes_table(shape.table) {
                return Err("the lateral sub-select does not read a lanes table".into());
            }
            let table_entry = tree::planner_entry(subroot, shape.entry);
            if (*table_entry).inh {
                return Err("the lateral sub-select reads a table with children".into());
            }
            let mut quals = quals_above(inner, conditions, is_inner)?;
            if let Wanted::Aggregates(calls) = &wanted {
                // Conditions on its result alone the planner has moved into the sub-select.
                let moved = (*(*subroot).parse).havingQual;
                if !moved.is_null() && !is_inner {
                    return Err("a condition in ON beside the time and the keys".into());
                }
                for condition in conditions_of(moved) {
                    quals.push(lifted(condition, calls, (*inner).relid)?);
                }
            }
            Ok(TimeJoin {
                left_relation: outer,
                right_rows: (*table).tuples,
                quals,
                path: sides.path,
                plan: JoinPlan::of(&shape, wanted, is_inner)?,
            })
        }
    }
}

/// The nested loop that a path of a join is at heart.
unsafe fn nested_loop(mut path: *mut pg_sys::Path) -> Option<*mut pg_sys::NestPath> {
    // SAFETY: the caller has a live path or null; casts follow tags.
    unsafe {
        loop {
            if path.is_null() {
                return None;
            }
            match (*path).type_ {
                pg_sys::NodeTag::T_NestPath => return Some(path.cast()),
                pg_sys::NodeTag::T_ProjectionPath => {
                    path = (*path.cast::<pg_sys::ProjectionPath>()).subpath;
                }
                pg_sys::NodeTag::T_CustomPath => {
                    let custom = path.cast::<pg_sys::CustomPath>();
                    let ours = [asof_plan::path_methods(), plan::time_join_path_methods()];
                    if !ours.contains(&(*custom).methods) {
                        return None;
                    }
                    path = ports::list_nth((*custom).custom_paths, 0);
                }
                _ => return None,
            }
        }
    }
}

/// The conditions on what a join gives, which are all that concern the sub-select's result.
unsafe fn quals_above(
    inner: *mut pg_sys::RelOptInfo,
    conditions: *mut pg_sys::List,
    is_inner: bool,
) -> Translation<Vec<*mut pg_sys::Node>> {
    // SAFETY: the planner's live structures.
    unsafe {
        if (*inner).has_eclass_joins {
            return Err(
                "a condition on the sub-select's result that other conditions imply".into(),
            );
        }
        let own = nodes::list::<pg_sys::RestrictInfo>((*inner).baserestrictinfo);
        let both = nodes::list::<pg_sys::RestrictInfo>(conditions);
        let mut quals = Vec::new();
        for (qual, is_own) in own.map(|qual| (qual, true)).chain(both.map(|q| (q, false))) {
            // Below an outer join a condition of ON decides what matches, not what is left of it.
            if !is_inner && (is_own || !(*qual).is_pushed_down) {
                return Err("a condition in ON beside the time and the keys".into());
            }
            if (*qual).security_level > 0 {
                return Err("a join behind a security barrier".into());
            }
            quals.push((*qual).clause.cast());
        }
        Ok(quals)
    }
}

impl JoinPlan {
    unsafe fn of(shape: &Shape, wanted: Wanted, inner: bool) -> Translation<JoinPlan> {
        // SAFETY: the shape's live expressions, which are copies.
        unsafe {
            if !shape.residual_quals.is_empty() {
                return Err("a condition on both sides beside the time and the keys".into());
            }
            if !shape.ties.is_empty() {
                return Err("a tie of the join's own".into());
            }
            if let Wanted::Nearest { backward, .. } = wanted
                && shape
                    .arrival
                    .is_some_and(|descending| descending != backward)
            {
                return Err("the join takes the earlier arrival".into());
            }
            if !matches!(
                shape.time_kind,
                Kind::Int2
                    | Kind::Int4
                    | Kind::Int8
                    | Kind::Date
                    | Kind::Timestamp
                    | Kind::Timestamptz
            ) {
                return Err("the join's time is a float".into());
            }
            let (mut lower, mut upper) = (None, None);
            for bound in &shape.bounds {
                let place = if bound.upper { &mut upper } else { &mut lower };
                if place.is_some() {
                    return Err("several bounds on one side of the time".into());
                }
                *place = Some(TimeBound {
                    inclusive: bound.inclusive,
                    time: raised(bound.outer),
                });
            }
            if let Wanted::Nearest { backward, .. } = wanted {
                let near = if backward { &upper } else { &lower };
                if near.is_none() {
                    return Err("the nearest row of a side without a bound".into());
                }
            }
            let mut keys = Vec::new();
            for key in &shape.keys {
                let is_float = matches!(key.kind, Kind::Float4 | Kind::Float8);
                if key.kind == Kind::Uuid || is_float && key.kind != key.outer_kind {
                    return Err("a key of the join of type uuid, or of two types of floats".into());
                }
                keys.push(KeyColumn {
                    column: key.column,
                    kind: key.kind,
                    nulls_match: key.nulls_match,
                });
            }
            let table_quals = tree::list(&shape.table_quals);
            pg_sys::fix_opfuncids(table_quals.cast());
            Ok(JoinPlan {
                table: shape.table,
                time: shape.time,
                inner,
                keys,
                left_keys: shape.keys.iter().map(|key| raised(key.outer)).collect(),
                lower,
                upper,
                table_quals,
                wanted,
            })
        }
    }

    /// The number types of what the sub-select gives; `None` where it is no number.
    pub fn outputs(&self) -> Vec<Option<pg_sys::Oid>> {
        // SAFETY: catalogue look-ups about a locked table; live calls.
        unsafe {
            match &self.wanted {
                Wanted::Nearest { outputs, .. } => outputs
                    .iter()
                    .map(|column| (*column > 0).then(|| pg_sys::get_atttype(self.table, *column)))
                    .collect(),
                Wanted::Aggregates(calls) => {
                    calls.iter().map(|call| Some((**call).aggtype)).collect()
                }
            }
        }
    }

    /// Whether all of it can be done by vectors; `translator` is that of the left side.
    ///
    /// # Safety
    /// A plan's live expressions.
    pub unsafe fn check(&self, translator: &mut Translator) -> Translation<()> {
        // SAFETY: the caller's promise.
        unsafe {
            for key in &self.left_keys {
                aggregate_call::key(translator, *key)?;
            }
            for bound in [self.lower, self.upper].into_iter().flatten() {
                translator.value(bound.time)?;
            }
            RightSide::check(self)
        }
    }

    /// The expressions over the left side: keys, then bounds.
    pub fn left_expressions(&self) -> Vec<*mut pg_sys::Node> {
        let bounds = [self.lower, self.upper].into_iter().flatten();
        let keys = self.left_keys.iter().copied();
        keys.chain(bounds.map(|bound| bound.time)).collect()
    }

    /// As a list of nodes that PostgreSQL can copy, without the expressions over the left side.
    ///
    /// # Safety
    /// A plan's live expressions.
    pub unsafe fn encode(&self) -> *mut pg_sys::List {
        let inclusive =
            |bound: &Option<TimeBound>| bound.map_or(0, |bound| 1 + i32::from(bound.inclusive));
        let mut numbers = vec![
            self.table.to_u32() as i32,
            i32::from(self.time),
            i32::from(self.inner),
            inclusive(&self.lower),
            inclusive(&self.upper),
            self.keys.len() as i32,
        ];
        for key in &self.keys {
            let column = i32::from(key.column);
            numbers.extend([column, key.kind as i32, i32::from(key.nulls_match)]);
        }
        // SAFETY: makes lists of live nodes.
        unsafe {
            let mut calls = std::ptr::null_mut();
            match &self.wanted {
                Wanted::Nearest { backward, outputs } => {
                    numbers.push(i32::from(*backward));
                    numbers.extend(outputs.iter().map(|column| i32::from(*column)));
                }
                Wanted::Aggregates(aggregates) => {
                    numbers.push(AGGREGATES);
                    calls = tree::list(aggregates);
                }
            }
            let mut encoded = std::ptr::null_mut();
            for number in numbers {
                encoded = pg_sys::lappend(encoded, pg_sys::makeInteger(number).cast());
            }
            tree::list(&[encoded, self.table_quals, calls])
        }
    }

    /// Back, with the expressions over the left side.
    ///
    /// # Safety
    /// `encoded` was made by [`JoinPlan::encode`], and the expressions by [`JoinPlan::left_expressions`].
    pub unsafe fn decode(
        encoded: *mut pg_sys::List,
        expressions: &[*mut pg_sys::Node],
    ) -> JoinPlan {
        // SAFETY: the caller's promise.
        unsafe {
            let numbers: *mut pg_sys::List = ports::list_nth(encoded, 0);
            let mut numbers = nodes::list::<pg_sys::Integer>(numbers).map(|node| (*node).ival);
            let mut next = || numbers.next().unwrap_or_default();
            let table = pg_sys::Oid::from(next() as u32);
            let (time, inner) = (next() as i16, next() != 0);
            let (lower, upper) = (next(), next());
            let keys: Vec<KeyColumn> = (0..next())
                .map(|_| KeyColumn {
                    column: next() as i16,
                    kind: Kind::from_number(next()).unwrap_or(Kind::Int8),
                    nulls_match: next() != 0,
                })
                .collect();
            let wanted = match next() {
                AGGREGATES => {
                    let calls: *mut pg_sys::List = ports::list_nth(encoded, 2);
                    Wanted::Aggregates(nodes::list(calls).collect())
                }
                backward => Wanted::Nearest {
                    backward: backward != 0,
                    outputs: numbers.map(|column| column as i16).collect(),
                },
            };
            let (left_keys, bounds) = expressions.split_at(keys.len());
            let mut bounds = bounds.iter();
            let mut bound = |how: i32| {
                (how > 0)
                    .then(|| bounds.next())
                    .flatten()
                    .map(|time| TimeBound {
                        inclusive: how > 1,
                        time: *time,
                    })
            };
            JoinPlan {
                table,
                time,
                inner,
                left_keys: left_keys.to_vec(),
                lower: bound(lower),
                upper: bound(upper),
                keys,
                table_quals: ports::list_nth(encoded, 1),
                wanted,
            }
        }
    }

    /// In words, for EXPLAIN.
    pub fn describe(&self) -> String {
        let name = |column: i16| {
            // SAFETY: a catalogue look-up about a locked table.
            let name = unsafe { pg_sys::get_attname(self.table, column, true) };
            if name.is_null() {
                return column.to_string();
            }
            // SAFETY: a string of the catalogue's.
            unsafe { std::ffi::CStr::from_ptr(name) }
                .to_string_lossy()
                .into_owned()
        };
        // SAFETY: as above.
        let table = unsafe {
            let name = pg_sys::get_rel_name(self.table);
            match name.is_null() {
                true => self.table.to_u32().to_string(),
                false => std::ffi::CStr::from_ptr(name)
                    .to_string_lossy()
                    .into_owned(),
            }
        };
        let columns = self.keys.iter().map(|key| key.column).chain([self.time]);
        let columns: Vec<String> = columns.map(name).collect();
        let kind = match &self.wanted {
            Wanted::Nearest { backward: true, .. } => "asof backward",
            Wanted::Nearest { .. } => "asof forward",
            Wanted::Aggregates(_) => "window",
        };
        let join = if self.inner { "inner" } else { "left" };
        format!("{kind} ({join}) of {table} by {}", columns.join(", "))
    }
}

/// Stands where a plan for the nearest says whether it looks back.
const AGGREGATES: i32 = 2;

/// The conjuncts of a qualification, as it is before or after the planner has made a list of it.
unsafe fn conditions_of(qual: *mut pg_sys::Node) -> Vec<*mut pg_sys::Node> {
    // SAFETY: a live qualification or null; the cast follows the tag.
    unsafe {
        if !qual.is_null() && tree::is_a(qual, pg_sys::NodeTag::T_List) {
            return nodes::list(qual.cast()).collect();
        }
        tree::conjuncts(qual)
    }
}

/// A condition on a sub-select's aggregates as one on its columns.
unsafe fn lifted(
    condition: *mut pg_sys::Node,
    calls: &[*mut pg_sys::Aggref],
    inner: u32,
) -> Translation<*mut pg_sys::Node> {
    // SAFETY: live expressions; casts follow tags, and copies are ours to change.
    unsafe {
        let mut columns = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            let call = unnumbered(*call);
            let column = pg_sys::makeVar(
                inner as i32,
                index as i16 + 1,
                (*call).aggtype,
                -1,
                (*call).aggcollid,
                0,
            );
            columns.push((call, column));
        }
        let mut lifts = Vec::new();
        let leaves = pg_sys::pull_var_clause(condition, pg_sys::PVC_INCLUDE_AGGREGATES as i32);
        for leaf in nodes::list::<pg_sys::Node>(leaves) {
            let column = tree::is_a(leaf, pg_sys::NodeTag::T_Aggref).then(|| {
                let call = unnumbered(leaf.cast());
                columns
                    .iter()
                    .find(|(known, _)| pg_sys::equal((*known).cast(), call.cast()))
            });
            let Some(Some((_, column))) = column else {
                return Err("a condition on more than the sub-select's columns".into());
            };
            lifts.push((leaf, column.cast()));
        }
        let lifted = tree::replaced(condition, &mut |node| {
            let lift = lifts.iter().find(|(leaf, _)| *leaf == node);
            lift.map(|(_, column)| *column)
        });
        Ok(lifted)
    }
}

/// A copy of an aggregate without the numbers that planning gives it.
unsafe fn unnumbered(call: *mut pg_sys::Aggref) -> *mut pg_sys::Aggref {
    // SAFETY: the copy is ours to change.
    unsafe {
        let copy = tree::copy(call);
        ((*copy).aggno, (*copy).aggtransno) = (-1, -1);
        (*copy).aggsplit = pg_sys::AggSplit::AGGSPLIT_SIMPLE;
        copy
    }
}

/// A sub-select's expression over the outer query, in the outer query's terms.
unsafe fn raised(expression: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: the copy is ours to change; casts follow tags.
    unsafe {
        let copy = tree::copy(expression);
        tree::walk_expression(copy, &mut |node, _| {
            if (*node).type_ == pg_sys::NodeTag::T_Var {
                (*node.cast::<pg_sys::Var>()).varlevelsup = 0;
            }
            false
        });
        pg_sys::fix_opfuncids(copy);
        copy
    }
}

/// The number types of what a sub-select gives, for a translator.
pub fn number_types(plan: &JoinPlan) -> Vec<Option<lanes_columnar::vector::number::NumberType>> {
    let outputs = plan.outputs().into_iter();
    outputs.map(|output| output.and_then(number_type)).collect()
}
