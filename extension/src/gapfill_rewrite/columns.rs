//! The columns of the sub-select of a query with filled gaps.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::functions::{self, Function, Functions};
use super::range::Arguments;
use super::spec::Role;
use crate::error;
use crate::pg::tree::{Expr, Expression, Kind, List, Name, Query, TargetEntry, Var, make, walk};

/// A column.
struct Column<'p> {
    role: Role,
    expr: Expr<'p>,
    /// What GROUP BY calls it by; 0 if it does not.
    reference: u32,
    name: Option<&'p CStr>,
}

/// The columns that were found so far. Grouping keys are first.
pub struct Columns<'a, 'p> {
    functions: &'a Functions,
    columns: Vec<Column<'p>>,
    keys: usize,
    /// The call that a grouping key is.
    pub bucket: Arguments<'p>,
}

impl<'a, 'p> Columns<'a, 'p> {
    /// The grouping keys of a query, one of which is the bucket; `None` if none is.
    pub fn of_keys(functions: &'a Functions, query: Query<'p>) -> Option<Columns<'a, 'p>> {
        let mut bucket = None;
        let mut columns = Vec::new();
        let targets = query.targetList();
        for clause in query.groupClause() {
            let reference = clause.tleSortGroupRef();
            let target = targets
                .iter()
                .find(|target| target.ressortgroupref() == reference)?;
            let expr = target.expr();
            let mut role = Role::Key;
            if let Some(Function::Bucket { has_zone }) = functions.of(expr) {
                if bucket.is_some() {
                    error::refuse(
                        "a query can group by only one call of lanes.time_bucket_gapfill",
                        "Use lanes.time_bucket for the other.",
                    );
                }
                bucket = expr.as_func().map(|call| Arguments::of(call, has_zone));
                role = Role::Bucket;
            }
            columns.push(Column {
                role,
                expr,
                reference,
                name: target.resname(),
            });
        }
        let keys = columns.len();
        bucket.map(|bucket| Columns {
            functions,
            columns,
            keys,
            bucket,
        })
    }

    /// An expression of the query as one over the columns, to which those that it needs are added.
    pub fn over(&mut self, expr: Expr<'p>) -> Expr<'p> {
        if expr.has_subplan() {
            error::refuse(
                "a query with lanes.time_bucket_gapfill cannot have a sub-select in its select list",
                "Put the query into a sub-select, and the sub-select into the list of the query around it.",
            );
        }
        walk::replaced(expr, &mut |node| self.replacement(node))
    }

    fn replacement(&mut self, node: Expr<'p>) -> Option<Expr<'p>> {
        let keys = &self.columns[..self.keys];
        if let Some(key) = keys.iter().position(|key| key.expr.equals(node)) {
            return Some(self.column(key));
        }
        match (self.functions.of(node), node.kind()) {
            (Some(Function::Bucket { .. }), _) => error::refuse(
                "a call of lanes.time_bucket_gapfill is not in GROUP BY",
                functions::USE,
            ),
            (Some(function), Kind::FuncExpr(call)) => {
                let role = self.filled_role(function, call.args());
                call.args().first().map(|value| self.added(role, value))
            }
            (_, Kind::Aggref(call)) if call.agglevelsup() == 0 => {
                Some(self.added(Role::Plain, node))
            }
            // A column that depends on a key.
            (_, Kind::Var(column)) if column.varlevelsup() == 0 => {
                Some(self.added(Role::Key, node))
            }
            _ => None,
        }
    }

    fn filled_role(&self, function: Function, arguments: List<'p, Expr<'p>>) -> Role {
        let inner = arguments.first().is_some_and(|value| {
            walk::expression(value, &mut |node, _| self.functions.of(node).is_some())
        });
        if inner {
            error::refuse(
                &format!("{} cannot be nested", function.name()),
                "Call it with an aggregate, as in lanes.locf(avg(x)).",
            );
        }
        match (function, arguments.get(1)) {
            (Function::Interpolate, _) => Role::Interpolated,
            (_, None) => Role::Locf,
            (_, Some(over_nulls)) => match over_nulls.stripped().as_const() {
                Some(constant) if constant.value().is_some() => {
                    match constant
                        .value()
                        .is_some_and(|value| value.datum().value() != 0)
                    {
                        true => Role::LocfOverNulls,
                        false => Role::Locf,
                    }
                }
                _ => error::refuse(
                    "treat_null_as_missing of lanes.locf must be true or false",
                    "Write lanes.locf(avg(x), true).",
                ),
            },
        }
    }

    /// The column for an expression in a role, which may be there already.
    fn added(&mut self, role: Role, expr: Expr<'p>) -> Expr<'p> {
        let known = self.columns.iter();
        let mut known = known.enumerate().skip(self.keys);
        let known = known.find(|(_, column)| column.role == role && column.expr.equals(expr));
        let place = known.map(|(place, _)| place).unwrap_or_else(|| {
            self.columns.push(Column {
                role,
                expr,
                reference: 0,
                name: None,
            });
            self.columns.len() - 1
        });
        self.column(place)
    }

    /// A reference to a column, as one of the first entry of the outer query.
    fn column(&self, place: usize) -> Expr<'p> {
        let expr = self.columns[place].expr;
        let (type_of, collation) = (expr.type_of(), expr.collation());
        let var: Var<'p> = make::var(1, place as i16 + 1, type_of, collation);
        var.set_type_modifier(expr.type_modifier());
        var.as_expr()
    }

    /// The roles of the columns in their order.
    pub fn roles(&self) -> Vec<Role> {
        self.columns.iter().map(|column| column.role).collect()
    }

    /// The sub-select's targets. The last one is a call of `lanes.gapfill`.
    pub fn targets(&self, spec: Expr<'p>) -> List<'p, TargetEntry<'p>> {
        let mut targets = List::EMPTY;
        for (place, column) in self.columns.iter().enumerate() {
            let expr = match column.role {
                Role::Bucket => self.bucket.bucket_call(),
                _ => make::copy(column.expr),
            };
            let name = column.name.or(Some(c"value"));
            let target = make::target(expr, place + 1, name, false);
            target.set_sort_group_ref(column.reference);
            targets.push(target);
        }
        targets.push(make::target(
            spec,
            self.columns.len() + 1,
            Some(c"gapfill"),
            false,
        ));
        targets
    }

    /// The names of the sub-select's columns.
    pub fn names(targets: List<'p, TargetEntry<'p>>) -> List<'p, Name<'p>> {
        List::new(
            targets
                .iter()
                .map(|target| make::name(target.resname().unwrap_or(c"value"))),
        )
    }

    /// The call that finds the bucket, for a node that is a call of `lanes.time_bucket_gapfill` in GROUP BY.
    pub fn bucket_for(&self, node: Expr<'p>) -> Option<Expr<'p>> {
        let mut keys = self.columns[..self.keys].iter();
        let is_bucket = keys.any(|key| key.role == Role::Bucket && key.expr.equals(node));
        is_bucket.then(|| self.bucket.bucket_call())
    }

    /// What GROUP BY calls the bucket by.
    pub fn bucket_reference(&self) -> u32 {
        let bucket = self
            .columns
            .iter()
            .find(|column| column.role == Role::Bucket);
        bucket.map_or(0, |bucket| bucket.reference)
    }

    /// The type of the bucket.
    pub fn bucket_type(&self) -> pg_sys::Oid {
        self.bucket.bucket_call().type_of()
    }
}
