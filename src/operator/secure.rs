//! Metrics by TLS, for who may get them: on a port of its own, as the probes of the kubelet have neither token nor trust.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum_server::tls_rustls::{RustlsConfig, from_tcp_rustls};
use kube::Client;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};
use tracing::{info, warn};

use crate::operator::review::{Reviewer, admit};

/// How often the files of the certificate are read again: who renews it leaves hours for that.
const LOOK: Duration = Duration::from_secs(10);

/// Where and how metrics are served.
#[derive(Debug, Clone)]
pub struct SecureMetrics {
    /// The address.
    pub bind: SocketAddr,
    /// What the server shows.
    pub certificate: Certificate,
}

/// The server's certificate.
#[derive(Debug, Clone)]
pub enum Certificate {
    /// One of its own, made at the start: it protects from who only listens.
    SelfSigned,
    /// One in files, that may be renewed.
    Files {
        /// The certificate, and those that it stands on.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
    },
}

/// Metrics can't be served by TLS. No text quotes what is in a file.
#[derive(Debug, thiserror::Error)]
pub enum SecureError {
    /// The port is taken.
    #[error("cannot listen on {address}; free the port, or choose another one with --secure-metrics")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// A file can't be read.
    #[error("cannot read {file} for --secure-metrics; mount it, and let this process read it")]
    File {
        /// Which one.
        file: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// A file holds something else.
    #[error("{file} holds no {what} in PEM; give the one of a kubernetes.io/tls Secret")]
    Content {
        /// Which one.
        file: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// The certificate and the key don't go together, or can't be used.
    #[error("cannot use the certificate and its key; give a pair that belongs together")]
    Pair(#[source] rustls::Error),
    /// None can be made.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
}

impl SecureMetrics {
    /// Takes the port; then serves these pages until it is dropped.
    pub fn serve(
        self,
        pages: Router,
        client: Client,
    ) -> Result<impl Future<Output = io::Result<()>> + use<>, SecureError> {
        let Self { bind: address, certificate } = self;
        let config = RustlsConfig::from_config(certificate.config()?);
        let failed = |cause| SecureError::Bind { address, cause };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let server = from_tcp_rustls(listener, config.clone()).map_err(failed)?.http1_only();
        let router = pages.layer(from_fn_with_state(Reviewer::new(client), admit));
        Ok(async move {
            tokio::select! {
                served = server.serve(router.into_make_service()) => served,
                never = certificate.follow(&config) => match never {},
            }
        })
    }
}

impl Certificate {
    fn config(&self) -> Result<Arc<ServerConfig>, SecureError> {
        let (chain, key) = match self {
            Self::SelfSigned => {
                let made = rcgen::generate_simple_self_signed(["restamp".to_owned(), "localhost".to_owned()])?;
                let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
                (vec![made.cert.der().clone()], PrivateKeyDer::from(key))
            }
            Self::Files { certificate, key } => (chain(certificate)?, private_key(key)?),
        };
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
        let mut config = config.map_err(SecureError::Pair)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Takes what is in the files from now on, whenever it changes. What can't be used changes nothing.
    async fn follow(&self, config: &RustlsConfig) -> std::convert::Infallible {
        let mut taken = self.content();
        loop {
            tokio::time::sleep(LOOK).await;
            let content = self.content();
            if content == taken {
                continue;
            }
            match self.config() {
                Ok(renewed) => {
                    config.reload_from_config(renewed);
                    info!("the certificate for metrics is renewed");
                }
                Err(error) => warn!(%error, "cannot take the new certificate for metrics; the old one stays"),
            }
            taken = content;
        }
    }

    /// What tells the content of the files from any other.
    fn content(&self) -> Option<[u8; 32]> {
        let Self::Files { certificate, key } = self else { return None };
        let hash = Sha256::new().chain_update(std::fs::read(certificate).ok()?);
        Some(hash.chain_update(std::fs::read(key).ok()?).finalize().into())
    }
}

fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, SecureError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let chain: Vec<_> = read.map_err(|error| unusable(file, "certificate", error))?;
    if chain.is_empty() {
        return Err(unusable(file, "certificate", pem::Error::NoItemsFound));
    }
    Ok(chain)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, SecureError> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| unusable(file, "private key", error))
}

fn unusable(file: &Path, what: &'static str, error: pem::Error) -> SecureError {
    match error {
        pem::Error::Io(cause) => SecureError::File { file: file.to_owned(), cause },
        _ => SecureError::Content { file: file.to_owned(), what },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a certificate and a key of its own.
    fn folder() -> (tempfile::TempDir, Certificate) {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
        let made = rcgen::generate_simple_self_signed(["metrics".to_owned()]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        (folder, Certificate::Files { certificate, key })
    }

    fn provide() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }

    #[test]
    fn a_pair_in_files_can_be_used_and_so_can_one_of_its_own() {
        provide();
        folder().1.config().unwrap();
        Certificate::SelfSigned.config().unwrap();
    }

    #[test]
    fn what_cannot_be_used_is_named_and_not_quoted() {
        provide();
        let ((one, certificate), (other, _)) = (folder(), folder());
        std::fs::copy(other.path().join("tls.key"), one.path().join("tls.key")).unwrap();
        assert!(matches!(certificate.config(), Err(SecureError::Pair(_))));
        std::fs::write(one.path().join("tls.key"), "hunter2").unwrap();
        let error = certificate.config().unwrap_err().to_string();
        assert!(error.contains("tls.key holds no private key in PEM") && !error.contains("hunter2"), "{error}");
        std::fs::remove_file(one.path().join("tls.crt")).unwrap();
        assert!(matches!(certificate.config(), Err(SecureError::File { .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewed_certificate_is_taken_and_a_half_written_one_is_not() {
        provide();
        let ((one, certificate), (other, _)) = (folder(), folder());
        let config = RustlsConfig::from_config(certificate.config().unwrap());
        let first = config.get_inner();
        let copy = |name: &str| std::fs::copy(other.path().join(name), one.path().join(name)).unwrap();
        let follows = certificate.follow(&config);
        let renews = async {
            copy("tls.crt");
            tokio::time::sleep(LOOK * 2).await;
            assert!(Arc::ptr_eq(&config.get_inner(), &first));
            copy("tls.key");
            tokio::time::sleep(LOOK * 2).await;
            assert!(!Arc::ptr_eq(&config.get_inner(), &first));
        };
        tokio::select! {
            biased;
            never = follows => match never {},
            () = renews => {}
        }
    }
}
