//! Syntax trees as JSON, for the tree view of Prometheus's web page.

use lanes_promql::ast::{
    At, Binary, Cardinality, DurationExpr, Expr, Extension, TimeModifiers, ValueType,
    VectorSelector,
};
use lanes_promql::function::{Extra, Function};
use lanes_promql::matcher::Matcher;
use lanes_promql::number::format_plain;
use lanes_promql::token::TokenKind;
use serde_json::{Map, Value, json};

/// Nanoseconds of a millisecond.
const NANOS_PER_MILLI: i64 = 1_000_000;

/// Returns the tree of an expression. The parser bounds its depth.
pub fn of(expr: &Expr) -> Value {
    match expr {
        Expr::Number(number) => json!({
            "type": "numberLiteral",
            "val": format_plain(number.value),
        }),
        Expr::String(string) => json!({"type": "stringLiteral", "val": string.value}),
        Expr::Selector(selector) => Value::Object(selector_of("vectorSelector", selector)),
        Expr::Range(range) => {
            let mut tree = selector_of("matrixSelector", &range.selector);
            tree.insert("range".to_owned(), json!(range.range / NANOS_PER_MILLI));
            tree.insert("rangeExpr".to_owned(), optional(&range.range_expr));
            Value::Object(tree)
        }
        Expr::Subquery(subquery) => {
            let mut tree = Map::new();
            tree.insert("type".to_owned(), json!("subquery"));
            tree.insert("expr".to_owned(), of(&subquery.expr));
            tree.insert("range".to_owned(), json!(subquery.range / NANOS_PER_MILLI));
            tree.insert("rangeExpr".to_owned(), optional(&subquery.range_expr));
            tree.insert("step".to_owned(), json!(subquery.step / NANOS_PER_MILLI));
            tree.insert("stepExpr".to_owned(), optional(&subquery.step_expr));
            add_time(&mut tree, &subquery.time);
            Value::Object(tree)
        }
        Expr::Call(call) => json!({
            "type": "call",
            "func": function_of(call.function),
            "args": call.args.iter().map(of).collect::<Vec<_>>(),
        }),
        Expr::Aggregate(aggregate) => json!({
            "type": "aggregation",
            "op": operator(aggregate.operator),
            "expr": of(&aggregate.expr),
            "param": aggregate.param.as_ref().map(of),
            "grouping": aggregate.grouping,
            "without": aggregate.without,
        }),
        Expr::Binary(binary) => json!({
            "type": "binaryExpr",
            "op": operator(binary.operator),
            "lhs": of(&binary.left),
            "rhs": of(&binary.right),
            "matching": matching_of(binary),
            "bool": binary.returns_bool,
        }),
        Expr::Unary(unary) => json!({
            "type": "unaryExpr",
            "op": if unary.is_minus { "-" } else { "+" },
            "expr": of(&unary.expr),
        }),
        Expr::Paren(paren) => json!({"type": "parenExpr", "expr": of(&paren.expr)}),
    }
}

fn operator(kind: TokenKind) -> &'static str {
    kind.text().unwrap_or_default()
}

fn selector_of(kind: &str, selector: &VectorSelector) -> Map<String, Value> {
    let mut tree = Map::new();
    tree.insert("type".to_owned(), json!(kind));
    tree.insert("name".to_owned(), json!(selector.name));
    let matchers: Vec<Value> = selector.matchers.iter().map(matcher_of).collect();
    tree.insert("matchers".to_owned(), json!(matchers));
    add_time(&mut tree, &selector.time);
    let is = |extension| selector.extension == Some(extension);
    tree.insert("anchored".to_owned(), json!(is(Extension::Anchored)));
    tree.insert("smoothed".to_owned(), json!(is(Extension::Smoothed)));
    tree
}

fn matcher_of(matcher: &Matcher) -> Value {
    json!({
        "name": matcher.name(),
        "value": matcher.value(),
        "type": matcher.operator().as_str(),
    })
}

fn add_time(tree: &mut Map<String, Value>, time: &TimeModifiers) {
    let (timestamp, start_or_end) = match time.at {
        None => (None, None),
        Some(At::Time(millis)) => (Some(millis), None),
        Some(At::Start) => (None, Some("start")),
        Some(At::End) => (None, Some("end")),
    };
    tree.insert("offset".to_owned(), json!(time.offset / NANOS_PER_MILLI));
    tree.insert("offsetExpr".to_owned(), optional(&time.offset_expr));
    tree.insert("timestamp".to_owned(), json!(timestamp));
    tree.insert("startOrEnd".to_owned(), json!(start_or_end));
}

