//! The message of a label, with which tests decode answers of both types (`SAMPLES` and `STREAMED_XOR_CHUNKS`).

/// A label of a series.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Label {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub value: String,
}
