//! The connection to a cluster: found as kubectl finds it, the same for every subcommand.
//!
//! A kubeconfig holds credentials, and its parsers quote what they can't read: no error repeats their texts.

use std::path::PathBuf;
use std::time::Duration;

use kube::Client;
use kube::client::{AuthError, ClientBuilder};
use kube::config::{Config, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError, LoadDataError};
use tower::util::MapResultLayer;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long the API server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A watch ends after 230 s, so a connection without a byte for longer is dead, whatever the network says.
const LONGEST_SILENCE: Duration = Duration::from_secs(240);

/// Which cluster.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Target {
    /// The kubeconfig to use.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context to use.
    #[arg(long, value_name = "CONTEXT")]
    context: Option<String>,
}

impl Target {
    /// The same for kubectl.
    pub fn as_flags(&self) -> Vec<String> {
        let kubeconfig = self.kubeconfig.as_ref().map(|file| format!("--kubeconfig={}", file.display()));
        let context = self.context.as_ref().map(|context| format!("--context={context}"));
        kubeconfig.into_iter().chain(context).collect()
    }
}

/// A client, and the address of the server that it asks.
#[derive(Clone)]
pub struct Connection {
    /// The client. It retries nothing by itself: what is to be repeated, and when, is the caller's decision.
    pub client: Client,
    /// The API server's address.
    pub server: String,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig is no kubeconfig.
    #[error("cannot read {kubeconfig}: it does not parse, line {line}; see what kubectl config view says")]
    Malformed {
        /// Which one.
        kubeconfig: String,
        /// The first line that does not parse.
        line: u64,
    },
    /// The kubeconfig can't be used.
    #[error("cannot use {kubeconfig}: {reason}; choose another with --kubeconfig or --context")]
    Unusable {
        /// Which one.
        kubeconfig: String,
        /// Why.
        reason: String,
    },
    /// We run in a pod that can't use its ServiceAccount.
    #[error("cannot use the pod's ServiceAccount: {reason}; mount its token, or give a --kubeconfig")]
    ServiceAccount {
        /// Why.
        reason: String,
    },
    /// No client can be made of the kubeconfig.
    #[error("cannot set up a connection to {server}: {reason}; see what kubectl config view says")]
    Client {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
}

impl Target {
    /// Connects: by the given kubeconfig, else the usual one, else the ServiceAccount of the pod that we run in.
    pub async fn connect(&self) -> Result<Connection, ConnectError> {
        let config = self.config_reading_for(LONGEST_SILENCE).await?;
        let server = config.cluster_url.to_string();
        match Client::try_from(config) {
            Ok(client) => Ok(Connection { client, server }),
            Err(error) => Err(ConnectError::Client { server, reason: innermost(&error) }),
        }
    }

    /// Connects for short calls alone: one that gets no byte for so long fails. A watch would not survive that. What
    /// became of each call is heard: `None` of one that was answered, else why it was not, or by a server that is not well.
    pub async fn connect_for_short_calls(
        &self,
        patience: Duration,
        heard: impl Fn(Option<String>) + Clone + Send + Sync + 'static,
    ) -> Result<Client, ConnectError> {
        let config = self.config_reading_for(patience).await?;
        let server = config.cluster_url.to_string();
        let listen = MapResultLayer::new(move |answer: Result<http::Response<_>, BoxError>| {
            heard(match &answer {
                Ok(answer) if answer.status().is_server_error() => Some(answer.status().to_string()),
                Ok(_) => None,
                Err(error) => Some(innermost(error.as_ref())),
            });
            answer
        });
        match ClientBuilder::try_from(config) {
            Ok(builder) => Ok(builder.with_layer(&listen).build()),
            Err(error) => Err(ConnectError::Client { server, reason: innermost(&error) }),
        }
    }

    async fn config_reading_for(&self, patience: Duration) -> Result<Config, ConnectError> {
        // One provider for the process; if another part has installed it already, it is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = self.config().await?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        // It would repeat calls for minutes, writes too, behind our back.
        config.default_retry = false;
        config.read_timeout = Some(patience);
        Ok(config)
    }

    async fn config(&self) -> Result<Config, ConnectError> {
        let kubeconfig = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        match kubeconfig {
            Ok(kubeconfig) => self.of_kubeconfig(kubeconfig).await,
            Err(error) if self.is_unspecific() && is_absent(&error) => match Config::incluster() {
                Ok(config) => Ok(config),
                Err(InClusterError::ReadEnvironmentVariable(_)) => Err(self.unusable(error)),
                Err(in_pod) => Err(ConnectError::ServiceAccount { reason: innermost(&in_pod) }),
            },
            Err(error) => Err(self.unusable(error)),
        }
    }

