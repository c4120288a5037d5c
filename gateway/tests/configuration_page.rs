//! The page `gateway/docs/configuration.md` has the settings as the program has them.
//!
//! `LANES_WRITE_PAGES=1` writes the generated part of the page anew.

use lanes_gateway::config::setting::{SETTINGS, Setting};
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md");
const BEGIN: &str = "<!-- settings: begin -->\n";
const END: &str = "<!-- settings: end -->\n";

/// A heading and a table for each section, in the order of the program.
fn tables() -> String {
    let mut text = String::new();
    let mut section = "";
    for setting in SETTINGS {
        if setting.section != section {
            section = setting.section;
            let head = "| key | flag | value | default | meaning |\n|---|---|---|---|---|";
            write!(text, "\n## {section}\n\n{head}\n").unwrap();
        }
        text += &row(setting);
    }
    text + "\n"
}

fn row(setting: &Setting) -> String {
    let default = match setting.default {
        "" => String::new(),
        default => format!("`{default}`"),
    };
    format!(
        "| `{}` | `--{}` | {} | {default} | {} |\n",
        setting.key,
        setting.flag(),
        cell(setting.kind),
        cell(setting.help)
    )
}

/// Text as a cell of a table shows it.
fn cell(text: &str) -> String {
    let text = text.replace('|', "\\|");
    // Outside of backticks, names with underscores would be read as emphasis.
    let words = text.split(' ').map(|word| {
        let is_plain = !word.contains('_') || word.contains('`');
        match is_plain {
            true => word.to_owned(),
            false => marked(word),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A word in backticks, its punctuation outside of them.
fn marked(word: &str) -> String {
    let name = word.trim_matches(|letter| ",.;:()".contains(letter));
    word.replacen(name, &format!("`{name}`"), 1)
}

#[test]
fn the_page_has_the_settings_of_the_program() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (head, rest) = page.split_once(BEGIN).expect("the page marks its tables");
    let (written, tail) = rest.split_once(END).expect("the tables have an end");
    let tables = tables();
    if std::env::var_os("LANES_WRITE_PAGES").is_some() {
        std::fs::write(PAGE, format!("{head}{BEGIN}{tables}{END}{tail}")).unwrap();
    } else {
        assert!(
            written == tables,
            "{PAGE} differs from the settings; write it anew with LANES_WRITE_PAGES=1 cargo test -p lanes-gateway \
             --test configuration_page"
        );
    }
}
