//! The messages of a stream, checked before the library reads them.
//!
//! | bytes | meaning |
//! |---|---|
//! | 4 | `FF FF FF FF`; streams older than Arrow 0.15 lack it |
//! | 4 | length of the metadata, `i32`; 0 ends the stream |
//! | that many | metadata: the FlatBuffers table `Message`, padded |
//! | `bodyLength` | buffers of a record batch |

use arrow_ipc::{
    CompressionType, DictionaryBatch, Endianness, Message, MessageHeader, RecordBatch,
    root_as_message,
};

use crate::events::format::Malformed;

const CONTINUATION: [u8; 4] = [0xff; 4];
/// The start of a file in the Arrow file format, which is not the stream format.
const FILE_MAGIC: &[u8] = b"ARROW1";

/// Checks every message. It must lie within the body; its buffers must lie within it and together
/// be no longer than it. Record batches must have at most `rows_max` rows together, and all their
/// columns the same length. Nothing may be compressed, and nothing may follow the end.
pub(super) fn check(body: &[u8], rows_max: usize) -> Result<(), Malformed> {
    if body.starts_with(FILE_MAGIC) {
        return Err(Malformed::Stream {
            problem: "it is an Arrow file; send the stream format".to_owned(),
        });
    }
    let mut rest = body;
    let mut message = 0;
    let mut rows = 0;
    while !rest.is_empty() {
        message += 1;
        let broken = |problem: String| Malformed::Message { message, problem };
        let mut length = take::<4>(&mut rest).map_err(broken)?;
        if length == CONTINUATION {
            length = take::<4>(&mut rest).map_err(broken)?;
        }
        let length = i32::from_le_bytes(length);
        if length == 0 {
            if rest.is_empty() {
                break;
            }
            let problem = format!("{} bytes follow the end of the stream", rest.len());
            return Err(broken(problem));
        }
        let metadata = part(&mut rest, i64::from(length), "metadata").map_err(broken)?;
        let header = root_as_message(metadata)
            .map_err(|error| broken(format!("metadata: {error}").replace('\n', " ")))?;
        let content = part(&mut rest, header.bodyLength(), "body").map_err(broken)?;
        rows += check_message(&header, content, message)?;
        if rows > rows_max {
            return Err(Malformed::TooManyRows { rows_max });
        }
    }
    match message {
        0 => Err(Malformed::Stream {
            problem: "it is empty".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Checks one message. Returns the number of rows that it adds.
fn check_message(header: &Message<'_>, content: &[u8], message: usize) -> Result<usize, Malformed> {
    let broken = |problem: String| Malformed::Message { message, problem };
    match header.header_type() {
        MessageHeader::Schema if message == 1 => {
            let schema = header
                .header_as_schema()
                .ok_or_else(|| broken("no schema".to_owned()))?;
            if schema.endianness() != Endianness::Little {
                return Err(broken("values are big-endian".to_owned()));
            }
            Ok(0)
        }
        _ if message == 1 => Err(broken("the first message is not a schema".to_owned())),
        MessageHeader::RecordBatch => {
            let batch = header
                .header_as_record_batch()
                .ok_or_else(|| broken("the record batch is missing".to_owned()))?;
            check_batch(&batch, content, message)
        }
        MessageHeader::DictionaryBatch => {
            let dictionary = header
                .header_as_dictionary_batch()
                .ok_or_else(|| broken("the dictionary batch is missing".to_owned()))?;
            check_dictionary(&dictionary, content, message)?;
            Ok(0)
        }
        other => {
            let name = other.variant_name().unwrap_or("unknown");
            Err(broken(format!("unexpected message of type {name}")))
        }
    }
}

fn check_dictionary(
    dictionary: &DictionaryBatch<'_>,
    content: &[u8],
    message: usize,
) -> Result<(), Malformed> {
    let broken = |problem: String| Malformed::Message { message, problem };
    // Each delta would copy the dictionary so far.
    if dictionary.isDelta() {
        return Err(broken(
            "delta dictionaries are not supported; send the whole dictionary".to_owned(),
        ));
    }
    let batch = dictionary
        .data()
        .ok_or_else(|| broken("no dictionary".to_owned()))?;
    let items = check_batch(&batch, content, message)?;
    // Each item has an offset or a view.
    if items > content.len() {
        return Err(broken(format!("{items} items in {} bytes", content.len())));
    }
    Ok(())
}

/// Checks a record batch and returns the number of its rows.
fn check_batch(
    batch: &RecordBatch<'_>,
    content: &[u8],
    message: usize,
) -> Result<usize, Malformed> {
    let broken = |problem: String| Malformed::Message { message, problem };
    if let Some(compression) = batch.compression() {
        let codec = match compression.codec() {
            CompressionType::LZ4_FRAME => "lz4",
            CompressionType::ZSTD => "zstd",
            _ => "unknown codec",
        };
        return Err(Malformed::Compressed { message, codec });
    }
    let rows =
        usize::try_from(batch.length()).map_err(|_| broken(format!("{} rows", batch.length())))?;
    for node in batch.nodes().iter().flatten() {
        if node.length() != batch.length() {
            let problem = format!("a column has {} rows instead of {rows}", node.length());
            return Err(broken(problem));
        }
        if !(0..=node.length()).contains(&node.null_count()) {
            let problem = format!("a column has {} NULLs in {rows} rows", node.null_count());
            return Err(broken(problem));
        }
    }
    let mut bytes_left = content.len() as i64;
    for buffer in batch.buffers().iter().flatten() {
        let (offset, length) = (buffer.offset(), buffer.length());
        let is_inside = offset >= 0
            && length >= 0
            && offset
                .checked_add(length)
                .is_some_and(|end| end <= content.len() as i64);
        if !is_inside {
            let problem = format!(
                "a buffer of {length} bytes at {offset} exceeds the body of {} bytes",
                content.len()
            );
            return Err(broken(problem));
        }
        // With shared buffers, a short body could contain a large batch.
        bytes_left -= length;
        if bytes_left < 0 {
            return Err(broken(
                "buffers overlap: together they are longer than the body".to_owned(),
            ));
        }
    }
    Ok(rows)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], String> {
    match rest.split_first_chunk() {
        Some((taken, after)) => {
            *rest = after;
            Ok(*taken)
        }
        None => Err(format!("truncated: {} bytes are left", rest.len())),
    }
}

fn part<'b>(rest: &mut &'b [u8], length: i64, noun: &str) -> Result<&'b [u8], String> {
    let taken = usize::try_from(length)
        .ok()
        .and_then(|length| rest.split_at_checked(length));
    match taken {
        Some((taken, after)) => {
            *rest = after;
            Ok(taken)
        }
        None => Err(format!(
            "{noun} of {length} bytes, but {} are left",
            rest.len()
        )),
    }
}
