//! TLS, for listeners on non-loopback addresses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The largest PEM file, in bytes.
const LARGEST: u64 = 4 << 20;

/// Accepts TLS connections with a certificate and its key.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// TLS cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A PEM file cannot be read.
    #[error("{} cannot be read as PEM", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the PEM reader.
        source: pem::Error,
    },
    /// Certificate and key do not match.
    #[error("the certificate and the key cannot be used")]
    Config {
        /// Error of the TLS library.
        #[from]
        source: rustls::Error,
    },
}

impl Tls {
    /// Reads a certificate chain and its key, both PEM.
    ///
    /// # Errors
    /// When a file cannot be read, or the two do not match.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| TlsError::File { path, source }
        };
        let read = |path: &Path| stafette_disk::read(path, LARGEST).map_err(pem::Error::Io);
        let chain = read(certificate)
            .and_then(|text| CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>())
            .map_err(failed(certificate))?;
        let key =
            read(key).and_then(|text| PrivateKeyDer::from_pem_slice(&text)).map_err(failed(key))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::Router;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, RootCertStore};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsConnector;

    use super::*;

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tls").join(name)
    }

    #[tokio::test]
    async fn who_trusts_the_certificate_is_served_and_plain_text_is_not() {
        let tls = Tls::read(&fixture("cert.pem"), &fixture("key.pem")).expect("a pair");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new().fallback(async || "hello");
        tokio::spawn(crate::serve::port(listener, Some(tls), router));

        let mut roots = RootCertStore::empty();
        let own = CertificateDer::from_pem_file(fixture("cert.pem")).expect("a certificate");
        roots.add(own).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = TcpStream::connect(address).await.expect("a connection");
        let name = ServerName::try_from("localhost").expect("a name");
        let mut stream = connector.connect(name, stream).await.expect("an agreement");
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.expect("sent");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert!(answer.ends_with("hello"), "{answer}");

        let mut plain = TcpStream::connect(address).await.expect("a connection");
        plain.write_all(request).await.expect("sent");
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer).await;
        assert!(!String::from_utf8_lossy(&answer).contains("hello"));
    }

    #[test]
    fn files_that_do_not_go_together_are_said() {
        let swapped = Tls::read(&fixture("key.pem"), &fixture("cert.pem"));
        assert!(swapped.is_err());
        let missing = Tls::read(&fixture("none.pem"), &fixture("key.pem"));
        assert!(matches!(missing, Err(TlsError::File { .. })));
    }
}
