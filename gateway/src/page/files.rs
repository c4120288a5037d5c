//! The files of the page.

use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

/// The name of the file that `/` serves.
pub const INDEX: &str = "index.html";

/// A file of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// The name, without a folder.
    pub name: &'static str,
    /// The value of `Content-Type`.
    pub media_type: &'static str,
    /// The content.
    pub content: &'static [u8],
}

macro_rules! file {
    ($name:literal, $media_type:ident) => {
        File {
            name: $name,
            media_type: $media_type,
            content: include_bytes!(concat!("../../page/", $name)),
        }
    };
}

/// All files.
pub const FILES: [File; 27] = [
    file!("index.html", HTML),
    file!("theme.css", CSS),
    file!("layout.css", CSS),
    file!("parts.css", CSS),
    file!("icon.svg", IMAGE),
    file!("theme.js", SCRIPT),
    file!("main.js", SCRIPT),
    file!("api.js", SCRIPT),
    file!("axis.js", SCRIPT),
    file!("chart.js", SCRIPT),
    file!("complete.js", SCRIPT),
    file!("dom.js", SCRIPT),
    file!("editor.js", SCRIPT),
    file!("explore.js", SCRIPT),
    file!("format.js", SCRIPT),
    file!("graph.js", SCRIPT),
    file!("history.js", SCRIPT),
    file!("names.js", SCRIPT),
    file!("promql.js", SCRIPT),
    file!("query.js", SCRIPT),
    file!("range.js", SCRIPT),
    file!("sign_in.js", SCRIPT),
    file!("sql.js", SCRIPT),
    file!("state.js", SCRIPT),
    file!("status.js", SCRIPT),
    file!("table.js", SCRIPT),
    file!("token.js", SCRIPT),
];

/// The tags of all files, in their order.
static TAGS: LazyLock<[String; FILES.len()]> = LazyLock::new(|| {
    // Weak, because an answer may be compressed.
    FILES.map(|file| format!("W/\"{:016x}\"", xxh3_64(file.content)))
});

/// Returns a file by its name, and the value of `ETag` that stands for its content.
pub fn named(name: &str) -> Option<(&'static File, &'static str)> {
    let files = FILES.iter().zip(TAGS.iter());
    let mut found = files.filter(|(file, _)| file.name == name);
    found.next().map(|(file, tag)| (file, tag.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(file: &File) -> &'static str {
        std::str::from_utf8(file.content).unwrap()
    }

    /// The texts between two marks.
    fn between<'a>(text: &'a str, before: &str, after: char) -> Vec<&'a str> {
        let parts = text.split(before).skip(1);
        parts.filter_map(|part| part.split(after).next()).collect()
    }

    #[test]
    fn the_list_has_every_file_of_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let entries = std::fs::read_dir(folder).unwrap();
        let mut found: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut listed = FILES.map(|file| file.name).to_vec();
        found.sort();
        listed.sort_unstable();
        assert_eq!(listed, found);
    }

    #[test]
    fn everything_that_a_file_refers_to_is_served() {
        let mut references = 0;
        for file in &FILES {
            let found = match file.media_type {
                HTML => [
                    between(text(file), "src=\"", '"'),
                    between(text(file), "<link rel=\"stylesheet\" href=\"", '"'),
                    between(text(file), "<link rel=\"icon\" href=\"", '"'),
                ]
                .concat(),
                SCRIPT => between(text(file), " from \"", '"'),
                _ => Vec::new(),
            };
            references += found.len();
            for reference in found {
                let name = reference.strip_prefix(match file.media_type {
                    HTML => "page/",
                    _ => "./",
                });
                assert!(name.and_then(named).is_some(), "{}: {reference}", file.name);
            }
        }
        assert!(references > 30, "{references}");
    }

    #[test]
    fn every_import_names_what_a_module_exports() {
        for file in FILES.iter().filter(|file| file.media_type == SCRIPT) {
            for import in between(text(file), "\nimport {", ';') {
                let (names, from) = import.split_once("} from \"./").unwrap();
                let module = text(named(from.trim_end_matches('"')).unwrap().0);
                for name in names.split(',').map(str::trim) {
                    let declarations = ["const", "function", "async function", "class"];
                    let is_exported = declarations.iter().any(|declaration| {
                        let line = format!("export {declaration} {name}");
                        let mut after = module.split(&line).skip(1);
                        after.any(|rest| !rest.starts_with(char::is_alphanumeric))
                    });
                    assert!(is_exported, "{}: {name} of {from}", file.name);
                }
            }
        }
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere_and_no_script_or_style_is_inline() {
        for file in &FILES {
            let text = text(file);
            for forbidden in ["https://", "//cdn", "innerHTML", "eval(", "@import", "url("] {
                assert!(!text.contains(forbidden), "{}: {forbidden}", file.name);
            }
            // The name space of SVG is a name, not an address.
            let addresses = text.matches("http://").count();
            assert_eq!(
                addresses,
                usize::from(file.media_type == IMAGE),
                "{}",
                file.name
            );
        }
        let index = text(named(INDEX).unwrap().0);
        for forbidden in ["style=", "<style", "onclick", "onload", "<script>"] {
            assert!(!index.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn media_types_follow_the_names() {
        for file in &FILES {
            let (_, ending) = file.name.split_once('.').unwrap();
            let expected = match ending {
                "html" => HTML,
                "css" => CSS,
                "js" => SCRIPT,
                _ => IMAGE,
            };
            assert_eq!(file.media_type, expected, "{}", file.name);
        }
    }

    #[test]
    fn files_are_short_and_narrow() {
        for file in &FILES {
            let lines = text(file).lines().count();
            assert!(lines <= 500, "{} has {lines} lines", file.name);
            let columns = text(file).lines().map(|line| line.chars().count()).max();
            let columns = columns.unwrap_or_default();
            assert!(columns <= 120, "{} has {columns} columns", file.name);
        }
    }
}
