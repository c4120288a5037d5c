//! A page: its text, its fenced blocks, its prose.

use lanes_support::place;
use std::path::{Path, PathBuf};

/// Folders that hold no pages of ours.
const SKIPPED: [&str; 5] = ["target", ".git", ".lanes", "node_modules", "venv"];

/// One file `*.md`.
pub struct Page {
    /// Relative to the root of the checkout.
    pub path: PathBuf,
    pub text: String,
}

/// One fenced block.
pub struct Block<'a> {
    pub language: &'a str,
    /// The line of its fence, from 1.
    pub line: usize,
    pub code: String,
}

/// Every page, in the order of their paths.
pub fn all() -> Vec<Page> {
    let root = place::workspace();
    let mut pages = Vec::new();
    collect(&root, &root, &mut pages);
    pages.sort_by(|left, right| left.path.cmp(&right.path));
    pages
}

/// The texts of all files below a folder with this extension, one after another.
pub fn texts(folder: &str, extension: &str) -> String {
    let mut all = String::new();
    let mut folders = vec![place::workspace().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                all += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    all
}

fn collect(root: &Path, folder: &Path, pages: &mut Vec<Page>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !SKIPPED.contains(&name.as_str()) {
            collect(root, &path, pages);
        } else if name.ends_with(".md") {
            pages.push(Page::read(path.strip_prefix(root).unwrap()));
        }
    }
}

impl Page {
    /// The page at a path relative to the root of the checkout.
    pub fn read(path: impl AsRef<Path>) -> Page {
        let path = path.as_ref().to_owned();
        let text = std::fs::read_to_string(place::workspace().join(&path))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Page { path, text }
    }

    /// The fenced blocks, in order.
    pub fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks: Vec<Block<'_>> = Vec::new();
        let mut is_inside = false;
        for (index, line) in self.text.lines().enumerate() {
            if let Some(language) = line.strip_prefix("```") {
                if !is_inside {
                    blocks.push(Block {
                        language: language.trim(),
                        line: index + 1,
                        code: String::new(),
                    });
                }
                is_inside = !is_inside;
            } else if is_inside && let Some(block) = blocks.last_mut() {
                block.code += line;
                block.code += "\n";
            }
        }
        assert!(!is_inside, "{}: a block has no end", self.path.display());
        blocks
    }

    /// The lines outside of blocks, with their numbers from 1.
    pub fn prose(&self) -> Vec<(usize, &str)> {
        let mut is_inside = false;
        let mut lines = Vec::new();
        for (index, line) in self.text.lines().enumerate() {
            if line.starts_with("```") {
                is_inside = !is_inside;
            } else if !is_inside {
                lines.push((index + 1, line));
            }
        }
        lines
    }
}
