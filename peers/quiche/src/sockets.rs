//! The UDP sockets of a relay: the client has one for each path, the server one.
use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result};
use mio::{Interest, Registry, Token, net::UdpSocket};
use quiche::RecvInfo;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};

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
    pub fn bind(registry: &Registry, addresses: &[SocketAddr]) -> Result<Self> {
        let mut sockets = Vec::new();
        for (number, address) in addresses.iter().enumerate() {
            let mut udp = UdpSocket::bind(*address).with_context(|| format!("cannot bind to {address}"))?;
            registry.register(&mut udp, Token(number), Interest::READABLE | Interest::WRITABLE)?;
            let state = UdpSocketState::new((&udp).into())?;
            let bound = udp.local_addr()?;
            sockets.push(Socket { udp, state, bound });
        }
        Ok(Self { all: sockets, received: RefCell::new(vec![0; BATCH_BYTES]) })
    }

    pub fn bound(&self, number: usize) -> SocketAddr {
        self.all[number].bound
    }

    /// Gives each datagram that has come, with where it came from and to.
    pub fn receive(&self, mut take: impl FnMut(&mut [u8], RecvInfo)) -> io::Result<()> {
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
                let info = RecvInfo { from: meta.addr, to: socket.local(meta.dst_ip) };
                for datagram in bytes[..meta.len].chunks_mut(meta.stride.max(1)) {
                    take(datagram, info);
                }
            }
        }
        Ok(())
    }

    /// Sends one datagram from the socket of its path. False: not now. What the network refuses is lost.
    pub fn send(&self, bytes: &[u8], from: SocketAddr, to: SocketAddr) -> bool {
        let of_path = self.all.iter().find(|socket| socket.bound == from).unwrap_or(&self.all[0]);
        let src_ip = Some(from.ip()).filter(|ip| !ip.is_unspecified());
        let transmit = Transmit { destination: to, ecn: None, contents: bytes, segment_size: None, src_ip };
        match of_path.state.send((&of_path.udp).into(), &transmit) {
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
            Ok(()) => true,
        }
    }
}
