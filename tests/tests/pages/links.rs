//! Links of a page, and paths that it names in backticks.

use crate::page::Page;
use lanes_support::place;
use std::path::{Component, Path, PathBuf};

/// What the paths of this repository begin with.
const ROOMS: [&str; 10] = [
    "extension/",
    "gateway/",
    "simd/",
    "sql/",
    "bench/",
    "tests/",
    "docker/",
    ".github/",
    ".config/",
    ".ci/",
];

/// Every link and path of the page that leads nowhere, with its line.
pub fn broken(page: &Page, pages: &[Page]) -> Vec<String> {
    let mut broken = Vec::new();
    for (line, text) in page.prose() {
        let mut tell = |what: String| {
            broken.push(format!("{}:{line}: {what}", page.path.display()));
        };
        for link in links(text) {
            if let Err(reason) = follow(page, &link, pages) {
                tell(format!("{link}: {reason}"));
            }
        }
        for path in paths(text) {
            if !place::workspace().join(path).exists() {
                tell(format!("`{path}` does not exist"));
            }
        }
    }
    broken
}

/// The pages that a page links to.
pub fn pages_linked(page: &Page) -> Vec<PathBuf> {
    let prose = page.prose();
    let links = prose.iter().flat_map(|(_, text)| links(text));
    links
        .filter(|link| !is_elsewhere(link))
        .map(|link| target(page, link.split('#').next().unwrap_or_default()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect()
}

fn follow(page: &Page, link: &str, pages: &[Page]) -> Result<(), String> {
    if is_elsewhere(link) {
        return Ok(());
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = target(page, path);
    if !place::workspace().join(&path).exists() {
        return Err(format!("{} does not exist", path.display()));
    }
    if anchor.is_empty() {
        return Ok(());
    }
    let linked = pages.iter().find(|page| page.path == path);
    let linked = linked.ok_or_else(|| format!("{} is no page", path.display()))?;
    match anchors(linked).iter().any(|known| known == anchor) {
        true => Ok(()),
        false => Err(format!("{} has no heading #{anchor}", path.display())),
    }
}

fn is_elsewhere(link: &str) -> bool {
    ["http://", "https://", "mailto:"]
        .iter()
        .any(|scheme| link.starts_with(scheme))
}

/// The path that a link of a page means, relative to the root of the checkout; without a path, the page itself.
fn target(page: &Page, path: &str) -> PathBuf {
    if path.is_empty() {
        return page.path.clone();
    }
    let mut target = page.path.parent().unwrap_or(Path::new("")).to_owned();
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir => {
                target.pop();
            }
            Component::Normal(name) => target.push(name),
            _ => {}
        }
    }
    target
}

/// The headings of a page as GitHub names them in links.
fn anchors(page: &Page) -> Vec<String> {
    let prose = page.prose();
    let headings = prose.iter().filter(|(_, line)| line.starts_with('#'));
    headings
        .map(|(_, line)| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
            kept.map(|letter| if letter == ' ' { '-' } else { letter })
                .collect()
        })
        .collect()
}

/// The targets of all links and pictures in a line.
fn links(line: &str) -> Vec<String> {
    let outside: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let targets = outside.split("](").skip(1);
    targets
        .filter_map(|rest| rest.split(')').next())
        .map(str::to_owned)
        .collect()
}

/// The texts in backticks that are paths of this repository.
fn paths(line: &str) -> Vec<&str> {
    let is_path = |text: &&str| {
        let letters = |letter: char| letter.is_alphanumeric() || "._-/".contains(letter);
        ROOMS.iter().any(|room| text.starts_with(room)) && text.chars().all(letters)
    };
    line.split('`').skip(1).step_by(2).filter(is_path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_paths_are_found_in_a_line() {
        let line = "See [a `b`](c.md#d) and ![x](y.png), `sql/no.sql`, `tests/*.rs` and `](no)`.";
        assert_eq!(links(line), ["c.md#d", "y.png"]);
        assert_eq!(paths(line), ["sql/no.sql"]);
    }

    #[test]
    fn broken_links_and_paths_are_reported() {
        let page = |path: &str, text: &str| Page {
            path: path.into(),
            text: text.to_owned(),
        };
        let text = "# A head\n[1](#a-head) [2](#no) [3](no.md) [4](Cargo.toml) `bench/no`\n";
        let pages = [page("README.md", text)];
        let broken = broken(&pages[0], &pages);
        assert_eq!(broken.len(), 3, "{broken:#?}");
        assert!(broken[0].contains("#no") && broken[1].contains("no.md"));
        assert!(broken[2].contains("bench/no"));
    }
}
