//! The notation of series in scripts: `up{job="a"} 1 _ 2+3x4 stale`.

use lanes_promql::Labels;
use lanes_promql::number;
use lanes_promql::parser::{ParserOptions, parse_selector};
use lanes_promql::sample::STALE_BITS;

/// A sample of a series, or none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Item {
    /// No sample.
    Omitted,
    /// A number.
    Float(f64),
    /// A native histogram.
    Histogram,
}

/// Reads a series: its labels and its samples.
pub fn parse(line: &str) -> (Labels, Vec<Item>) {
    let end = metric_end(line);
    let options = ParserOptions {
        unicode_names: true,
        ..ParserOptions::default()
    };
    let metric = &line[..end];
    let labels = match metric {
        "" => Labels::empty(),
        metric => {
            let matchers =
                parse_selector(metric, options).unwrap_or_else(|error| panic!("{line}: {error}"));
            Labels::from_pairs(
                matchers
                    .iter()
                    .map(|matcher| (matcher.name(), matcher.value())),
            )
        }
    };
    let mut items = Vec::new();
    let mut rest = line[end..].trim_start();
    while !rest.is_empty() {
        let searched = if rest.starts_with("{{") {
            histograms_end(rest)
        } else {
            0
        };
        let item_end = rest[searched..]
            .find([' ', '\t'])
            .map_or(rest.len(), |at| searched + at);
        push_items(&mut items, &rest[..item_end]);
        rest = rest[item_end..].trim_start();
    }
    (labels, items)
}

/// The end of the histograms that an item begins with: one, or a base and a step.
fn histograms_end(item: &str) -> usize {
    let end = item.find("}}").expect("the end of a histogram") + 2;
    match item[end..].starts_with(['+', '-']) {
        true => end + 1 + histograms_end(&item[end + 1..]),
        false => end,
    }
}

fn metric_end(line: &str) -> usize {
    let Some(brace) = line.find('{') else {
        return line.find([' ', '\t']).unwrap_or(line.len());
    };
    let space = line.find([' ', '\t']).unwrap_or(line.len());
    if space < brace && !line[space..brace].trim().is_empty() || line[brace..].starts_with("{{") {
        return space.min(brace);
    }
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in line[brace..].char_indices() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(open) if c == '\\' && open != '`' => is_escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None if c == '}' => return brace + at + 1,
            None => {}
        }
    }
    line.len()
}

fn push_items(items: &mut Vec<Item>, text: &str) {
    let (body, times) = match text.rsplit_once('x') {
        Some((body, count)) => (body, Some(count.parse::<usize>().unwrap())),
        None => (text, None),
    };
    if body == "_" {
        let count = times.unwrap_or(1);
        items.extend(std::iter::repeat_n(Item::Omitted, count));
        return;
    }
    let count = times.unwrap_or(0) + 1;
    if body.starts_with("{{") {
        items.extend(std::iter::repeat_n(Item::Histogram, count));
        return;
    }
    if body == "stale" {
        items.push(Item::Float(f64::from_bits(STALE_BITS)));
        return;
    }
    let bytes = body.as_bytes();
    let is_sign =
        |at: &usize| matches!(bytes[*at], b'+' | b'-') && !matches!(bytes[*at - 1], b'e' | b'E');
    let split = (1..bytes.len()).find(is_sign).unwrap_or(bytes.len());
    let value = |text: &str| {
        // The sign is not part of the number: -0 is a negative zero.
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1.0, digits),
            None => (1.0, text),
        };
        sign * number::parse(digits).unwrap_or_else(|fault| panic!("{text}: {fault}"))
    };
    let mut number = value(&body[..split]);
    let step = if split < body.len() {
        value(&body[split..])
    } else {
        0.0
    };
    for _ in 0..count {
        items.push(Item::Float(number));
        if split < body.len() {
            number += step;
        }
    }
}
