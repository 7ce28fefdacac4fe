//! What the API server's refusals and failures mean, in words that are safe to write down.

use std::time::Duration;

use crate::connect::innermost;

/// A request to the API server that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The object is not as it was when the write was decided on, or it was made again.
    #[error("the object has changed meanwhile")]
    Conflict,
    /// Another manager owns the field, and we don't take it by force.
    #[error("another field manager owns it")]
    Owned,
    /// It is not there.
    #[error("not found")]
    NotFound,
    /// It is there already.
    #[error("it exists already")]
    Exists,
    /// An object that is none of ours has the name that one of ours needs, and stands in its way.
    #[error("{0} has the name under which its manifest would be kept, and is not restamp's")]
    NameTaken(String),
    /// We may not.
    #[error("forbidden by the API server: {0}")]
    Forbidden(String),
    /// The API server understood, and refused.
    #[error("refused by the API server: {0}")]
    Refused(String),
    /// The API server asks for patience, or is not well.
    #[error("the API server answered {code}: {message}")]
    Unavailable {
        /// The HTTP status.
        code: u16,
        /// What it says.
        message: String,
    },
    /// No answer within the deadline: the write may or may not have happened.
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It can't be reached.
    #[error("cannot reach the API server: {0}")]
    Unreachable(String),
    /// Its answer makes no sense to us. The text tells no content: that might be a value.
    #[error("cannot read the API server's answer, at {0}")]
    Unreadable(String),
}

impl ApiError {
    /// Whether the API server has certainly not done what it was asked for.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Conflict
            | Self::Owned
            | Self::NotFound
            | Self::Exists
            | Self::NameTaken(_)
            | Self::Forbidden(_)
            | Self::Refused(_) => true,
            Self::Unavailable { .. } | Self::TimedOut(_) | Self::Unreachable(_) | Self::Unreadable(_) => false,
        }
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::from(&*status),
            kube::Error::Discovery(_) => Self::NotFound,
            kube::Error::SerdeError(error) => Self::Unreadable(place(&error)),
            error => Self::Unreachable(innermost(&error)),
        }
    }
}

impl From<&kube::core::Status> for ApiError {
    fn from(status: &kube::core::Status) -> Self {
        let message = status.message.clone();
        let mut causes = status.details.iter().flat_map(|details| &details.causes);
        if causes.any(|cause| cause.reason == "FieldManagerConflict") {
            return Self::Owned;
        }
        match (status.code, status.reason.as_str()) {
            // An API server always says a code. This is an event of a watch that the client couldn't read.
            (0, _) => Self::Unreadable("an event of the watch".to_owned()),
            (409, "AlreadyExists") => Self::Exists,
            (409, _) => Self::Conflict,
            (404, _) => Self::NotFound,
            (401 | 403, _) => Self::Forbidden(message),
            (code @ (429 | 500..), _) => Self::Unavailable { code, message },
            (code, _) => Self::Refused(format!("{code} {message}")),
        }
    }
}

/// Where a JSON text did not fit; serde's own message would quote what stands there.
pub fn place(error: &serde_json::Error) -> String {
    format!("line {} column {}", error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_cannot_be_read_is_not_quoted() {
        let error = serde_json::from_str::<u8>("\"hunter2\"").unwrap_err();
        let text = ApiError::from(kube::Error::SerdeError(error)).to_string();
        assert_eq!(text, "cannot read the API server's answer, at line 1 column 9");
    }

    #[test]
    fn an_event_of_a_watch_that_cannot_be_read_is_no_refusal() {
        // What the client makes of a line that is no event that it knows.
        let status: kube::core::Status = serde_json::from_str("{\"type\": \"ADDED\", \"object\": 1}").unwrap();
        let error = ApiError::from(&status);
        assert!(!error.is_refusal());
        assert_eq!(error.to_string(), "cannot read the API server's answer, at an event of the watch");
    }
}
