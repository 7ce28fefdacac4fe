//! A proxy between an operator and its API server, that does what networks and API servers do on a bad day.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use futures::StreamExt as _;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

use super::cluster::Cluster;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Nothing,
    /// Connections break at random, in the middle of whatever is on them.
    Cut,
    /// Every answer comes so late.
    Delay(Duration),
    /// One answer in ten is an error, sometimes of a request that was carried out.
    Errors,
    /// Nothing comes, not a byte.
    Hang,
    /// Whatever is about this kind, by its plural, is forbidden.
    Forbid(&'static str),
}

/// A running proxy. It ends when it is dropped.
pub struct Proxy {
    state: Arc<State>,
    kubeconfig: PathBuf,
    _stop: oneshot::Sender<Infallible>,
}

struct State {
    fault: watch::Sender<Fault>,
    connections: Mutex<Vec<AbortHandle>>,
    dice: Mutex<fastrand::Rng>,
}

type Body = UnsyncBoxBody<Bytes, Error>;
type Error = Box<dyn std::error::Error + Send + Sync>;

impl Proxy {
    /// One that asks the API server as this ServiceAccount of the operator's namespace.
    pub fn start(cluster: &Cluster, account: &str, seed: u64) -> Self {
        let upstream = cluster.kubeconfig_of(account);
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let kubeconfig = cluster.dir().join(format!("proxy-{}.kubeconfig", address.port()));
        std::fs::write(&kubeconfig, kubeconfig_for(address)).unwrap();
        let state = Arc::new(State {
            fault: watch::Sender::new(Fault::Nothing),
            connections: Mutex::default(),
            dice: Mutex::new(fastrand::Rng::with_seed(seed)),
        });
        let (stop, stopped) = oneshot::channel();
        let serving = state.clone();
        // A thread of its own: the tests block theirs while kubectl runs.
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, &upstream, serving.clone()) => {}
                    () = cut(serving) => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        });
        Self { state, kubeconfig, _stop: stop }
    }

    /// For the operator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// From now on this goes wrong, and nothing else.
    pub fn fail(&self, fault: Fault) {
        let before = self.state.fault.send_replace(fault);
        if before == Fault::Hang {
            // What hung is reset, and nothing that was kept back comes through.
            self.state.connections.lock().unwrap().drain(..).for_each(|connection| connection.abort());
        }
    }
}

fn kubeconfig_for(address: SocketAddr) -> String {
    let cluster = json!({"name": "c", "cluster": {"server": format!("http://{address}")}});
    let context = json!({"name": "c", "context": {"cluster": "c", "user": "u"}});
    let users = json!([{"name": "u", "user": {}}]);
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [cluster], "contexts": [context],
        "users": users,
    })
    .to_string()
}

async fn serve(listener: std::net::TcpListener, upstream: &Path, state: Arc<State>) {
    let kubeconfig = Kubeconfig::read_from(upstream).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (client, answering) = (client.clone(), state.clone());
        let service = service_fn(move |request| answer(client.clone(), answering.clone(), request));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // Whoever ends a connection has no reason to tell.
        let connection = tokio::spawn(async { drop(connection.await) });
        let mut connections = state.connections.lock().unwrap();
        connections.retain(|connection| !connection.is_finished());
        connections.push(connection.abort_handle());
    }
}

async fn cut(state: Arc<State>) {
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut connections = state.connections.lock().unwrap();
        connections.retain(|connection| !connection.is_finished());
        if *state.fault.borrow() == Fault::Cut && !connections.is_empty() {
            let chosen = state.dice.lock().unwrap().usize(..connections.len());
            connections.swap_remove(chosen).abort();
        }
    }
}

async fn answer(client: Client, state: Arc<State>, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    let fault = *state.fault.borrow();
    let path = request.uri().path().to_owned();
    match fault {
        Fault::Hang => {
            state.until_bytes_flow().await;
            return Err("it hung".into());
        }
        Fault::Forbid(plural) if path.split('/').any(|segment| segment == plural) => {
            return Ok(refusal(StatusCode::FORBIDDEN, "Forbidden"));
        }
        Fault::Errors => {
            if let Some((code, reason)) = state.error(request.method()) {
                // One that breaks down has perhaps done what it was asked for.
                if code == StatusCode::INTERNAL_SERVER_ERROR && state.dice.lock().unwrap().bool() {
                    pass(&client, &state, request).await?;
                }
                return Ok(refusal(code, reason));
            }
        }
        Fault::Nothing | Fault::Cut | Fault::Delay(_) | Fault::Forbid(_) => {}
    }
    let response = pass(&client, &state, request).await;
    if let Fault::Delay(time) = fault {
        tokio::time::sleep(time).await;
    }
    response
}

async fn pass(client: &Client, state: &Arc<State>, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    let (mut parts, body) = request.into_parts();
    [HOST, AUTHORIZATION, CONTENT_LENGTH].iter().for_each(|header| drop(parts.headers.remove(header)));
    let body = body.collect().await?.to_bytes();
    let response = client.send(Request::from_parts(parts, body.to_vec().into())).await?;
    let (parts, body) = response.into_parts();
    let state = state.clone();
    let frames = body.into_data_stream().then(move |bytes| {
        let state = state.clone();
        async move {
            state.until_bytes_flow().await;
            bytes.map(Frame::data).map_err(Error::from)
        }
    });
    Ok(Response::from_parts(parts, StreamBody::new(frames).boxed_unsync()))
}

impl State {
    async fn until_bytes_flow(&self) {
        let mut fault = self.fault.subscribe();
        let _ = fault.wait_for(|fault| *fault != Fault::Hang).await;
    }

    /// The error that is due for a request like this, if one is.
    fn error(&self, method: &Method) -> Option<(StatusCode, &'static str)> {
        const ERRORS: [(StatusCode, &str); 4] = [
            (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
            (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
            (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
            (StatusCode::CONFLICT, "Conflict"),
        ];
        // Nothing that is only read conflicts.
        let all = if *method == Method::GET { &ERRORS[..3] } else { &ERRORS };
        let mut dice = self.dice.lock().unwrap();
        (dice.u8(..10) == 0).then(|| all[dice.usize(..all.len())])
    }
}

fn refusal(code: StatusCode, reason: &str) -> Response<Body> {
    let mut status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "reason": reason,
        "message": format!("the proxy of the tests says {reason}"), "code": code.as_u16(),
    });
    let mut response = Response::builder().status(code).header(CONTENT_TYPE, "application/json");
    if code == StatusCode::TOO_MANY_REQUESTS {
        status["details"] = json!({"retryAfterSeconds": 1});
        response = response.header(RETRY_AFTER, "1");
    }
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {});
    response.body(body.boxed_unsync()).unwrap()
}
