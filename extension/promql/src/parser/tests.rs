//! What the parser accepts, refuses and prints.

use super::{DEPTH_MAX, ParserOptions, parse};

const ALL: ParserOptions = ParserOptions {
    experimental_functions: true,
    fill_modifiers: true,
    unicode_names: true,
};

fn printed(query: &str) -> String {
    parse(query, ALL)
        .unwrap_or_else(|error| panic!("{query}: {error}"))
        .to_string()
}

#[test]
fn queries_are_printed_as_prometheus_prints_them() {
    for (query, expected) in [
        ("-1*2", "-1 * 2"),
        ("-1^2", "-1 ^ 2"),
        (
            "sum by(a,b)(x{c=~'d',a!=\"\"})",
            "sum by (a, b) (x{a!=\"\",c=~\"d\"})",
        ),
        (
            "rate(x[5m] offset 1h @ 10)",
            "rate(x[5m] @ 10.000 offset 1h)",
        ),
        ("x offset 5m + y", "x offset 5m + y"),
        (
            "max_over_time(x[30m:] @ end())",
            "max_over_time(x[30m:] @ end())",
        ),
        ("a*on(x)group_left(y)b", "a * on (x) group_left (y) b"),
        ("topk(3,x)", "topk(3, x)"),
        ("x[step()*2:(5m)]", "x[step() * 2:(5m)]"),
        ("{\"a.b\"}", "{__name__=\"a.b\"}"),
        (
            "sum without()(x) or vector(1)",
            "sum without () (x) or vector(1)",
        ),
    ] {
        assert_eq!(printed(query), expected);
        assert_eq!(printed(expected), expected);
    }
}

#[test]
fn errors_name_their_place() {
    for (query, expected) in [
        (
            "",
            "unknown position: parse error: no expression found in input",
        ),
        (
            "sum(x y)",
            "1:7: parse error: unexpected identifier \"y\" in aggregation",
        ),
        ("rate(x y)", "1:8: parse error: unexpected identifier \"y\""),
        (
            "x{a}",
            "1:4: parse error: unexpected \"}\" in label matching, expected label matching operator",
        ),
        ("x[5m", "1:5: parse error: unclosed left bracket"),
        (
            "rate(x)",
            "1:6: parse error: expected type range vector in call to function \"rate\", got instant vector",
        ),
        (
            "nope(x)",
            "1:1: parse error: unknown function with name \"nope\"",
        ),
        (
            "1 > 2",
            "1:3: parse error: comparisons between scalars must use BOOL modifier",
        ),
        (
            "x offset y",
            "1:10: parse error: unexpected identifier \"y\" in offset, expected number, duration, step(), or range()",
        ),
    ] {
        assert_eq!(
            parse(query, ALL).unwrap_err().to_string(),
            expected,
            "{query}"
        );
    }
    let experimental = parse("limitk(1, x)", ParserOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        experimental.contains("limitk() is experimental"),
        "{experimental}"
    );
}

#[test]
fn deep_expressions_are_refused() {
    for query in [
        "(".repeat(100_000),
        "-".repeat(100_000),
        format!("x{}", "+x".repeat(100_000)),
        format!("x{}", "[5m:]".repeat(100_000)),
        "abs(".repeat(100_000),
    ] {
        let error = parse(&query, ALL).unwrap_err();
        assert!(
            error
                .message
                .contains(&format!("more than {DEPTH_MAX} deep")),
            "{error}"
        );
    }
}
