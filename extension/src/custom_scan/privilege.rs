//! EXECUTE privileges on functions that the engine computes in place of PostgreSQL.
//!
//! PostgreSQL checks the privilege when it initialises an expression or aggregate. What the engine computes is never
//! initialised, so a node checks the privilege itself, at the same moment: plans are cached, and privileges change.

use pgrx::pg_sys;

use crate::pg::{ports, tree};

/// Raises PostgreSQL's error if the user may not execute a function, operator or aggregate of these expressions, which
/// are those of a plan or null.
pub fn check_execute(expressions: impl Iterator<Item = *mut pg_sys::Node>) {
    let mut functions = Vec::new();
    // SAFETY: the expressions of a plan are live; casts follow tags.
    unsafe {
        for expression in expressions {
            tree::walk_expression(expression, &mut |node, _| {
                let function = match (*node).type_ {
                    pg_sys::NodeTag::T_FuncExpr => (*node.cast::<pg_sys::FuncExpr>()).funcid,
                    pg_sys::NodeTag::T_OpExpr
                    | pg_sys::NodeTag::T_DistinctExpr
                    | pg_sys::NodeTag::T_NullIfExpr => (*node.cast::<pg_sys::OpExpr>()).opfuncid,
                    pg_sys::NodeTag::T_ScalarArrayOpExpr => {
                        (*node.cast::<pg_sys::ScalarArrayOpExpr>()).opfuncid
                    }
                    pg_sys::NodeTag::T_Aggref => (*node.cast::<pg_sys::Aggref>()).aggfnoid,
                    pg_sys::NodeTag::T_WindowFunc => (*node.cast::<pg_sys::WindowFunc>()).winfnoid,
                    _ => return false,
                };
                functions.push((function, (*node).type_ == pg_sys::NodeTag::T_Aggref));
                false
            });
        }
        functions.sort_unstable_by_key(|(function, _)| function.to_u32());
        functions.dedup();
        for (function, is_aggregate) in functions {
            let granted = ports::function_aclcheck(function, pg_sys::GetUserId());
            if granted != pg_sys::AclResult::ACLCHECK_OK {
                let kind = match is_aggregate {
                    true => pg_sys::ObjectType::OBJECT_AGGREGATE,
                    false => pg_sys::ObjectType::OBJECT_FUNCTION,
                };
                pg_sys::aclcheck_error(granted, kind, pg_sys::get_func_name(function));
            }
        }
    }
}
