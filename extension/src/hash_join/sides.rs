//! Recognising a join of a lanes table with something smaller by equality.

use lanes_columnar::aggregate::Key;
use lanes_simd::Comparison;
use pgrx::pg_sys;

use super::key_types;
use super::plan::{HashJoinPlan, JoinKind};
use super::small_side::ROW_BYTES;
use crate::custom_scan::aggregate_call;
use crate::custom_scan::offer::{is_lanes_scan, quals};
use crate::custom_scan::translate::{Scalars, Translation, Translator, number_type, strip};
use crate::pg::{nodes, ports, tree};

/// The two sides of a join.
#[derive(Clone, Copy)]
pub struct Sides {
    /// The lanes table.
    pub lanes: *mut pg_sys::RelOptInfo,
    /// What it is joined with.
    pub small: *mut pg_sys::RelOptInfo,
    /// Both, joined.
    pub joined: *mut pg_sys::RelOptInfo,
    /// The kind of join, in which the lanes table is the left side.
    pub kind: JoinKind,
    /// The join's conditions.
    pub conditions: *mut pg_sys::List,
}

/// A join as the planner finds it.
pub struct HashJoin {
    /// Its sides.
    pub sides: Sides,
    /// What the plan is to remember; its outputs are still missing.
    pub plan: HashJoinPlan,
    /// The other sides of the keys, expressions over the small side.
    pub small_keys: Vec<*mut pg_sys::Node>,
}

impl Sides {
    /// The sides of a join of two relations, if the first is one lanes table, all of whose own quals are the engine's, and the
    /// second does not depend on it. (What keeps a qual from the engine is noted where its scan is offered.)
    ///
    /// # Safety
    /// The planner's live structures.
    pub unsafe fn of(
        root: *mut pg_sys::PlannerInfo,
        joined: *mut pg_sys::RelOptInfo,
        lanes: *mut pg_sys::RelOptInfo,
        small: *mut pg_sys::RelOptInfo,
        kind: pg_sys::JoinType::Type,
        conditions: *mut pg_sys::List,
    ) -> Option<Sides> {
        // SAFETY: the caller's promise.
        unsafe {
            let kind = JoinKind::of(kind)?;
            if (*lanes).reloptkind != pg_sys::RelOptKind::RELOPT_BASEREL {
                return None;
            }
            let entry = tree::planner_entry(root, (*lanes).relid as i32);
            let path = (*small).cheapest_total_path;
            let is_free = ports::list_length(conditions) > 0
                && (*lanes).lateral_relids.is_null()
                && (*small).lateral_relids.is_null()
                && !path.is_null()
                && (*path).param_info.is_null();
            let sides = Sides {
                lanes,
                small,
                joined,
                kind,
                conditions,
            };
            let is_ours = is_free && is_lanes_scan(lanes, entry) && sides.has_vector_quals(root);
            is_ours.then_some(sides)
        }
    }

    /// The sides of a join that some path of it shows.
    ///
    /// # Safety
    /// The planner's live structures.
    pub unsafe fn of_joined(
        root: *mut pg_sys::PlannerInfo,
        joined: *mut pg_sys::RelOptInfo,
    ) -> Option<Sides> {
        // SAFETY: the caller's promise; casts follow tags.
        unsafe {
            for mut path in nodes::list::<pg_sys::Path>((*joined).pathlist) {
                while (*path).type_ == pg_sys::NodeTag::T_ProjectionPath {
                    path = (*path.cast::<pg_sys::ProjectionPath>()).subpath;
                }
                if let Some(sides) = super::offer::sides_of_path(path) {
                    return Some(sides);
                }
                let is_join = matches!(
                    (*path).type_,
                    pg_sys::NodeTag::T_HashPath
                        | pg_sys::NodeTag::T_MergePath
                        | pg_sys::NodeTag::T_NestPath
                );
                if !is_join {
                    continue;
                }
                let join = &*path.cast::<pg_sys::JoinPath>();
                // A side that takes parameters of the other has some of the conditions.
                if !(*join.innerjoinpath).param_info.is_null() {
                    continue;
                }
                let (outer, inner) = ((*join.outerjoinpath).parent, (*join.innerjoinpath).parent);
                let (kind, conditions) = (join.jointype, join.joinrestrictinfo);
                let unique =
                    |path: *mut pg_sys::Path| (*path).type_ == pg_sys::NodeTag::T_UniquePath;
                if unique(join.outerjoinpath) || unique(join.innerjoinpath) {
                    continue;
                }
                let sides = Sides::of(root, joined, outer, inner, kind, conditions);
                let swapped = || {
                    (kind == pg_sys::JoinType::JOIN_INNER)
                        .then(|| Sides::of(root, joined, inner, outer, kind, conditions))
                        .flatten()
                };
                if let Some(sides) = sides.or_else(swapped) {
                    return Some(sides);
                }
            }
            None
        }
    }

    unsafe fn has_vector_quals(&self, root: *mut pg_sys::PlannerInfo) -> bool {
        let mut translator = Translator::new(Scalars::Unknown);
        // SAFETY: the planner's live structures.
        unsafe {
            let mut quals = quals(root, self.lanes).into_iter();
            quals.all(|qual| {
                !(*qual).pseudoconstant && translator.predicate((*qual).clause.cast()).is_ok()
            })
        }
    }

