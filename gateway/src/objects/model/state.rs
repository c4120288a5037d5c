//! What this gateway does about object storage, for people and metrics.

/// A state; [`ObjectState::name`] is its label in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectState {
    /// Not configured.
    #[default]
    Off,
    /// The database's extension has no functions for it, or the database is away.
    Unsupported,
    /// The store is being opened.
    Opening,
    /// The store is open, and another gateway still has the claim. Segments are recalled.
    Waiting,
    /// Segments are offloaded, recalled and collected.
    Working,
    /// Another gateway has taken over.
    Fenced,
    /// The store is another database's: segments are recalled, and nothing is written.
    Foreign,
}

impl ObjectState {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Off,
        Self::Unsupported,
        Self::Opening,
        Self::Waiting,
        Self::Working,
        Self::Fenced,
        Self::Foreign,
    ];

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Unsupported => "unsupported",
            Self::Opening => "opening",
            Self::Waiting => "waiting",
            Self::Working => "working",
            Self::Fenced => "fenced",
            Self::Foreign => "foreign",
        }
    }

    /// What it means to an operator.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Off => "objects.url is not set",
            Self::Unsupported => {
                "the database does not answer, or its extension cannot offload segments"
            }
            Self::Opening => "the store is being opened",
            Self::Waiting => "the store is open; another gateway has yet to let go of the database",
            Self::Working => "segments are offloaded and recalled by this gateway",
            Self::Fenced => "another gateway has taken over; this one stands by",
            Self::Foreign => {
                "the store is another database's, or this standby's primary's: segments are only recalled"
            }
        }
    }
}
