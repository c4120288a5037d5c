//! The deepest queries of every form, from their text to their answer, on a small stack.

use lanes_promql::engine::{Engine, Options, QueryTime};
use lanes_promql::memory::{MemorySeries, MemorySource};
use lanes_promql::parser::{DEPTH_MAX, ParserOptions, STACK_BYTES_MAX, parse};
use lanes_promql::{Error, Labels};

/// The stack of a thread by default, which a build without optimisation has to do with.
const DEFAULT_STACK_BYTES: usize = 2 << 20;

const PARSER: ParserOptions = ParserOptions {
    experimental_functions: true,
    fill_modifiers: true,
    unicode_names: true,
};

/// A prefix and a suffix that are repeated around an expression, and the expression.
const FORMS: [(&str, &str, &str); 28] = [
    ("(", ")", "x"),
    ("-", "", "x"),
    ("x ^ ", "", "x"),
    ("x or ", "", "x"),
    ("x - ", "", "x"),
    ("1 + (", ")", "1"),
    ("x or (", ")", "x"),
    ("x and (", ")", "x"),
    ("x > bool (", ")", "x"),
    ("x + on (a) group_left () (", ")", "x"),
    ("x + fill (0) (", ")", "x"),
    ("abs(", ")", "x"),
    ("round(", ")", "x"),
    ("clamp(", ", 0, 1)", "x"),
    ("sort(", ")", "x"),
    ("absent(", ")", "x"),
    ("timestamp(", ")", "x"),
    ("vector(scalar(", "))", "x"),
    ("label_join(", ", \"b\", \",\", \"a\")", "x"),
    ("label_replace(", ", \"b\", \"$1\", \"a\", \"(.*)\")", "x"),
    ("histogram_quantile(0.9, ", ")", "x"),
    ("sum by (a) (", ")", "x"),
    ("topk(1, ", ")", "x"),
    ("topk(scalar(", "), x)", "x"),
    ("quantile(0.5, ", ")", "x"),
    ("count_values(\"v\", ", ")", "x"),
    ("max_over_time(", "[5m:1m])", "x"),
    ("quantile_over_time(0.5, ", "[5m:1m])", "x"),
];

/// The deepest query of a form that is not refused for its depth.
fn deepest((before, after, inner): (&str, &str, &str)) -> String {
    let at = |depth: usize| format!("{}{inner}{}", before.repeat(depth), after.repeat(depth));
    let is_refused = |query: &str| {
        parse(query, PARSER).is_err_and(|error| error.message.contains("nested more than"))
    };
    // A form may be several levels deep.
    let depth = (1..=DEPTH_MAX + 1)
        .rev()
        .find(|depth| !is_refused(&at(*depth)));
    let depth = depth.unwrap();
    assert!(
        (DEPTH_MAX / 4..=DEPTH_MAX).contains(&depth),
        "{before}: {depth}"
    );
    at(depth)
}

/// Does with a query whatever can be done with it.
fn exercise(query: &str) {
    let source = MemorySource {
        series: vec![MemorySeries {
            labels: Labels::from_pairs([("__name__", "x"), ("a", "1")]),
            timestamps: vec![1_000, 2_000],
            values: vec![1.0, 2.0],
        }],
    };
    let options = Options {
        parser: PARSER,
        ..Options::default()
    };
    let engine = Engine::new(&source, options);
    let (start, end, step) = (1_000, 5_000, 1_000);
    for time in [QueryTime::Steps { start, end, step }, QueryTime::At(start)] {
        for result in [
            engine.query(query, time).err(),
            engine.explain(query, time).err(),
        ] {
            assert!(
                !matches!(result, Some(Error::Parse(_))),
                "{query}: {result:?}"
            );
        }
    }
    let expr = parse(query, PARSER).unwrap();
    assert!(expr.clone() == expr && !format!("{expr}{expr:?}").is_empty());
}

#[test]
fn the_deepest_queries_take_no_more_than_their_share_of_the_stack() {
    let program = std::env::current_exe().unwrap();
    let is_optimised = program.iter().all(|part| part != "debug");
    let bytes = match is_optimised {
        true => STACK_BYTES_MAX,
        false => DEFAULT_STACK_BYTES,
    };
    for form in FORMS {
        println!("{}…{}", form.0, form.1);
        let run = move || {
            exercise(&deepest(form));
        };
        let thread = std::thread::Builder::new().stack_size(bytes).spawn(run);
        thread.unwrap().join().unwrap();
    }
}
