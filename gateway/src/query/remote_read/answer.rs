//! A request answered, in the type that it accepts.

use bytes::Bytes;
use prometheus::IntCounter;

use super::super::answer::Answer;
use super::super::failure::Failure;
use super::super::routes::Served;
use super::super::running::Rows;
use super::super::sessions::Statement;
use super::frames::FramesWriter;
use super::request::{ReadQuery, ReadRequest, ResponseType};
use super::samples::{SampleLimits, SamplesWriter};
use super::series::{Series, SeriesRow};
use super::statement::{self, Parameters};
use crate::model::Reservation;
use crate::receive::decompress::{self, Decompressor};

/// The media type of an answer of type `SAMPLES`, which is compressed by snappy.
pub const SAMPLES_TYPE: &str = "application/x-protobuf";
/// The media type of an answer of type `STREAMED_XOR_CHUNKS`.
pub const FRAMES_TYPE: &str =
    "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";

/// The maximum length of a request after decompression.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// The bytes of frames from which on they are passed on.
const PIECE_BYTES: usize = 64 << 10;

/// Returns the length of a request after decompression, before memory is taken for it.
///
/// # Errors
/// Returns a failure if the bytes are not compressed by snappy, or the length is over the limit.
pub fn declared_bytes(body: &[u8]) -> Result<usize, Failure> {
    match decompress::declared_bytes(body, usize::MAX) {
        Ok(bytes) if bytes > REQUEST_BYTES_MAX => Err(Failure::bad_data(format!(
            "body declares {bytes} bytes after decompression, but only {REQUEST_BYTES_MAX} are allowed"
        ))),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(Failure::bad_data(error.to_string())),
    }
}

/// Reads a compressed request.
///
/// # Errors
/// Returns a failure with the reason if the bytes are no acceptable request.
pub fn request(body: &[u8]) -> Result<ReadRequest, Failure> {
    declared_bytes(body)?;
    let mut decompressor = Decompressor::default();
    let bytes = decompressor.decompress(body, REQUEST_BYTES_MAX);
    let bytes = bytes.map_err(|error| Failure::bad_data(error.to_string()))?;
    ReadRequest::decode(bytes).map_err(|error| Failure::bad_data(error.to_string()))
}

/// Answers a request.
///
/// # Errors
/// Returns a failure if the samples cannot be read, or are too many for the type of the answer.
pub async fn answer(
    served: &Served<'_>,
    request: ReadRequest,
    limits: &SampleLimits,
) -> Result<Answer, Failure> {
    let queries = request.queries.len();
    let rows = SampleRows {
        rows: rows(served, request.queries).await?,
        samples: served.metrics.samples_read.clone(),
    };
    match request.response_type {
        ResponseType::Samples => {
            let writer = SamplesWriter::new(limits.clone());
            collect(rows, writer, queries).await.map(Answer::Packed)
        }
        ResponseType::StreamedXorChunks => Ok(Answer::Frames(Frames {
            rows: Some(rows),
            series: Series::new(FramesWriter::default()),
        })),
    }
}

/// Runs the statement; `None` if no query can have samples.
async fn rows(served: &Served<'_>, queries: Vec<ReadQuery>) -> Result<Option<Rows>, Failure> {
    let parameters = Parameters::of(queries);
    let Some((first, until)) = parameters.bounds() else {
        return Ok(None);
    };
    let rows = served.sessions.run(Statement {
        sql: statement::SAMPLES,
        parameters: vec![
            Box::new(parameters.places),
            Box::new(parameters.selectors),
            Box::new(parameters.firsts),
            Box::new(parameters.untils),
            Box::new(first),
            Box::new(until),
        ],
        timeout: served.settings.timeout,
    });
    rows.await.map(Some)
}

/// The rows of the statement, whose samples are counted.
struct SampleRows {
    /// `None` if no query can have samples.
    rows: Option<Rows>,
    samples: IntCounter,
}

impl SampleRows {
    /// Returns the next row; `None` at the end.
    async fn next(&mut self) -> Result<Option<SeriesRow>, Failure> {
        let Some(rows) = &mut self.rows else {
            return Ok(None);
        };
        let Some(row) = rows.next().await? else {
            return Ok(None);
        };
        let row = statement::series_row(&row)?;
        if matches!(row, SeriesRow::Sample(_)) {
            self.samples.inc();
        }
        Ok(Some(row))
    }
}

async fn collect(
    mut rows: SampleRows,
    writer: SamplesWriter,
    queries: usize,
) -> Result<Packed, Failure> {
    let mut series = Series::new(writer);
    while let Some(row) = rows.next().await? {
        series.row(row)?;
    }
    series.end()?;
    let (pieces, memory) = series.writer.finish(queries)?;
    Ok(Packed {
        pieces: pieces.into_iter(),
        _memory: memory,
    })
}

/// An answer of type `SAMPLES`, which is complete.
pub struct Packed {
    pieces: std::vec::IntoIter<Bytes>,
    /// Held until the last piece is sent.
    _memory: Reservation,
}

impl Packed {
    /// Returns the next piece; `None` at the end.
    pub fn next_piece(&mut self) -> Option<Bytes> {
        self.pieces.next()
    }
}

/// An answer of type `STREAMED_XOR_CHUNKS`, made of its rows as they arrive.
pub struct Frames {
    /// `None` once the rows have ended.
    rows: Option<SampleRows>,
    series: Series<FramesWriter>,
}

impl Frames {
    /// Returns the next frames; `None` at the end.
    ///
    /// # Errors
    /// Returns the error that ended the statement.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while let Some(rows) = &mut self.rows
            && self.series.writer.bytes() < PIECE_BYTES
        {
            match rows.next().await? {
                Some(row) => self.series.row(row)?,
                None => {
                    self.series.end()?;
                    self.rows = None;
                }
            }
        }
        let frames = self.series.writer.take();
        Ok((!frames.is_empty()).then(|| frames.into()))
    }
}
