//! The explorer, the status, light and dark.

use super::{HOSTILE, Stage, asked, click, require_no_faults, texts, wait_for_text};
use lanes_support::browser::Browser;
use lanes_support::provision::DATABASE;

#[test]
fn metrics_and_status_are_shown_in_chromium() {
    let stage = Stage::start("page_views");
    let mut browser = stage.browser();
    metrics_are_listed_with_their_series(&stage, &mut browser);
    labels_are_shown_as_text(&mut browser);
    labels_narrow_the_series(&mut browser);
    the_status_has_rates_storage_and_refusals(&stage, &mut browser);
    colours_follow_the_system_and_the_switch(&stage, &mut browser);
    require_no_faults(&browser);
}

/// The number of series of each metric that the explorer lists.
fn listed(browser: &mut Browser) -> Vec<String> {
    let names = texts(browser, "#metrics .name");
    let numbers = texts(browser, "#metrics .number");
    let pairs = names.iter().zip(&numbers);
    pairs
        .map(|(name, number)| format!("{name} {number}"))
        .collect()
}

fn metrics_are_listed_with_their_series(stage: &Stage, browser: &mut Browser) {
    browser.open(&stage.address("view=explore")).unwrap();
    wait_for_text(browser, "#metrics .name", "wide");
    let all = listed(browser);
    assert!(all.contains(&"requests_total 2".to_owned()), "{all:?}");
    assert!(all.contains(&"wide 12".to_owned()), "{all:?}");
    wait_for_text(browser, "#metric", "Cardinality");
    // A search is part of the state.
    browser.press("/").unwrap();
    browser.type_text("REQUESTS_T").unwrap();
    browser
        .wait_for("location.hash.includes('find=REQUESTS_T')")
        .unwrap();
    let found = listed(browser);
    assert!(found.contains(&"requests_total 2".to_owned()), "{found:?}");
    assert!(found.len() < all.len(), "{found:?}");
    browser
        .open(&stage.address("view=explore&find=wide"))
        .unwrap();
    wait_for_text(browser, "#found", "1 metric");
    assert_eq!(listed(browser), ["wide 12"]);
    // Its series are old, which the small graph says.
    click(browser, "#metrics a");
    wait_for_text(browser, "#metric", "12 series, 1 label");
    wait_for_text(browser, "#metric", "No samples within the last hour.");
}

fn labels_are_shown_as_text(browser: &mut Browser) {
    browser
        .evaluate("location.hash = 'view=explore&metric=up'")
        .unwrap();
    wait_for_text(browser, ".values .name", HOSTILE);
    let title = browser.evaluate("document.title").unwrap();
    assert_eq!(title, "up · pg_lanes");
    let images = browser.evaluate("document.querySelectorAll('main img').length");
    assert_eq!(images.unwrap(), 0);
}

fn labels_narrow_the_series(browser: &mut Browser) {
    browser
        .evaluate("location.hash = 'view=explore&metric=requests_total'")
        .unwrap();
    wait_for_text(browser, ".values .name", "500");
    browser
        .evaluate("[...document.querySelectorAll('.values a')].find((link) => link.textContent === '5001').click()")
        .unwrap();
    wait_for_text(browser, ".chip", "code=\"500\"");
    wait_for_text(browser, "#metric", "1 series, 2 labels");
    let query = "rate(requests_total{code=\"500\"}[5m])";
    assert_eq!(texts(browser, ".ways code"), [query]);
    // The way to the graph has the query.
    click(browser, ".ways .main");
    browser
        .wait_for("!document.querySelector('section[data-view=query]').hidden")
        .unwrap();
    let written = browser.evaluate("document.querySelector('#expression').value");
    assert_eq!(written.unwrap(), query);
}

fn the_status_has_rates_storage_and_refusals(stage: &Stage, browser: &mut Browser) {
    // A refused query, and a sealed segment.
    browser.open(&stage.address(&asked("up{"))).unwrap();
    wait_for_text(browser, ".fault b", "bad_data");
    let mut client = stage.cluster.connect(DATABASE).unwrap();
    client
        .batch_execute("SELECT lanes.seal('lanes.samples')")
        .unwrap();
    browser.press("Escape").unwrap();
    browser.open(&stage.address("view=status")).unwrap();
    wait_for_text(browser, ".states .good", "The gateway is ready");
    browser
        .wait_for("Number(document.querySelector('.rate b').textContent) > 0")
        .unwrap();
    wait_for_text(browser, "#health-text", "samples/s");
    wait_for_text(browser, ".arena", "in memory");
    wait_for_text(browser, ".state.sealed", "sealed");
    wait_for_text(browser, "#status td", "bad_data");
    wait_for_text(browser, "#status td", "/api/v1/query_range");
    let series = "Number([...document.querySelectorAll('.tile')].find((tile) => tile.textContent.endsWith('series')).firstChild.textContent.replace(',', '')) > 16";
    browser.wait_for(series).unwrap();
}

fn colours_follow_the_system_and_the_switch(stage: &Stage, browser: &mut Browser) {
    let ground = "getComputedStyle(document.body).backgroundColor";
    browser.prefer("light").unwrap();
    browser.open(&stage.address("")).unwrap();
    let light = browser.evaluate(ground).unwrap();
    browser.prefer("dark").unwrap();
    let dark = browser.evaluate(ground).unwrap();
    assert_ne!(light, dark);
    // The switch goes from the system's choice to light, and is remembered.
    click(browser, "#theme");
    assert_eq!(browser.evaluate(ground).unwrap(), light);
    browser.open(&stage.address("")).unwrap();
    assert_eq!(browser.evaluate(ground).unwrap(), light);
    assert_eq!(texts(browser, "#theme"), ["Theme: light"]);
    click(browser, "#theme");
    assert_eq!(browser.evaluate(ground).unwrap(), dark);
}
