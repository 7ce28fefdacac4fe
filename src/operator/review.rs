//! Whether who asks for metrics may get them: the API server is asked who it is (TokenReview), and whether it may `get` the
//! path (SubjectAccessReview), as kube-rbac-proxy does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::api::PostParams;
use kube::{Api, Client};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::operator::api_error::ApiError;
use crate::operator::client::in_time;

/// How long an answer counts: who loses the right goes on for so long.
const ALLOWED_FOR: Duration = Duration::from_secs(60);
/// Who gets the right waits for so long.
const DENIED_FOR: Duration = Duration::from_secs(10);
/// As many answers are kept at most.
const MOST_KEPT: usize = 1024;
/// As many questions are asked at once: whoever sends bad tokens must not flood the API server.
const LANES: usize = 4;

/// What the API server said of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allowed,
    /// It is known, and may not.
    Forbidden,
    /// It is nobody's.
    Unknown,
}

/// Asks, and keeps the answers for a short while.
#[derive(Clone)]
pub struct Reviewer {
    client: Client,
    lanes: Arc<Semaphore>,
    kept: Arc<Mutex<Kept>>,
}

/// The answers by the hash of the token and the path; no token is kept.
#[derive(Default)]
struct Kept(HashMap<[u8; 32], (Verdict, Instant)>);

impl Kept {
    fn get(&self, question: &[u8; 32], now: Instant) -> Option<Verdict> {
        self.0.get(question).filter(|(_, until)| now < *until).map(|(verdict, _)| *verdict)
    }

    fn keep(&mut self, question: [u8; 32], verdict: Verdict, now: Instant) {
        if self.0.len() >= MOST_KEPT {
            self.0.retain(|_, (_, until)| now < *until);
        }
        if self.0.len() >= MOST_KEPT {
            self.0.clear();
        }
        let lasts = if verdict == Verdict::Allowed { ALLOWED_FOR } else { DENIED_FOR };
        self.0.insert(question, (verdict, now + lasts));
    }
}

impl Reviewer {
    /// One that asks through this client.
    pub fn new(client: Client) -> Self {
        Self { client, lanes: Arc::new(Semaphore::new(LANES)), kept: Arc::default() }
    }

    async fn review(&self, token: &str, path: &str) -> Result<Verdict, ApiError> {
        let question = Sha256::new().chain_update(token).chain_update([0]).chain_update(path).finalize().into();
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verdict) = kept().get(&question, Instant::now()) {
            return Ok(verdict);
        }
        // The semaphore is never closed.
        let _lane = self.lanes.acquire().await.ok();
        let verdict = match self.user(token).await? {
            Some(user) => self.verdict_on(user, path).await?,
            None => Verdict::Unknown,
        };
        kept().keep(question, verdict, Instant::now());
        Ok(verdict)
    }

    /// Whose token it is.
    async fn user(&self, token: &str) -> Result<Option<UserInfo>, ApiError> {
        let spec = TokenReviewSpec { token: token.to_owned(), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let answer = in_time(reviews.create(&PostParams::default(), &review)).await?;
        let status = answer.status.unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)))
    }

    /// Whether this user may `get` the path.
    async fn verdict_on(&self, user: UserInfo, path: &str) -> Result<Verdict, ApiError> {
        let asked = NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) };
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            non_resource_attributes: Some(asked),
            resource_attributes: None,
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = in_time(reviews.create(&PostParams::default(), &review)).await?;
        Ok(match answer.status {
            Some(SubjectAccessReviewStatus { allowed: true, denied: None | Some(false), .. }) => Verdict::Allowed,
            _ => Verdict::Forbidden,
        })
    }
}

/// Lets through who may get the page.
pub async fn admit(State(reviewer): State<Reviewer>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let Some(token) = bearer(request.headers()) else { return who_are_you() };
    match reviewer.review(token, &path).await {
        Ok(Verdict::Allowed) => next.run(request).await,
        Ok(Verdict::Forbidden) => {
            (StatusCode::FORBIDDEN, format!("grant get on the nonResourceURL {path}\n")).into_response()
        }
        Ok(Verdict::Unknown) => who_are_you(),
        Err(ApiError::Forbidden(why)) => {
            warn!(why, "cannot review who asks for metrics; grant create on tokenreviews and subjectaccessreviews");
            unavailable()
        }
        Err(error) => {
            debug!(%error, "cannot review who asks for metrics");
            unavailable()
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

fn who_are_you() -> Response {
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], "send a token of the cluster\n").into_response()
}

fn unavailable() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the API server was asked, and did not answer who this is\n").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::a_token(Some("Bearer abc"), Some("abc"))]
    #[case::in_any_case(Some("bearer abc"), Some("abc"))]
    #[case::none(None, None)]
    #[case::an_empty_one(Some("Bearer "), None)]
    #[case::a_password(Some("Basic abc"), None)]
    fn a_token_stands_behind_its_scheme(#[case] header: Option<&str>, #[case] expected: Option<&str>) {
        let headers = header.map(|text| (AUTHORIZATION, text.parse().unwrap())).into_iter().collect();
        assert_eq!(bearer(&headers), expected);
    }

    #[test]
    fn an_answer_counts_for_a_short_while_and_a_refusal_for_a_shorter_one() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        kept.keep([1; 32], Verdict::Allowed, now);
        kept.keep([2; 32], Verdict::Forbidden, now);
        let at = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(kept.get(&[1; 32], at(59)), Some(Verdict::Allowed));
        assert_eq!(kept.get(&[1; 32], at(60)), None);
        assert_eq!(kept.get(&[2; 32], at(9)), Some(Verdict::Forbidden));
        assert_eq!(kept.get(&[2; 32], at(10)), None);
        assert_eq!(kept.get(&[3; 32], now), None);
    }

    #[test]
    fn no_flood_of_tokens_takes_more_room() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        for number in 0..=u16::try_from(MOST_KEPT).unwrap() {
            let mut question = [0; 32];
            question[..2].copy_from_slice(&number.to_be_bytes());
            kept.keep(question, Verdict::Unknown, now);
        }
        assert!(kept.0.len() <= MOST_KEPT);
    }
}