/// Only two vectors are matched.
fn matching_of(binary: &Binary) -> Value {
    let sides = [&binary.left, &binary.right];
    if sides
        .iter()
        .any(|side| side.value_type() != ValueType::Vector)
    {
        return Value::Null;
    }
    let matching = &binary.matching;
    json!({
        "card": match matching.cardinality {
            Cardinality::OneToOne => "one-to-one",
            Cardinality::ManyToOne => "many-to-one",
            Cardinality::OneToMany => "one-to-many",
            Cardinality::ManyToMany => "many-to-many",
        },
        "labels": matching.labels,
        "on": matching.on,
        "include": matching.include,
        "fillValues": {"lhs": matching.fill_left, "rhs": matching.fill_right},
    })
}

fn function_of(function: &Function) -> Value {
    let arguments: Vec<&str> = function.args.iter().map(|kind| kind.as_str()).collect();
    json!({
        "name": function.name,
        "argTypes": arguments,
        "variadic": variadic(function.extra),
        "returnType": function.returns.as_str(),
    })
}

/// As in Prometheus: -1 for any number of further arguments.
fn variadic(extra: Extra) -> i64 {
    match extra {
        Extra::None => 0,
        Extra::UpTo(count) => i64::try_from(count).unwrap_or(i64::MAX),
        Extra::AnyNumber => -1,
    }
}

fn optional(expr: &Option<DurationExpr>) -> Value {
    expr.as_ref().map_or(Value::Null, duration_of)
}

fn duration_of(expr: &DurationExpr) -> Value {
    let node = |operator: &str, sides: [Value; 2], wrapped: bool| {
        let [left, right] = sides;
        json!({"type": "durationExpr", "op": operator, "lhs": left, "rhs": right, "wrapped": wrapped})
    };
    let nothing = || [Value::Null, Value::Null];
    match expr {
        DurationExpr::Literal(literal) => json!({
            "type": "numberLiteral",
            "val": format_plain(literal.value),
            "duration": literal.is_duration,
        }),
        DurationExpr::Step(_) => node("step", nothing(), false),
        DurationExpr::Range(_) => node("range", nothing(), false),
        DurationExpr::MinOf(sides, _) => {
            node("min", [duration_of(&sides.0), duration_of(&sides.1)], false)
        }
        DurationExpr::MaxOf(sides, _) => {
            node("max", [duration_of(&sides.0), duration_of(&sides.1)], false)
        }
        DurationExpr::Negated(inner, _) => node("-", [Value::Null, duration_of(inner)], false),
        DurationExpr::Binary(kind, sides) => node(
            operator(*kind),
            [duration_of(&sides.0), duration_of(&sides.1)],
            false,
        ),
        DurationExpr::Paren(inner, _) => {
            let mut tree = duration_of(inner);
            if let Some(wrapped) = tree.get_mut("wrapped") {
                *wrapped = json!(true);
            }
            tree
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::syntax::parsed;

    fn tree(query: &str) -> Value {
        of(&parsed(query).unwrap())
    }

    #[test]
    fn trees_are_those_of_prometheus() {
        let a = json!({
            "type": "vectorSelector", "name": "a", "offset": 0, "offsetExpr": null,
            "matchers": [{"name": "__name__", "value": "a", "type": "="}],
            "timestamp": null, "startOrEnd": null, "anchored": false, "smoothed": false,
        });
        assert_eq!(tree("a"), a);
        assert_eq!(
            tree("-a + 1"),
            json!({
                "type": "binaryExpr", "op": "+", "bool": false, "matching": null,
                "rhs": {"type": "numberLiteral", "val": "1"},
                "lhs": {"type": "unaryExpr", "op": "-", "expr": a},
            })
        );
        assert_eq!(
            tree("topk by (job) (2, a)"),
            json!({
                "type": "aggregation", "op": "topk", "expr": a, "grouping": ["job"], "without": false,
                "param": {"type": "numberLiteral", "val": "2"},
            })
        );
        let matching = json!({
            "card": "many-to-one", "labels": ["x"], "on": true, "include": ["y"],
            "fillValues": {"lhs": null, "rhs": null},
        });
        assert_eq!(tree("a * on (x) group_left (y) a")["matching"], matching);
    }

    #[test]
    fn ranges_and_times_are_milliseconds() {
        let rate = tree("rate(a{b!~'c'}[1m:10s] offset 5s)");
        assert_eq!(rate["func"]["argTypes"], json!(["matrix"]));
        assert_eq!(rate["func"]["returnType"], json!("vector"));
        let subquery = &rate["args"][0];
        assert_eq!(subquery["range"], json!(60_000));
        assert_eq!(subquery["step"], json!(10_000));
        assert_eq!(subquery["offset"], json!(5000));
        let selector = tree("a[5m] @ 3");
        assert_eq!(selector["type"], json!("matrixSelector"));
        assert_eq!(selector["timestamp"], json!(3000));
        assert_eq!(tree("a @ end()")["startOrEnd"], json!("end"));
    }
}
