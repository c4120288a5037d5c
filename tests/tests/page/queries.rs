//! Queries: their graph, their table, their errors, completion, the state in the address.

use super::{Stage, asked, click, require_no_faults, texts, wait_for_text};
use lanes_support::browser::Browser;
use lanes_support::provision::DATABASE;
use serde_json::json;

#[test]
fn queries_are_asked_and_shown_in_chromium() {
    let stage = Stage::start("page_queries");
    let mut browser = stage.browser();
    a_state_is_a_graph(&stage, &mut browser);
    the_graph_is_read_by_keys(&mut browser);
    the_table_is_sorted(&mut browser);
    the_browser_goes_back_and_forward(&mut browser);
    a_wrong_query_is_marked(&stage, &mut browser);
    what_was_cut_is_said(&stage, &mut browser);
    a_query_is_a_statement_of_sql(&stage, &mut browser);
    a_query_is_completed_and_run_by_keys(&stage, &mut browser);
    a_running_query_is_cancelled(&stage, &mut browser);
    require_no_faults(&browser);
}

/// The rows of the statement that the page shows for its query.
fn rows_in_sql(stage: &Stage, browser: &mut Browser) -> usize {
    click(browser, "#sql");
    browser
        .wait_for("document.getElementById('statement').open")
        .unwrap();
    // The page has copied it, or says that the user has to.
    wait_for_text(browser, "#statement-note", "Cop");
    let statement = browser.evaluate("document.getElementById('statement-text').value");
    click(browser, "#statement button");
    let statement = statement.unwrap();
    let rows = stage.cluster.query(DATABASE, statement.as_str().unwrap());
    rows.unwrap_or_else(|error| panic!("{statement}: {error}"))
        .len()
}

fn a_query_is_a_statement_of_sql(stage: &Stage, browser: &mut Browser) {
    let state = asked("requests_total{job='api'}");
    browser.open(&stage.address(&state)).unwrap();
    wait_for_text(browser, ".summary", "2 series · 14 points");
    assert_eq!(rows_in_sql(stage, browser), 14);
    click(browser, "[data-show=table]");
    wait_for_text(browser, ".summary", "2 series · at");
    assert_eq!(rows_in_sql(stage, browser), 2);
}

/// The number of pixels of the lines' canvas that have the colour of a series.
fn pixels(browser: &mut Browser, series: usize) -> u64 {
    let script = format!(
        "(() => {{
            const swatch = document.querySelectorAll('.legend .swatch')[{series}];
            const wanted = getComputedStyle(swatch).backgroundColor.match(/\\d+/g).map(Number);
            const canvas = document.querySelector('.chart canvas');
            const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            let found = 0;
            for (let at = 0; at < data.length; at += 4)
                if (data[at + 3] === 255 && wanted.every((part, index) => Math.abs(data[at + index] - part) < 6)) found += 1;
            return found;
        }})()"
    );
    browser.evaluate(&script).unwrap().as_u64().unwrap()
}

fn a_state_is_a_graph(stage: &Stage, browser: &mut Browser) {
    let state = asked("sum by (code) (requests_total)");
    browser.open(&stage.address(&state)).unwrap();
    browser
        .wait_for("document.querySelectorAll('.legend li').length === 2")
        .unwrap();
    assert_eq!(
        texts(browser, ".legend .name"),
        ["{code=\"200\"}", "{code=\"500\"}"]
    );
    assert_eq!(texts(browser, ".legend .last"), ["60", "6"]);
    wait_for_text(browser, ".summary", "2 series · 14 points · step 10s");
    let box_text = browser.evaluate("document.querySelector('#expression').value");
    assert_eq!(box_text.unwrap(), json!("sum by (code) (requests_total)"));
    for series in 0..2 {
        let found = pixels(browser, series);
        assert!(found > 200, "line {series} has {found} pixels");
    }
    // A click on a series shows it alone, another one shows all.
    click(browser, ".legend button");
    assert_eq!(pixels(browser, 1), 0);
    click(browser, ".legend button");
    assert!(pixels(browser, 1) > 200);
}

fn the_graph_is_read_by_keys(browser: &mut Browser) {
    browser
        .evaluate("document.querySelector('.chart').focus()")
        .unwrap();
    browser.press("ArrowLeft").unwrap();
    wait_for_text(browser, ".tip .chosen", "{code=\"200\"}50");
    browser.press("ArrowDown").unwrap();
    wait_for_text(browser, ".tip .chosen", "{code=\"500\"}5");
    wait_for_text(browser, "#spoken", "5, {code=\"500\"}");
}

fn the_table_is_sorted(browser: &mut Browser) {
    click(browser, "[data-show=table]");
    browser
        .wait_for("document.querySelectorAll('tbody tr').length === 2")
        .unwrap();
    assert_eq!(texts(browser, "th"), ["code", "value"]);
    assert_eq!(texts(browser, "td"), ["200", "60", "500", "6"]);
    // The greatest value is first, then the least.
    click(browser, "th.value button");
    assert_eq!(texts(browser, "td"), ["200", "60", "500", "6"]);
    click(browser, "th.value button");
    assert_eq!(texts(browser, "td"), ["500", "6", "200", "60"]);
    let state = browser.evaluate("location.hash").unwrap();
    assert!(state.as_str().unwrap().contains("show=table"), "{state}");
}

