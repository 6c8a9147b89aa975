//! The UDP sockets of a relay: the client has one for each path, the server one.
use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result};
use mio::{Interest, Registry, Token, net::UdpSocket};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use tquic::{Endpoint, PacketInfo, PacketSendHandler};

const BATCH_BYTES: usize = 65536;

struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
    bound: SocketAddr,
}

impl Socket {
    /// The address that a datagram came to, where the socket is bound to any.
    fn local(&self, to: Option<IpAddr>) -> SocketAddr {
        SocketAddr::new(to.unwrap_or(self.bound.ip()), self.bound.port())
    }
}

pub struct Sockets {
    all: Vec<Socket>,
    received: RefCell<Vec<u8>>,
}

impl Sockets {
    /// Tokens are numbered from 0.
    pub fn bind(registry: &Registry, addresses: &[SocketAddr]) -> Result<Rc<Self>> {
        let mut sockets = Vec::new();
        for (number, address) in addresses.iter().enumerate() {
            let mut udp = UdpSocket::bind(*address).with_context(|| format!("cannot bind to {address}"))?;
            registry.register(&mut udp, Token(number), Interest::READABLE | Interest::WRITABLE)?;
            let state = UdpSocketState::new((&udp).into())?;
            let bound = udp.local_addr()?;
            sockets.push(Socket { udp, state, bound });
        }
        Ok(Rc::new(Self { all: sockets, received: RefCell::new(vec![0; BATCH_BYTES]) }))
    }

    pub fn bound(&self, number: usize) -> SocketAddr {
        self.all[number].bound
    }

    /// Gives all that has come to the endpoint, which drops what it cannot use.
    pub fn receive(&self, endpoint: &mut Endpoint) -> io::Result<()> {
        let mut bytes = self.received.borrow_mut();
        for socket in &self.all {
            loop {
                let mut meta = [RecvMeta::default()];
                match socket.state.recv((&socket.udp).into(), &mut [IoSliceMut::new(&mut bytes)], &mut meta) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                    Ok(_) => {}
                }
                let [meta] = meta;
                let info = PacketInfo { src: meta.addr, dst: socket.local(meta.dst_ip), time: Instant::now() };
                for datagram in bytes[..meta.len].chunks_mut(meta.stride.max(1)) {
                    let _ = endpoint.recv(datagram, &info);
                }
            }
        }
        Ok(())
    }
}

/// What the endpoint sends with.
pub struct Sender(pub Rc<Sockets>);

impl PacketSendHandler for Sender {
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> tquic::Result<usize> {
        for (count, (bytes, info)) in packets.iter().enumerate() {
            let of_path = self.0.all.iter().find(|s| s.bound == info.src).or(self.0.all.first());
            let Some(socket) = of_path else { return Ok(count) };
            let transmit = Transmit {
                destination: info.dst,
                ecn: None,
                contents: bytes,
                segment_size: None,
                src_ip: Some(info.src.ip()).filter(|ip| !ip.is_unspecified()),
            };
            if let Err(error) = socket.state.send((&socket.udp).into(), &transmit) {
                if error.kind() == io::ErrorKind::WouldBlock {
                    return Ok(count);
                }
            }
        }
        Ok(packets.len())
    }
}
