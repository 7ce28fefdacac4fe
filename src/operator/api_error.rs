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
    /// Its namespace or its definition is being deleted, so nothing new gets in.
    #[error("its namespace, or its custom resource definition, is being deleted")]
    Terminating,
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
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
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
            | Self::Terminating
            | Self::NameTaken(_)
            | Self::Forbidden(_)
            | Self::Refused(_) => true,
            Self::Unavailable { .. } | Self::TimedOut(_) | Self::Unreachable(_) | Self::Unreadable(_) => false,
        }
    }
}

impl ApiError {
    /// How long the API server wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
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
        let is_caused_by = |reason| {
            let mut causes = status.details.iter().flat_map(|details| &details.causes);
            causes.any(|cause| cause.reason == reason)
        };
        if is_caused_by("FieldManagerConflict") {
            return Self::Owned;
        }
        // Of a definition the API server tells it in words alone.
        if is_caused_by("NamespaceTerminating") || message.ends_with("custom resource definition is terminating") {
            return Self::Terminating;
        }
        match (status.code, status.reason.as_str()) {
            // An API server always says a code. This is an event of a watch that the client couldn't read.
            (0, _) => Self::Unreadable("an event of the watch".to_owned()),
            (409, "AlreadyExists") => Self::Exists,
            (409, _) => Self::Conflict,
            (404, _) => Self::NotFound,
            (401 | 403, _) => Self::Forbidden(message),
            (code @ (429 | 500..), _) => {
                let seconds = status.details.as_ref().map(|details| details.retry_after_seconds);
                let retry_after =
                    seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into()));
                Self::Unavailable { code, message, retry_after }
            }
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
    fn what_is_being_deleted_is_no_lack_of_rights() {
        let forbidden = |message: &str, cause: &str| {
            let details = serde_json::json!({"causes": [{"reason": cause}]});
            let status =
                serde_json::json!({"code": 403, "reason": "Forbidden", "message": message, "details": details});
            ApiError::from(&serde_json::from_value::<kube::core::Status>(status).unwrap())
        };
        let gone = "is forbidden: create not allowed while custom resource definition is terminating";
        assert!(matches!(forbidden(gone, ""), ApiError::Terminating));
        assert!(matches!(forbidden("it is being terminated", "NamespaceTerminating"), ApiError::Terminating));
        assert!(matches!(forbidden("no", ""), ApiError::Forbidden(_)));
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
