//! The queries of the dashboard in PromQL, with Grafana's variables replaced.

use crate::dashboard::{dashboard, gateway_with_samples, shown_metrics};
use crate::database::Database;
use lanes_support::gateway::{Answer, Gateway, encoded};
use serde_json::Value;

const FILE: &str = "pg_lanes_promql.json";
/// The interval of scrapes that the data source names, in seconds.
const SCRAPE_SECONDS: i64 = 5;

fn list<'v>(value: &'v Value, name: &str) -> &'v Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("{name}"))
}

/// The value of `data` in a successful answer.
fn data(answer: Answer, asked: &str) -> Value {
    assert_eq!(answer.status, 200, "{asked}: {}", answer.body);
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    body["data"].clone()
}

/// A variable of the dashboard: its name and the text that takes its place.
type Variable = (String, String);

/// Asks for the values of each variable as Grafana does, and returns each with all of them and with
/// one that is chosen.
fn variables(gateway: &Gateway, dashboard: &Value) -> Vec<[Variable; 2]> {
    let of = |variable: &Value| {
        assert_eq!(variable["datasource"]["uid"], "lanes-promql", "{variable}");
        let name = variable["name"].as_str().unwrap().to_owned();
        let query = variable["query"]["query"].as_str().unwrap();
        let arguments = query
            .strip_prefix("label_values(")
            .and_then(|rest| rest.strip_suffix(')'));
        let (selector, label) = arguments.unwrap().rsplit_once(", ").unwrap();
        let matching = encoded(&[("match[]", selector)]);
        let path = format!("/api/v1/label/{label}/values?{matching}");
        let values = data(gateway.get(&path).unwrap(), query);
        let chosen = values[0]
            .as_str()
            .unwrap_or_else(|| panic!("{query} finds nothing"));
        let all = variable["allValue"].as_str().unwrap().to_owned();
        [(name.clone(), all), (name, format!("({chosen})"))]
    };
    list(&dashboard["templating"], "list")
        .iter()
        .map(of)
        .collect()
}

/// Replaces variables as Grafana does for a range of 15 minutes and a step of a scrape.
fn expanded<'v>(expr: &str, variables: impl Iterator<Item = &'v Variable>) -> String {
    let rate_interval = format!("{}s", 4 * SCRAPE_SECONDS);
    let expr = expr
        .replace("$__rate_interval", &rate_interval)
        .replace("$__range", "900s");
    let expr = variables.fold(expr, |expr, (name, value)| {
        expr.replace(&format!("${name}"), value)
    });
    assert!(
        !expr.contains('$'),
        "a variable that is unknown to this test: {expr}"
    );
    expr
}

/// Fails unless a query of a panel gives series with a value other than 0.
fn require_series(gateway: &Gateway, target: &Value, expr: &str, now: i64) {
    let (start, end) = (now / 1000 - 60, now / 1000 + SCRAPE_SECONDS);
    let (start, end) = (start.to_string(), end.to_string());
    let (path, parameters, values) = match target["instant"].as_bool().unwrap_or_default() {
        true => ("/api/v1/query", vec![("time", end.as_str())], "value"),
        false => {
            let range = vec![("start", start.as_str()), ("end", &end), ("step", "5")];
            ("/api/v1/query_range", range, "values")
        }
    };
    let form = [vec![("query", expr)], parameters].concat();
    let kind = ("content-type", "application/x-www-form-urlencoded");
    let answer = gateway
        .post(path, &[kind], encoded(&form).as_bytes())
        .unwrap();
    let data = data(answer, expr);
    let series = list(&data, "result");
    let is_shown = |value: &Value| value.as_str().is_some_and(|value| value != "0");
    let has_value = |series: &Value| match series[values].as_array().unwrap().as_slice() {
        [_, value] if is_shown(value) => true,
        pairs => pairs.iter().any(|pair| is_shown(&pair[1])),
    };
    assert!(series.iter().any(has_value), "{expr} shows nothing: {data}");
}

#[test]
fn every_expression_of_the_dashboard_gives_series() {
    let dashboard = dashboard(FILE);
    let mut database = Database::start("images_promql_dashboard");
    let mut metrics = shown_metrics();
    // vmalert writes it.
    metrics.insert("ALERTS".to_owned());
    let (mut gateway, now) = gateway_with_samples(&database, &metrics);
    let variables = variables(&gateway, &dashboard);
    assert_eq!(variables.len(), 2);
    let panels = list(&dashboard, "panels").iter();
    let annotations = list(&dashboard["annotations"], "list").iter();
    let targets: Vec<&Value> = panels
        .flat_map(|panel| list(panel, "targets"))
        .chain(annotations)
        .collect();
    assert!(targets.len() > 12);
    for target in targets {
        assert_eq!(target["datasource"]["uid"], "lanes-promql", "{target}");
        let expr = target["expr"].as_str().unwrap();
        for choice in 0..2 {
            let chosen = variables.iter().map(|variable| &variable[choice]);
            require_series(&gateway, target, &expanded(expr, chosen), now);
        }
    }
    gateway.stop().unwrap();
    database.stop();
}

#[test]
fn both_dashboards_have_the_same_panels() {
    let panels = |name: &str| {
        let dashboard = dashboard(name);
        let panels = list(&dashboard, "panels").iter();
        let looks = panels
            .map(|panel| ["title", "type", "gridPos", "fieldConfig"].map(|key| panel[key].clone()));
        looks.collect::<Vec<_>>()
    };
    assert_eq!(panels(FILE), panels("pg_lanes.json"));
}
