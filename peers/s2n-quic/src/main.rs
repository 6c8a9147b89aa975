//! A relay over s2n-quic: QUIC v1 on the primary path. docs/reference/stacks.md describes relays.
mod stats;
mod tls;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use railyard_relay::{Options, Spare, parse, record};
use s2n_quic::client::Connect;
use s2n_quic::connection::{Connection, Handle};
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::limits::Limits;
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Client, Server};
use serde_json::json;
use stats::Counters;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::OnceCell;

const OWN: &[(&str, &str)] = &[("cc", "cubic")];
const CANCELLED: u32 = 1; // application error code of a cancelled stream
const REPORT_EVERY: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(120);
const ACCEPT_AGAIN: Duration = Duration::from_millis(50); // after an error
const STREAM_BYTES: u64 = 16 << 20; // flow control window of a stream; the connection's is twice that

fn limits() -> Result<Limits> {
    Ok(Limits::new()
        .with_max_idle_timeout(IDLE)?
        .with_data_window(2 * STREAM_BYTES)?
        .with_bidirectional_local_data_window(STREAM_BYTES)?
        .with_bidirectional_remote_data_window(STREAM_BYTES)?
        .with_max_open_remote_bidirectional_streams(1000)?
        .with_max_open_local_bidirectional_streams(1000)?)
}

/// Copies everything including the end.
async fn copy(from: impl AsyncRead, to: impl AsyncWrite) -> std::io::Result<()> {
    let (mut from, mut to) = (pin!(from), pin!(to));
    tokio::io::copy(&mut from, &mut to).await?;
    to.shutdown().await
}

/// Copies both directions. After an error in one, resets the stream and closes the local connection.
async fn join(local: impl AsyncRead + AsyncWrite, stream: BidirectionalStream) {
    let (read, write) = tokio::io::split(local);
    let (mut receive, mut send) = stream.split();
    if tokio::try_join!(copy(read, &mut send), copy(&mut receive, write)).is_err() {
        let _ = send.reset(CANCELLED.into());
        let _ = receive.stop_sending(CANCELLED.into());
    }
}

// ---- client

async fn start_client(o: &Options, counters: Arc<Counters>) -> Result<Client> {
    let from = SocketAddr::new(o.paths.first().context("--path is required")?.1, 0);
    let builder = Client::builder()
        .with_tls(s2n_quic::provider::tls::rustls::Client::from(tls::client()?))?
        .with_limits(limits()?)?
        .with_event(stats::Watch(counters))?
        .with_io(from)?;
    Ok(match o.own("cc") {
        "bbr" => builder.with_congestion_controller(Bbr::default())?.start()?,
        _ => builder.with_congestion_controller(Cubic::default())?.start()?,
    })
}

fn report(name: &str, counters: &Counters) {
    let srtt = Some(counters.srtt_us.load(Relaxed)).filter(|us| *us > 0);
    record(json!({"event": "path", "name": name, "state": "active", "bytes_sent": counters.sent.load(Relaxed),
                  "bytes_received": counters.received.load(Relaxed), "srtt_us": srtt}));
}

/// Connects. The relay ends with the connection.
async fn connect(client: &Client, o: &Options) -> Result<Handle> {
    let server = o.server.context("--server is required")?;
    let mut connection = client.connect(Connect::new(server).with_server_name("localhost")).await?;
    connection.keep_alive(false)?;
    let handle = connection.handle();
    tokio::spawn(async move {
        let reason = match connection.accept().await {
            Err(error) => error.to_string(),
            Ok(_) => "the connection has ended".into(),
        };
        record(json!({"event": "closed", "reason": reason}));
        eprintln!("s2n-quic: the connection has ended: {reason}");
        std::process::exit(1);
    });
    Ok(handle)
}

/// Returns the next local connection for which there is a descriptor.
async fn accept(listener: &UnixListener, spare: &mut Spare) -> UnixStream {
    loop {
        match listener.accept().await {
            Ok((local, _)) if spare.is_held() => return local,
            Ok(_) => {}
            Err(error) if spare.give_up(&error) => {}
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// The first local connection starts the handshake, so that it is part of the first request.
async fn run_client(o: Arc<Options>, counters: Arc<Counters>) -> Result<()> {
    let client = start_client(&o, counters).await?;
    let listener = UnixListener::bind(&o.socket)?;
    let mut spare = Spare::hold();
    let connection = Arc::new(OnceCell::<Handle>::new());
    record(json!({"event": "ready"}));
    loop {
        let local = accept(&listener, &mut spare).await;
        let (client, connection, o) = (client.clone(), connection.clone(), o.clone());
        tokio::spawn(async move {
            let handle = connection.get_or_try_init(|| connect(&client, &o)).await;
            let Ok(mut handle) = handle.cloned().inspect_err(|error| {
                record(json!({"event": "closed", "reason": error.to_string()}));
                eprintln!("s2n-quic: {error:#}");
                std::process::exit(1);
            }) else {
                return;
            };
            if let Ok(stream) = handle.open_bidirectional_stream().await {
                join(local, stream).await;
            }
        });
    }
}

// ---- server

async fn serve(mut connection: Connection, upstream: SocketAddr) {
    while let Ok(Some(mut stream)) = connection.accept_bidirectional_stream().await {
        tokio::spawn(async move {
            match TcpStream::connect(upstream).await {
                Ok(local) => join(local, stream).await,
                Err(_) => {
                    let _ = stream.reset(CANCELLED.into());
                    let _ = stream.stop_sending(CANCELLED.into());
                }
            }
        });
    }
}

async fn run_server(o: Options) -> Result<()> {
    let listen = o.listen.context("--listen is required")?;
    let upstream = o.upstream.context("--upstream is required")?;
    let builder = Server::builder()
        .with_tls(s2n_quic::provider::tls::rustls::Server::from(tls::server(&o.certificate, &o.key)?))?
        .with_limits(limits()?)?
        .with_io(listen)?;
    let mut server = match o.own("cc") {
        "bbr" => builder.with_congestion_controller(Bbr::default())?.start()?,
        _ => builder.with_congestion_controller(Cubic::default())?.start()?,
    };
    record(json!({"event": "ready", "listen": server.local_addr()?.to_string()}));
    while let Some(connection) = server.accept().await {
        tokio::spawn(serve(connection, upstream));
    }
    Ok(())
}

async fn client(o: Options) -> Result<()> {
    let name = o.paths.first().map(|(name, _)| name.clone()).unwrap_or_default();
    let counters = Arc::new(Counters::default());
    let mut every = tokio::time::interval(REPORT_EVERY);
    let mut running = pin!(run_client(Arc::new(o), counters.clone()));
    let mut stop = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            ended = &mut running => return ended,
            _ = every.tick() => report(&name, &counters),
            _ = stop.recv() => break,
        }
    }
    report(&name, &counters);
    record(json!({"event": "closed", "reason": "signal"}));
    Ok(())
}

async fn server(o: Options) -> Result<()> {
    let mut stop = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = run_server(o) => ended,
        _ = stop.recv() => {
            record(json!({"event": "closed", "reason": "signal"}));
            Ok(())
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("client") => client(parse(&words[1..], OWN)?).await,
        Some("server") => server(parse(&words[1..], OWN)?).await,
        Some("version") => {
            println!("{}", railyard_relay::locked_version(include_str!("../Cargo.lock"), "s2n-quic")?);
            Ok(())
        }
        _ => bail!("usage: s2n-quic-relay client|server OPTIONS, or s2n-quic-relay version"),
    }
}
