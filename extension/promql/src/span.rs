//! A range of bytes of a query, by which errors and annotations name their place.

/// A range of bytes of the query's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Span {
    /// A range from its first byte to the byte after its last one.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// The range from the start of this one to the end of another.
    pub fn to(self, last: Span) -> Span {
        Span::new(self.start, last.end)
    }

    /// The line and column of the first byte, both from 1, as `line:column`.
    pub fn position(self, query: &str) -> String {
        if query.is_empty() {
            return "unknown position".to_owned();
        }
        if self.start > query.len() {
            return "invalid position".to_owned();
        }
        let before = &query.as_bytes()[..self.start];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let line_start = before.iter().rposition(|byte| *byte == b'\n');
        let column = match line_start {
            Some(newline) => self.start - newline,
            None => self.start + 1,
        };
        format!("{line}:{column}")
    }
}

#[cfg(test)]
mod tests {
    use super::Span;

    #[test]
    fn positions_count_lines_and_columns_from_one() {
        assert_eq!(Span::new(0, 1).position("up"), "1:1");
        assert_eq!(Span::new(4, 5).position("a +\nb"), "2:1");
        assert_eq!(Span::new(0, 0).position(""), "unknown position");
    }
}
