//! What the plan of `LanesGapfill` stores.
//!
//! | list | content |
//! |---|---|
//! | numbers | for each column of the sub-select the function of equality if it is a key, or 0 |
//! | `custom_exprs` | the arguments of `lanes.gapfill`: see [`spec`] |
//! | `custom_scan_tlist` | the columns of the sub-select |

use pgrx::pg_sys;

use crate::custom_scan::private_data;
use crate::gapfill_rewrite::spec::{self, Bound, Role};
use crate::pg::catalog;
use crate::pg::exec::node::CustomPlan;
use crate::pg::tree::{Expr, List, plan_field, plan_node};

/// The plan.
pub struct GapfillPlan {
    /// The columns of the sub-select, which may have one more.
    pub columns: Vec<Column>,
    pub width: Expr<'static>,
    pub zone: Expr<'static>,
    pub bounds: Vec<(Bound, Expr<'static>)>,
}

/// A column of the sub-select.
#[derive(Clone, Copy)]
pub struct Column {
    pub role: Role,
    pub type_of: pg_sys::Oid,
    pub collation: pg_sys::Oid,
    /// The function of equality of a key.
    pub equality: Option<pg_sys::Oid>,
}

impl GapfillPlan {
    /// The plan that a node stores.
    pub fn of(plan: CustomPlan<'_>) -> GapfillPlan {
        let arguments: List<'static, Expr<'static>> = plan_field(plan.expressions());
        let argument = |place| arguments.get(place).expect("a call has a width and a zone");
        let letters = argument(0)
            .as_const()
            .and_then(|letters| letters.value()?.bytes());
        let (roles, bounds) = spec::decode(&letters.expect("the first argument is a text"));
        let types = plan.entries().map(plan_node::<Expr<'_>>);
        let equalities = private_data::numbers(plan);
        let columns = roles.into_iter().zip(types).zip(equalities);
        let columns = columns.map(|((role, expr), equality)| Column {
            role,
            type_of: expr.type_of(),
            collation: expr.collation(),
            equality: (equality != 0).then(|| pg_sys::Oid::from(equality as u32)),
        });
        GapfillPlan {
            columns: columns.collect(),
            width: argument(1),
            zone: argument(2),
            bounds: bounds.into_iter().zip(arguments.iter().skip(3)).collect(),
        }
    }

    /// The place and the type of the bucket.
    pub fn bucket(&self) -> (usize, pg_sys::Oid) {
        let place = self
            .columns
            .iter()
            .position(|column| column.role == Role::Bucket);
        let place = place.expect("a column is the bucket");
        (place, catalog::base_type(self.columns[place].type_of))
    }

    /// Whether groups have other keys than the bucket.
    pub fn has_keys(&self) -> bool {
        self.columns.iter().any(|column| column.equality.is_some())
    }
}