    async fn of_kubeconfig(&self, kubeconfig: Kubeconfig) -> Result<Config, ConnectError> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| self.unusable(error))
    }

    /// Whether no cluster was asked for by name.
    fn is_unspecific(&self) -> bool {
        self.kubeconfig.is_none() && self.context.is_none()
    }

    fn unusable(&self, error: KubeconfigError) -> ConnectError {
        let kubeconfig = match (&self.kubeconfig, &error) {
            (_, KubeconfigError::ReadConfig(_, path)) => format!("the kubeconfig {}", path.display()),
            (Some(path), _) => format!("the kubeconfig {}", path.display()),
            (None, _) => "the kubeconfig".to_owned(),
        };
        let reason = match error {
            KubeconfigError::Parse(error) => {
                let line = error.location().map_or(1, |location| location.line());
                return ConnectError::Malformed { kubeconfig, line };
            }
            KubeconfigError::ReadConfig(error, _) => error.to_string(),
            KubeconfigError::LoadCertificateAuthority(error) => unloadable("the certificate authority", &error),
            KubeconfigError::LoadClientCertificate(error) => unloadable("the client certificate", &error),
            KubeconfigError::LoadClientKey(error) => unloadable("the client key", &error),
            KubeconfigError::ParseCertificates(_) => "a certificate is not in PEM".to_owned(),
            KubeconfigError::ParseClusterUrl(_) => "the cluster's server is no URL".to_owned(),
            KubeconfigError::ParseProxyUrl(_) => "the cluster's proxy-url is no URL".to_owned(),
            other => other.to_string(),
        };
        ConnectError::Unusable { kubeconfig, reason }
    }
}

fn is_absent(error: &KubeconfigError) -> bool {
    matches!(error, KubeconfigError::ReadConfig(..) | KubeconfigError::FindPath)
}

fn unloadable(what: &str, error: &LoadDataError) -> String {
    match error {
        LoadDataError::DecodeBase64(_) => format!("{what} is not in base64"),
        LoadDataError::ReadFile(error, path) => format!("{what} {}: {error}", path.display()),
        LoadDataError::NoBase64DataOrFile => format!("{what} is empty"),
    }
}

/// What is at the bottom of an error: the layers above only say which of them failed. What would quote an answer, or
/// a credential, is put in other words.
pub fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut bottom = error;
    for cause in std::iter::successors(Some(error), |cause| cause.source()) {
        if let Some(error) = cause.downcast_ref::<AuthError>() {
            return unauthenticated(error);
        }
        if let Some(error) = cause.downcast_ref::<LoadDataError>() {
            return unloadable("a certificate or key of the user", error);
        }
        bottom = cause;
    }
    if bottom.is::<serde_json::Error>() || bottom.is::<serde_saphyr::Error>() {
        return "an answer that cannot be read".to_owned();
    }
    bottom.to_string()
}

/// The texts of a failed credential plugin may hold the credential.
fn unauthenticated(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecStart(error) => format!("the credential plugin does not start: {error}"),
        AuthError::AuthExecRun { out, .. } => format!("the credential plugin fails with {}", out.status),
        AuthError::AuthExecParse(_) | AuthError::ParseTokenKey(_) | AuthError::AuthExecSerialize(_) => {
            "the credential plugin's answer does not parse".to_owned()
        }
        AuthError::ReadTokenFile(error, path) => format!("the token file {}: {error}", path.display()),
        AuthError::InvalidBasicAuth(_) | AuthError::InvalidBearerToken(_) => {
            "the credentials have characters that no HTTP header takes".to_owned()
        }
        _ => "the user's credentials do not work here".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
        contexts: [{name: c, context: {cluster: c, user: u}}]\n\
        clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'CLUSTER}}]\nusers: [{name: u, user: {USER}}]\n";

    fn kubeconfig(cluster: &str, user: &str) -> String {
        KUBECONFIG.replace("CLUSTER", cluster).replace("USER", user)
    }

    async fn refused(content: &str, context: Option<&str>) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let target = Target { kubeconfig: Some(file.path().to_owned()), context: context.map(str::to_owned) };
        let error = target.connect().await.err().unwrap().to_string();
        error.replace(&file.path().display().to_string(), "FILE")
    }

    #[rstest]
    #[case::malformed("users: [\n- hunter2: }", "cannot read the kubeconfig FILE: it does not parse, line 2; see")]
    #[case::not_base64(&kubeconfig("", "client-certificate-data: 'hunter2!', client-key-data: 'hunter2!'"),
        "cannot set up a connection to https://127.0.0.1:1/: a certificate or key of the user is not in base64; see")]
    #[case::a_plugin_that_fails(
        &kubeconfig("", "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never, \
            args: [-c, 'echo hunter2; exit 7']}"),
        "cannot set up a connection to https://127.0.0.1:1/: the credential plugin fails with exit status: 7; see")]
    #[case::a_plugin_that_answers_nonsense(
        &kubeconfig("", "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never, \
            args: [-c, 'echo [hunter2']}"),
        "cannot set up a connection to https://127.0.0.1:1/: the credential plugin's answer does not parse; see")]
    #[case::no_base64_of_an_authority(&kubeconfig(", certificate-authority-data: 'hunter2!'", ""),
        "cannot use the kubeconfig FILE: the certificate authority is not in base64; choose another")]
    #[tokio::test]
    async fn no_error_quotes_the_kubeconfig(#[case] content: &str, #[case] expected: &str) {
        let said = refused(content, None).await;
        assert!(said.starts_with(expected) && !said.contains("hunter2"), "{said}");
    }

    #[tokio::test]
    async fn a_context_that_is_not_there_is_named() {
        let said = refused(&kubeconfig("", ""), Some("staging")).await;
        assert!(said.contains("staging") && said.contains("--context"), "{said}");
    }
}
