//! Tests of texts that do without a call of PostgreSQL's function for most of them.

use memchr::memmem::Finder;

use super::text::{Item, TextTest};
use crate::interrupt;

/// Whether a text contains another one, byte by byte.
pub struct Contains(Finder<'static>);

impl Contains {
    /// A test for a text.
    pub fn new(wanted: &[u8]) -> Contains {
        Contains(Finder::new(wanted).into_owned())
    }

    /// The text that a pattern of `LIKE` asks for, if it asks for nothing else: `%text%`.
    pub fn wanted(pattern: &[u8]) -> Option<&[u8]> {
        let inner = pattern.strip_prefix(b"%")?;
        let inner = match inner {
            [] => inner,
            _ => inner.strip_suffix(b"%")?,
        };
        let is_plain = !inner.iter().any(|byte| b"%_\\".contains(byte));
        is_plain.then_some(inner)
    }
}

impl TextTest for Contains {
    fn holds(&mut self, item: Item<'_>) -> bool {
        self.0.find(item.payload()).is_some()
    }

    fn hold(&mut self, items: &[Item<'_>], found: &mut [bool]) {
        interrupt::check();
        for (item, found) in items.iter().zip(found) {
            *found = self.holds(*item);
        }
    }
}

/// A test that ignores case: texts of ASCII characters alone are tested in lower case, all others as they are.
pub struct LowerAscii {
    /// The test of lower-case texts.
    lowered: Box<dyn TextTest>,
    /// The test of texts with other characters.
    others: Box<dyn TextTest>,
    /// Lower-case texts as items, one after another.
    heap: Vec<u8>,
    starts: Vec<usize>,
    /// The places of the texts of either test.
    places: [Vec<usize>; 2],
    found: Vec<bool>,
}

/// The longest text with a header of one byte.
const SHORT_TEXT_MAX: usize = 126;
/// Where an item with a header of four bytes may begin.
const ITEM_ALIGN: usize = 4;

impl LowerAscii {
    /// The two tests have the same result for every text of ASCII characters.
    pub fn new(lowered: Box<dyn TextTest>, others: Box<dyn TextTest>) -> LowerAscii {
        LowerAscii {
            lowered,
            others,
            heap: Vec::new(),
            starts: Vec::new(),
            places: Default::default(),
            found: Vec::new(),
        }
    }

    /// Adds a text in lower case to the heap.
    fn push(&mut self, text: &[u8]) {
        if text.len() > SHORT_TEXT_MAX {
            let start = self.heap.len().next_multiple_of(ITEM_ALIGN);
            self.heap.resize(start, 0);
            let header = (text.len() as u32 + 4) << 2;
            self.starts.push(start);
            self.heap.extend_from_slice(&header.to_le_bytes());
        } else {
            self.starts.push(self.heap.len());
            self.heap.push((text.len() as u8 + 1) << 1 | 1);
        }
        let lower = text.iter().map(u8::to_ascii_lowercase);
        self.heap.extend(lower);
    }
}

impl TextTest for LowerAscii {
    fn holds(&mut self, item: Item<'_>) -> bool {
        let mut found = [false];
        self.hold(&[item], &mut found);
        found[0]
    }

    fn hold(&mut self, items: &[Item<'_>], found: &mut [bool]) {
        self.heap.clear();
        self.starts.clear();
        self.places.iter_mut().for_each(Vec::clear);
        for (place, item) in items.iter().enumerate() {
            let text = item.payload();
            let is_ascii = text.is_ascii();
            if is_ascii {
                self.push(text);
            }
            self.places[usize::from(!is_ascii)].push(place);
        }
        let mut asked = Vec::with_capacity(items.len());
        for (kind, places) in self.places.iter().enumerate() {
            if places.is_empty() {
                continue;
            }
            asked.clear();
            match kind {
                0 => {
                    let starts = self.starts.iter();
                    asked.extend(starts.map(|start| Item::first_of(&self.heap[*start..])));
                }
                _ => asked.extend(places.iter().map(|place| items[*place])),
            }
            self.found.clear();
            self.found.resize(places.len(), false);
            let test = match kind {
                0 => &mut self.lowered,
                _ => &mut self.others,
            };
            test.hold(&asked, &mut self.found);
            for (place, result) in places.iter().zip(&self.found) {
                found[*place] = *result;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_text_between_percent_signs_is_searched_for() {
        let wanted = |pattern: &str| {
            let wanted = Contains::wanted(pattern.as_bytes());
            wanted.map(|wanted| String::from_utf8(wanted.to_vec()).unwrap())
        };
        assert_eq!(wanted("%abc%").as_deref(), Some("abc"));
        assert_eq!(wanted("%Ä b%").as_deref(), Some("Ä b"));
        assert_eq!(wanted("%%").as_deref(), Some(""));
        assert_eq!(wanted("%").as_deref(), Some(""));
        for pattern in [
            "", "abc", "%abc", "abc%", "%a_c%", "%a%c%", "%a\\%", "%a\\c%", "%%a%%",
        ] {
            assert_eq!(wanted(pattern), None, "{pattern}");
        }
    }

    /// Notes what it is asked for, and holds for texts that contain an `x`.
    struct Noting(std::rc::Rc<std::cell::RefCell<Vec<String>>>);

    impl TextTest for Noting {
        fn holds(&mut self, item: Item<'_>) -> bool {
            let text = String::from_utf8(item.payload().to_vec()).unwrap();
            let found = text.contains('x');
            self.0.borrow_mut().push(text);
            found
        }
    }

    #[test]
    fn ascii_texts_are_tested_in_lower_case_and_others_as_they_are() {
        let (lowered, others): (std::rc::Rc<_>, std::rc::Rc<_>) = Default::default();
        let mut test = LowerAscii::new(
            Box::new(Noting(std::rc::Rc::clone(&lowered))),
            Box::new(Noting(std::rc::Rc::clone(&others))),
        );
        let long = "LONG X ".repeat(40);
        let texts = [
            "",
            "aXb",
            "ÄX",
            "Äx",
            &long,
            "@[`{Z",
            &"y".repeat(126),
            &"Y".repeat(127),
        ];
        let items: Vec<Vec<u8>> = texts.iter().map(|text| item(text.as_bytes())).collect();
        let items: Vec<Item<'_>> = items.iter().map(|item| Item::first_of(item)).collect();
        let mut found = vec![false; texts.len()];
        for _ in 0..2 {
            lowered.borrow_mut().clear();
            test.hold(&items, &mut found);
            assert_eq!(found, [false, true, false, true, true, false, false, false]);
            let expected = texts.iter().filter(|text| text.is_ascii());
            let expected: Vec<String> = expected.map(|text| text.to_ascii_lowercase()).collect();
            assert_eq!(*lowered.borrow(), expected);
        }
        assert_eq!(*others.borrow(), ["ÄX", "Äx", "ÄX", "Äx"]);
    }

    fn item(text: &[u8]) -> Vec<u8> {
        let mut item = ((text.len() as u32 + 4) << 2).to_le_bytes().to_vec();
        item.extend_from_slice(text);
        item
    }

    #[test]
    #[should_panic(expected = "an item is cut off")]
    fn an_item_that_is_cut_off_is_refused() {
        Item::first_of(&item(b"abc")[..6]);
    }

    #[test]
    fn a_text_is_found_wherever_it_stands() {
        let mut test = Contains::new("äb".as_bytes());
        let texts = ["äb", "xäb", "äbx", "ä b", "", "b"];
        let items: Vec<Vec<u8>> = texts.iter().map(|text| item(text.as_bytes())).collect();
        let items: Vec<Item<'_>> = items.iter().map(|item| Item::first_of(item)).collect();
        let mut found = vec![false; texts.len()];
        test.hold(&items, &mut found);
        assert_eq!(found, [true, true, true, false, false, false]);
    }
}
