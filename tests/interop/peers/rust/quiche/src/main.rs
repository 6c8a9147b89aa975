//! quiche as an endpoint of quic-interop-runner: HTTP/0.9 and HTTP/3.
mod client;
mod server;

use std::fs::OpenOptions;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use contract::Job;
use mio::net::UdpSocket;
use quiche::{ConnectionId, RecvInfo};

const SERVER: &[&str] = &[
    "handshake", "transfer", "longrtt", "ipv6", "http3", "multiconnect", "retry", "resumption", "zerortt", "keyupdate",
    "connectionmigration",
];
const CLIENT: &[&str] = &[
    "handshake", "transfer", "longrtt", "ipv6", "http3", "multiconnect", "retry", "resumption", "zerortt",
    "connectionmigration",
];
pub const CID_BYTES: usize = 16;
const DATAGRAM_BYTES: usize = 1350;

pub fn config(alpn: &[&[u8]]) -> Result<quiche::Config> {
    let mut config = quiche::Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(alpn)?;
    config.verify_peer(false); // the certificate of a test is made for it
    config.enable_early_data();
    config.log_keys();
    config.set_max_idle_timeout(30_000);
    config.set_max_recv_udp_payload_size(65_527);
    config.set_max_send_udp_payload_size(DATAGRAM_BYTES);
    config.set_initial_max_data(16 << 20);
    config.set_initial_max_stream_data_bidi_local(8 << 20);
    config.set_initial_max_stream_data_bidi_remote(8 << 20);
    config.set_initial_max_stream_data_uni(1 << 20);
    config.set_initial_max_streams_bidi(500);
    config.set_initial_max_streams_uni(100);
    config.set_active_connection_id_limit(4);
    Ok(config)
}

pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes
}

pub fn new_id() -> ConnectionId<'static> {
    ConnectionId::from_vec(random::<CID_BYTES>().to_vec())
}

/// The application gives quiche the IDs that the other side may use.
pub fn offer_ids(connection: &mut quiche::Connection) {
    while connection.is_established() && connection.scids_left() > 0 {
        if connection.new_scid(&new_id(), u128::from_ne_bytes(random()), false).is_err() {
            return;
        }
    }
}

pub fn log_keys(connection: &mut quiche::Connection) -> Result<()> {
    if let Ok(name) = std::env::var("SSLKEYLOGFILE") {
        connection.set_keylog(Box::new(OpenOptions::new().append(true).create(true).open(name)?));
    }
    Ok(())
}

/// The next datagram of a socket that does not block, and where it came from.
pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> Option<(usize, RecvInfo)> {
    let (length, from) = socket.recv_from(buffer).ok()?;
    Some((length, RecvInfo { from, to: socket.local_addr().ok()? }))
}

/// Sends all that the connection has; `sockets` by local address.
pub fn flush(connection: &mut quiche::Connection, sockets: &[UdpSocket]) -> Result<()> {
    let mut out = [0; DATAGRAM_BYTES];
    while let Ok((length, info)) = connection.send(&mut out) {
        let from = |socket: &&UdpSocket| socket.local_addr().is_ok_and(|address: SocketAddr| address == info.from);
        if let Some(socket) = sockets.iter().find(from) {
            let _ = socket.send_to(&out[..length], info.to); // what is not sent is lost
        }
    }
    Ok(())
}

pub fn soonest(timeouts: impl Iterator<Item = Option<Duration>>) -> Option<Duration> {
    timeouts.flatten().min()
}

fn main() -> Result<()> {
    let job: Job = contract::job("quiche", SERVER, CLIENT)?;
    if job.is_server { server::serve(&job) } else { client::get(&job) }
}