fn the_browser_goes_back_and_forward(browser: &mut Browser) {
    browser.evaluate("history.back()").unwrap();
    browser
        .wait_for("document.querySelectorAll('.legend li').length === 2")
        .unwrap();
    browser.evaluate("history.forward()").unwrap();
    browser
        .wait_for("document.querySelectorAll('tbody tr').length === 2")
        .unwrap();
}

fn a_wrong_query_is_marked(stage: &Stage, browser: &mut Browser) {
    let query = "sum(\n  rate(up[5m)\n)";
    browser.open(&stage.address(&asked(query))).unwrap();
    wait_for_text(browser, ".fault b", "bad_data");
    let expected = "2:13: parse error: unexpected \")\" in subquery or range";
    wait_for_text(browser, ".fault", expected);
    assert_eq!(
        texts(browser, ".fault pre"),
        ["  rate(up[5m)\n            ^"]
    );
    assert_eq!(texts(browser, ".fault-place"), [")"]);
    // An error of the evaluation is shown as it is.
    browser
        .open(&stage.address(&asked("up * on () up")))
        .unwrap();
    wait_for_text(
        browser,
        ".fault",
        "found duplicate series for the match group {}",
    );
    browser.open(&stage.address("q=up&range=nonsense")).unwrap();
    wait_for_text(browser, ".fault", "\"nonsense\" is not a duration");
}

fn what_was_cut_is_said(stage: &Stage, browser: &mut Browser) {
    let state = format!("{}&limit=10", asked("wide"));
    browser.open(&stage.address(&state)).unwrap();
    wait_for_text(browser, ".message.warning", "more than 10 series");
    assert_eq!(texts(browser, ".legend li").len(), 10);
    browser
        .evaluate("(() => { const box = document.querySelector('#limit'); box.value = '100'; box.dispatchEvent(new Event('change')); })()")
        .unwrap();
    browser
        .wait_for("document.querySelectorAll('.legend li').length === 12")
        .unwrap();
    assert!(texts(browser, ".message").is_empty());
}

/// The texts of the completions, once one of them is the expected one.
fn completions(browser: &mut Browser, expected: &str) -> Vec<String> {
    let shown = "[...document.querySelectorAll('#choices:not([hidden]) .text')].map((found) => found.textContent)";
    let expected = json!(expected);
    let script = format!("((all) => all.includes({expected}) && all)({shown})");
    serde_json::from_value(browser.wait_for(&script).unwrap()).unwrap()
}

fn a_query_is_completed_and_run_by_keys(stage: &Stage, browser: &mut Browser) {
    let address = stage.address(&format!("range=1m&step=10s&end={}", super::END));
    browser.open(&address).unwrap();
    wait_for_text(browser, ".invite", "Ask in PromQL");
    // The box has the focus where nothing is asked yet; elsewhere `/` gives it the focus.
    let has_focus = "document.activeElement.id === 'expression'";
    browser.wait_for(has_focus).unwrap();
    browser.evaluate("document.activeElement.blur()").unwrap();
    browser.press("/").unwrap();
    browser.wait_for(has_focus).unwrap();
    browser.type_text("sum by (code) (requ").unwrap();
    // Names that begin with the part come before those that contain it.
    let names = completions(browser, "requests_total");
    assert_eq!(names.first().map(String::as_str), Some("requests_total"));
    assert!(names.len() > 1, "{names:?}");
    browser.press("Tab").unwrap();
    browser.type_text("{co").unwrap();
    assert_eq!(completions(browser, "code"), ["code"]);
    browser.press("ArrowDown").unwrap();
    browser.press("Enter").unwrap();
    browser.type_text("=").unwrap();
    assert_eq!(completions(browser, "500"), ["200", "500"]);
    browser.press("ArrowUp").unwrap();
    browser.press("Enter").unwrap();
    browser.type_text("})").unwrap();
    let written = browser.evaluate("document.querySelector('#expression').value");
    let query = "sum by (code) (requests_total{code=\"500\"})";
    assert_eq!(written.unwrap(), json!(query));
    browser.press_with_control("Enter").unwrap();
    browser
        .wait_for("document.querySelectorAll('.legend li').length === 1")
        .unwrap();
    // The history has what was run, the latest first.
    click(browser, "#history");
    let earlier = completions(browser, query);
    assert_eq!(earlier.first().map(String::as_str), Some(query));
    browser.press("Escape").unwrap();
    // Functions are completed with their parenthesis.
    browser.press_with_control("a").unwrap();
    browser
        .evaluate("document.querySelector('#expression').select()")
        .unwrap();
    browser.type_text("histogram_q").unwrap();
    completions(browser, "histogram_quantile");
    browser.press("Tab").unwrap();
    browser
        .wait_for("document.querySelector('#expression').value === 'histogram_quantile('")
        .unwrap();
}

fn a_running_query_is_cancelled(stage: &Stage, browser: &mut Browser) {
    let mut locking = stage.cluster.connect(DATABASE).unwrap();
    locking
        .batch_execute("BEGIN; LOCK TABLE lanes.samples IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    browser.open(&stage.address(&asked("up"))).unwrap();
    browser
        .wait_for("!document.querySelector('#cancel').hidden")
        .unwrap();
    let running = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lanes-gateway query' AND state = 'active'";
    let number = || stage.cluster.query("postgres", running).unwrap()[0][0].clone();
    while number().as_deref() != Some("1") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    browser.press("Escape").unwrap();
    wait_for_text(browser, "#answer", "The query was cancelled.");
    // The statement ends too, so that its session is free.
    while number().as_deref() != Some("0") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(locking);
    click(browser, "#run");
    wait_for_text(browser, ".summary", "2 series");
}