    /// Whether all rows of the small side are expected to fit in the memory that they may take.
    unsafe fn fits_memory(&self) -> bool {
        // SAFETY: the planner's live structures; settings of this session.
        unsafe {
            let width = f64::from((*(*self.small).reltarget).width) + ROW_BYTES as f64;
            (*self.small).rows * width <= pg_sys::get_hash_memory_limit() as f64
        }
    }

    /// The join of these sides.
    ///
    /// # Errors
    /// Why it is none that can be done by vectors.
    ///
    /// # Safety
    /// The planner's live structures.
    pub unsafe fn join(self, root: *mut pg_sys::PlannerInfo) -> Translation<HashJoin> {
        // SAFETY: the caller's promise; casts follow tags.
        unsafe {
            let index = (*self.lanes).relid;
            let mut translator = Translator::new(Scalars::Unknown);
            let (mut left_keys, mut small_keys) = (Vec::new(), Vec::new());
            for condition in nodes::list::<pg_sys::RestrictInfo>(self.conditions) {
                let is_outer = matches!(self.kind, JoinKind::Left | JoinKind::Anti);
                if is_outer && (*condition).is_pushed_down {
                    return Err("a condition on the result of an outer join".into());
                }
                if (*condition).security_level > 0 {
                    return Err("a join behind a security barrier".into());
                }
                let clause = (*condition).clause.cast::<pg_sys::Node>();
                if (*condition).pseudoconstant
                    || !tree::is_a(clause, pg_sys::NodeTag::T_OpExpr)
                    || ports::list_length((*clause.cast::<pg_sys::OpExpr>()).args) != 2
                {
                    return Err("a condition of the join that is no equality".into());
                }
                let clause = clause.cast::<pg_sys::OpExpr>();
                let arguments: [*mut pg_sys::Node; 2] = [
                    ports::list_nth((*clause).args, 0),
                    ports::list_nth((*clause).args, 1),
                ];
                let relations = arguments.map(|argument| pg_sys::pull_varnos(root, argument));
                let is_left = |varnos| pg_sys::bms_equal(varnos, (*self.lanes).relids);
                let is_small = |varnos: *mut pg_sys::Bitmapset| {
                    !varnos.is_null() && pg_sys::bms_is_subset(varnos, (*self.small).relids)
                };
                let (left, small) = if is_left(relations[0]) && is_small(relations[1]) {
                    (arguments[0], arguments[1])
                } else if is_left(relations[1]) && is_small(relations[0]) {
                    (arguments[1], arguments[0])
                } else {
                    return Err("a condition of the join that mixes its sides".into());
                };
                key(&mut translator, clause, left, small)?;
                left_keys.push(left);
                small_keys.push(small);
            }
            if self.kind == JoinKind::Left && !self.fits_memory() {
                return Err("the small side would not fit in memory (see work_mem)".into());
            }
            if left_keys.is_empty() {
                return Err("a join without an equality".into());
            }
            Ok(HashJoin {
                sides: self,
                plan: HashJoinPlan {
                    table: index,
                    kind: self.kind,
                    left_keys,
                    outputs: Vec::new(),
                },
                small_keys,
            })
        }
    }
}

/// Checks that an equality compares numbers, or times of one type, or a column of text with a text, or one of uuid with a uuid.
unsafe fn key(
    translator: &mut Translator,
    clause: *mut pg_sys::OpExpr,
    left: *mut pg_sys::Node,
    small: *mut pg_sys::Node,
) -> Translation<()> {
    // SAFETY: the planner's live expressions.
    unsafe {
        if pg_sys::contain_volatile_functions(small) || nodes::contains_subplan(small) {
            return Err("a key of the join that is volatile or a subquery".into());
        }
        let (found, _) = aggregate_call::key(translator, left)?;
        match found {
            Key::Text(_) => {
                let collation = (*clause).inputcollid;
                let is_deterministic = collation == pg_sys::InvalidOid
                    || pg_sys::get_collation_isdeterministic(collation);
                let is_text = matches!(
                    pg_sys::getBaseType(pg_sys::exprType(small)),
                    pg_sys::TEXTOID | pg_sys::VARCHAROID
                );
                if (*clause).opfuncid.to_u32() != pg_sys::F_TEXTEQ || !is_deterministic || !is_text
                {
                    return Err("a key of the join that is compared by more than bytes".into());
                }
                Ok(())
            }
            Key::Number(value) if !value.number().is_float() => {
                let equality = ports::btree_operator((*clause).opno)
                    .filter(|(comparison, ..)| *comparison == Comparison::Equal);
                let Some((_, family, types)) = equality else {
                    return Err("a key of the join that is no equality of numbers".into());
                };
                let is_integer = family == pg_sys::INTEGER_BTREE_FAM_OID;
                let is_number = number_type(pg_sys::exprType(strip(small)))
                    .is_some_and(|number| !number.is_float());
                if !is_number || !is_integer && types.0 != types.1 {
                    return Err("a key of the join of two types".into());
                }
                Ok(())
            }
            Key::Number(_) => key_types::check_float(clause, small),
            Key::Bytes16(_) => key_types::check_uuid(clause, small),
            _ => {
                Err("a key of the join that is neither a number, a time, a text nor a uuid".into())
            }
        }
    }
}
