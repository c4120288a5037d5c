//! Rows as series: empty ones are left out, and of several samples in one millisecond one is left.

use lanes_promql::sample::precedence;

use super::super::failure::Failure;
use crate::series::protobuf::put_delimited;

/// The field of labels in both kinds of answers, and the fields of a label.
const LABEL: u32 = 1;
const LABEL_NAME: u32 = 1;
const LABEL_VALUE: u32 = 2;

/// The head of a series.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeriesHead {
    /// The place of the query in the request.
    pub query: usize,
    /// The labels, as fields of a series in protobuf.
    pub labels: Vec<u8>,
}

impl SeriesHead {
    /// Returns the head of a series. The labels are names and values in turn.
    pub fn new(query: usize, names_and_values: &[&str]) -> Self {
        let mut labels = Vec::new();
        let mut label = Vec::new();
        for pair in names_and_values.chunks_exact(2) {
            label.clear();
            put_delimited(&mut label, LABEL_NAME, pair[0].as_bytes());
            put_delimited(&mut label, LABEL_VALUE, pair[1].as_bytes());
            put_delimited(&mut labels, LABEL, &label);
        }
        Self { query, labels }
    }
}

/// A sample.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Milliseconds since 1970.
    pub time: i64,
    /// The value.
    pub value: f64,
}

/// A row of the statement.
#[derive(Debug)]
pub enum SeriesRow {
    /// The head of a series. The samples after it belong to it.
    Head(SeriesHead),
    /// A sample.
    Sample(Sample),
}

/// A writer of series, each of which has at least one sample.
pub trait SeriesWriter {
    /// Begins a series. The places of queries do not descend.
    ///
    /// # Errors
    /// Returns a failure if the answer becomes too long.
    fn begin(&mut self, head: SeriesHead) -> Result<(), Failure>;

    /// Writes a sample. The times of a series ascend.
    ///
    /// # Errors
    /// Returns a failure if the answer becomes too long.
    fn sample(&mut self, sample: Sample) -> Result<(), Failure>;

    /// Ends a series.
    ///
    /// # Errors
    /// Returns a failure if the answer becomes too long.
    fn end(&mut self) -> Result<(), Failure>;
}

/// Passes rows on to a writer.
#[derive(Debug)]
pub struct Series<W> {
    /// The writer.
    pub writer: W,
    /// The head of a series without samples so far.
    head: Option<SeriesHead>,
    /// The last sample, until a later one shows that no other has its time.
    held: Option<Sample>,
}

impl<W: SeriesWriter> Series<W> {
    /// Passes rows on to a writer.
    pub fn new(writer: W) -> Self {
        Self {
            writer,
            head: None,
            held: None,
        }
    }

    /// Passes a row on.
    ///
    /// # Errors
    /// Returns the failure of the writer.
    pub fn row(&mut self, row: SeriesRow) -> Result<(), Failure> {
        match row {
            SeriesRow::Head(head) => {
                self.end()?;
                self.head = Some(head);
                Ok(())
            }
            SeriesRow::Sample(sample) => self.sample(sample),
        }
    }

    /// Ends the last series.
    ///
    /// # Errors
    /// Returns the failure of the writer.
    pub fn end(&mut self) -> Result<(), Failure> {
        self.head = None;
        match self.held.take() {
            Some(last) => {
                self.writer.sample(last)?;
                self.writer.end()
            }
            None => Ok(()),
        }
    }

    fn sample(&mut self, sample: Sample) -> Result<(), Failure> {
        if let Some(head) = self.head.take() {
            self.writer.begin(head)?;
        }
        match &mut self.held {
            Some(held) if held.time == sample.time => {
                if precedence(sample.value, held.value).is_gt() {
                    *held = sample;
                }
                Ok(())
            }
            Some(held) => {
                let before = std::mem::replace(held, sample);
                self.writer.sample(before)
            }
            None => {
                self.held = Some(sample);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes what it is told as text.
    #[derive(Default)]
    struct Text(String);

    impl SeriesWriter for Text {
        fn begin(&mut self, head: SeriesHead) -> Result<(), Failure> {
            self.0 += &format!("{}:{}[", head.query, head.labels.len());
            Ok(())
        }

        fn sample(&mut self, sample: Sample) -> Result<(), Failure> {
            self.0 += &format!(" {}={}", sample.time, sample.value);
            Ok(())
        }

        fn end(&mut self) -> Result<(), Failure> {
            self.0 += " ]";
            Ok(())
        }
    }

    fn text(rows: Vec<SeriesRow>) -> String {
        let mut series = Series::new(Text::default());
        rows.into_iter().for_each(|row| series.row(row).unwrap());
        series.end().unwrap();
        series.writer.0
    }

    fn head(query: usize) -> SeriesRow {
        SeriesRow::Head(SeriesHead::new(query, &["a", "b"]))
    }

    fn sample(time: i64, value: f64) -> SeriesRow {
        SeriesRow::Sample(Sample { time, value })
    }

    #[test]
    fn series_without_samples_are_left_out() {
        assert_eq!(text(Vec::new()), "");
        assert_eq!(text(vec![head(0), head(1)]), "");
        let rows = vec![
            head(0),
            head(0),
            sample(1, 2.0),
            head(1),
            sample(3, 4.0),
            head(1),
        ];
        assert_eq!(text(rows), "0:8[ 1=2 ]1:8[ 3=4 ]");
    }

    #[test]
    fn one_sample_of_each_millisecond_is_left() {
        let rows = vec![
            head(0),
            sample(1, 1.0),
            sample(1, 3.0),
            sample(1, 2.0),
            sample(2, 4.0),
            sample(2, f64::NAN),
            sample(3, f64::NAN),
            sample(3, -1.0),
        ];
        assert_eq!(text(rows), "0:8[ 1=3 2=4 3=-1 ]");
    }

    #[test]
    fn labels_are_messages() {
        let head = SeriesHead::new(0, &["__name__", "up", "a", ""]);
        assert_eq!(
            head.labels,
            b"\x0a\x0e\x0a\x08__name__\x12\x02up\x0a\x05\x0a\x01a\x12\x00"
        );
    }
}
