//! What the errors of a watch mean.

use kube::runtime::watcher;

use crate::model::unread::WhyUnread;
use crate::operator::api_error::ApiError;

/// What a watch's error means.
pub enum Trouble {
    /// It happens in good health: a version that is too old, a connection at its end.
    Expected(String),
    /// A connection broke. That is all in a day's work, unless it breaks in the middle of a list.
    Broken(ApiError),
    /// Somebody may have to act.
    Real(ApiError),
}

/// Why a kind can't be read that is refused like this.
pub fn why_unread(cause: &ApiError) -> WhyUnread {
    match cause {
        ApiError::Forbidden(_) => WhyUnread::Forbidden,
        ApiError::NotFound => WhyUnread::NotInstalled,
        _ => WhyUnread::Failing,
    }
}

/// What this error means.
pub fn explain(error: watcher::Error) -> Trouble {
    let cause = match error {
        watcher::Error::WatchError(status) if status.code == 410 => return Trouble::Expected(status.message),
        watcher::Error::WatchError(status) => ApiError::from(&*status),
        watcher::Error::WatchFailed(cause) => match ApiError::from(cause) {
            broken @ ApiError::Unreachable(_) => return Trouble::Broken(broken),
            cause => cause,
        },
        watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause) => ApiError::from(cause),
        watcher::Error::NoResourceVersion => ApiError::Refused("the kind can't be watched".to_owned()),
    };
    Trouble::Real(cause)
}
