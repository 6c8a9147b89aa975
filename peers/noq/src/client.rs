use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use noq::crypto::rustls::QuicClientConfig;
use noq::{ClientConfig, Connection, Endpoint, FourTuple, Path, PathError, PathStatus, TransportConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use serde_json::json;

use crate::http3::{self, Frames};
use crate::stats;

/// noq cancels a stream with more than 1,024 gaps, which re-injection over two paths causes if the window is large.
pub const STREAM_WINDOW: u32 = 1 << 20;

/// Accepts any certificate, because the server's is self-signed.
#[derive(Debug)]
struct Anybody(rustls::crypto::CryptoProvider);

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

struct Options {
    server: SocketAddr,
    path: String,
    local: Vec<IpAddr>,
    abandon: Option<IpAddr>,
    backup: Option<IpAddr>,
    out: Option<String>,
}

fn parse(words: &[String]) -> Result<Options> {
    let [server, path, rest @ ..] = words else { bail!("get takes SERVER and URL_PATH") };
    let mut o = Options { server: server.parse()?, path: path.clone(), local: vec![], abandon: None, backup: None, out: None };
    let mut words = rest.iter();
    while let Some(name) = words.next() {
        let value = words.next().context("an option without its value")?;
        match name.as_str() {
            "--local" => o.local.push(value.parse()?),
            "--abandon" => o.abandon = Some(value.parse()?),
            "--backup" => o.backup = Some(value.parse()?),
            "--out" => o.out = Some(value.clone()),
            _ => bail!("unknown option {name}"),
        }
    }
    Ok(o)
}

pub fn config(alpn: &[u8], transport: TransportConfig) -> Result<ClientConfig> {
    let provider = rustls::crypto::ring::default_provider();
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider.clone()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![alpn.to_vec()];
    tls.key_log = Arc::new(rustls::KeyLogFile::new());
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Opens a path. Waits up to 5 s for the server's connection IDs for it.
pub async fn open(connection: &Connection, server: SocketAddr, local: IpAddr) -> Result<Path> {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        match connection.open_path(FourTuple::new(server, Some(local)), PathStatus::Available).await {
            Ok(path) => return Ok(path),
            Err(PathError::RemoteCidsExhausted) if Instant::now() < until => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => return Err(error).with_context(|| format!("opening a path from {local}")),
        }
    }
}

pub async fn get(words: &[String]) -> Result<()> {
    let o = parse(words)?;
    let any: IpAddr = if o.server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let endpoint = Endpoint::client(SocketAddr::new(any, 0))?;
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(stats::PATHS_MAX);
    transport.stream_receive_window(STREAM_WINDOW.into());
    endpoint.set_default_client_config(config(b"h3", transport)?);
    let connection = endpoint.connect(o.server, "localhost")?.await.context("the handshake failed")?;
    let _control = http3::open_control(&connection).await?;
    connection.handshake_confirmed().await?;
    let mut paths = Vec::new();
    if connection.is_multipath_enabled() {
        for local in &o.local {
            let path = open(&connection, o.server, *local).await?;
            if o.backup == Some(*local) {
                path.set_status(PathStatus::Backup)?;
            }
            paths.push((*local, path));
        }
    }
    let (mut send, receive) = connection.open_bi().await?;
    send.write_all(&http3::request("localhost", &o.path)).await?;
    send.finish()?;
    let mut file = o.out.as_ref().map(File::create).transpose()?;
    let (mut bytes, mut digest) = (0usize, ring::digest::Context::new(&ring::digest::SHA256));
    let (mut abandoned, mut written) = (None, Ok(()));
    let mut frames = Frames::of(receive);
    frames
        .body(|part| {
            bytes += part.len();
            digest.update(part);
            if let (Some(file), Ok(())) = (&mut file, &written) {
                written = file.write_all(part);
            }
            let victim = paths.iter().find(|(ip, _)| Some(*ip) == o.abandon && bytes > 1 << 20);
            if let (Some((_, path)), None) = (victim, &abandoned) {
                abandoned = Some(path.close().is_ok());
            }
        })
        .await?;
    written.context("writing the file")?;
    let sha256: String = digest.finish().as_ref().iter().map(|b| format!("{b:02x}")).collect();
    let ids = std::iter::once(noq::PathId::ZERO).chain(paths.iter().map(|(_, p)| p.id()));
    println!(
        "{}",
        json!({"multipath": connection.is_multipath_enabled(), "bytes": bytes, "sha256": sha256,
               "abandoned": abandoned.unwrap_or(false), "paths": stats::of_paths(&connection, ids)})
    );
    connection.close(0x100u32.into(), b"");
    endpoint.wait_all_draining().await;
    Ok(())
}
