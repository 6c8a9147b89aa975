//! Configurations of rustls, with the provider that the stack brings.
use std::sync::Arc;

use anyhow::Result;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CipherSuite, ClientConfig, DigitallySignedStruct, KeyLogFile, ServerConfig, SignatureScheme};

use crate::{CERTIFICATE, Job, KEY};

/// Any certificate is taken: that of a test is made for it.
#[derive(Debug)]
struct Anybody(CryptoProvider);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("QUIC has no TLS 1.2".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The provider; in the case chacha20 without the other suites.
fn provider_for(job: &Job, mut provider: CryptoProvider) -> CryptoProvider {
    if job.is("chacha20") {
        provider.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }
    provider
}

pub fn client(job: &Job, provider: CryptoProvider) -> Result<ClientConfig> {
    let provider = provider_for(job, provider);
    let mut tls = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![job.alpn().into()];
    tls.enable_early_data = job.is("zerortt");
    tls.key_log = Arc::new(KeyLogFile::new());
    Ok(tls)
}

pub fn server(job: &Job, provider: CryptoProvider) -> Result<ServerConfig> {
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(CERTIFICATE)?.collect::<Result<_, _>>()?;
    let mut tls = ServerConfig::builder_with_provider(Arc::new(provider_for(job, provider)))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(KEY)?)?;
    tls.alpn_protocols = vec![b"h3".into(), b"hq-interop".into()];
    tls.max_early_data_size = u32::MAX; // the only value that QUIC has (RFC 9001 section 4.6.1)
    tls.key_log = Arc::new(KeyLogFile::new());
    Ok(tls)
}
