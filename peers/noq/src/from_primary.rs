//! noq opens a connection without a source address, i.e. over the default route. This socket sends such datagrams from
//! the primary path's address; datagrams of other paths have a source address.
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};

#[derive(Debug)]
pub struct FromPrimary {
    socket: Box<dyn AsyncUdpSocket>,
    primary: IpAddr,
}

impl FromPrimary {
    pub fn new(socket: Box<dyn AsyncUdpSocket>, primary: IpAddr) -> Self {
        Self { socket, primary }
    }
}

impl AsyncUdpSocket for FromPrimary {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender { sender: self.socket.create_sender(), primary: self.primary })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

#[derive(Debug)]
struct Sender {
    sender: Pin<Box<dyn UdpSender>>,
    primary: IpAddr,
}

impl UdpSender for Sender {
    fn poll_send(self: Pin<&mut Self>, transmit: &Transmit<'_>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let named = Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn,
            contents: transmit.contents,
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip.or(Some(this.primary)),
        };
        this.sender.as_mut().poll_send(&named, cx)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.sender.max_transmit_segments()
    }
}
