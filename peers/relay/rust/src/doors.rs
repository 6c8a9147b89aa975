//! Event sources for stacks without their own event loop: datagrams, local connections, and SIGTERM.
use std::cell::RefCell;
use std::io::{ErrorKind, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use mio::net::{TcpStream, UdpSocket, UnixListener, UnixStream};
use mio::{Events, Interest, Poll, Registry, Token};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};

use crate::pump::Socket;
use crate::{Options, Spare};

const BATCH_BYTES: usize = 65536;
const LISTENER: Token = Token(1 << 20);
const STOP: Token = Token(LISTENER.0 + 1);
const LOCAL: Token = Token(LISTENER.0 + 2); // shared by all local connections; each wake-up checks all of them

struct Udp {
    socket: UdpSocket,
    state: UdpSocketState,
    bound: SocketAddr,
}

impl Udp {
    /// Returns the destination address of a datagram, also if the socket is bound to a wildcard.
    fn local(&self, to: Option<IpAddr>) -> SocketAddr {
        SocketAddr::new(to.unwrap_or(self.bound.ip()), self.bound.port())
    }
}

/// The UDP sockets: one per path on a client, one on a server.
pub struct Sockets {
    all: Vec<Udp>,
    received: RefCell<Vec<u8>>,
}

impl Sockets {
    /// Tokens are numbered from 0.
    fn bind(registry: &Registry, addresses: &[SocketAddr]) -> Result<Self> {
        let mut all = Vec::new();
        for (number, address) in addresses.iter().enumerate() {
            let mut socket = UdpSocket::bind(*address).with_context(|| format!("cannot bind to {address}"))?;
            registry.register(&mut socket, Token(number), Interest::READABLE | Interest::WRITABLE)?;
            let state = UdpSocketState::new((&socket).into())?;
            let bound = socket.local_addr()?;
            all.push(Udp { socket, state, bound });
        }
        Ok(Self { all, received: RefCell::new(vec![0; BATCH_BYTES]) })
    }

    pub fn bound(&self, number: usize) -> SocketAddr {
        self.all[number].bound
    }

    /// Passes each received datagram to `take`, with source and destination address.
    pub fn receive(&self, mut take: impl FnMut(&mut [u8], SocketAddr, SocketAddr)) -> Result<()> {
        let mut bytes = self.received.borrow_mut();
        for udp in &self.all {
            loop {
                let mut meta = [RecvMeta::default()];
                match udp.state.recv((&udp.socket).into(), &mut [IoSliceMut::new(&mut bytes)], &mut meta) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                    Ok(_) => {}
                }
                let [meta] = meta;
                for datagram in bytes[..meta.len].chunks_mut(meta.stride.max(1)) {
                    take(datagram, meta.addr, udp.local(meta.dst_ip));
                }
            }
        }
        Ok(())
    }

    /// Sends one datagram from the socket of its path. False: the socket buffer is full. Other errors count as loss.
    pub fn send(&self, bytes: &[u8], from: SocketAddr, to: SocketAddr) -> bool {
        let of_path = self.all.iter().find(|udp| udp.bound == from).unwrap_or(&self.all[0]);
        let src_ip = Some(from.ip()).filter(|ip| !ip.is_unspecified());
        let transmit = Transmit { destination: to, ecn: None, contents: bytes, segment_size: None, src_ip };
        match of_path.state.send((&of_path.socket).into(), &transmit) {
            Err(error) => error.kind() != ErrorKind::WouldBlock,
            Ok(()) => true,
        }
    }
}

pub struct Doors {
    poll: Poll,
    events: Events,
    pub sockets: Rc<Sockets>,
    listener: Option<UnixListener>, // client
    spare: Spare,
    _stop: UnixStream, // readable after SIGTERM
}

impl Doors {
    pub fn open(o: &Options, is_server: bool) -> Result<Self> {
        let poll = Poll::new()?;
        let bound = if is_server {
            vec![o.listen.context("--listen is required")?]
        } else {
            o.paths.iter().map(|(_, ip)| (*ip, 0).into()).collect()
        };
        if bound.is_empty() {
            bail!("--path is required");
        }
        let sockets = Rc::new(Sockets::bind(poll.registry(), &bound)?);
        let listener = if is_server {
            None
        } else {
            let mut listener = UnixListener::bind(&o.socket)?;
            poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
            Some(listener)
        };
        let (signals, mut stop) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGTERM, signals)?;
        poll.registry().register(&mut stop, STOP, Interest::READABLE)?;
        Ok(Self { poll, events: Events::with_capacity(64), sockets, listener, spare: Spare::hold(), _stop: stop })
    }

    /// Waits for an event or the timeout. False: SIGTERM.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<bool> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(error.into()),
            _ => Ok(!self.events.iter().any(|event| event.token() == STOP)),
        }
    }

    /// Returns the next local connection for which there is a descriptor; None: none now.
    pub fn next_local(&mut self) -> Result<Option<Socket>> {
        let Some(listener) = &self.listener else { return Ok(None) };
        loop {
            match listener.accept() {
                Ok((mut socket, _)) if self.spare.is_held() => {
                    self.poll.registry().register(&mut socket, LOCAL, Interest::READABLE | Interest::WRITABLE)?;
                    return Ok(Some(Socket::Unix(socket)));
                }
                Ok(_) => {}
                Err(error) if self.spare.give_up(&error) => {}
                Err(_) => return Ok(None),
            }
        }
    }

    /// Starts a connection to the upstream server; None: failed.
    pub fn connect(&mut self, upstream: SocketAddr) -> Result<Option<Socket>> {
        let Ok(mut socket) = TcpStream::connect(upstream) else { return Ok(None) };
        self.poll.registry().register(&mut socket, LOCAL, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Some(Socket::Tcp(socket)))
    }
}
