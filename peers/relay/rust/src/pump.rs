//! A local connection and the stream that carries it, for stacks without their own event loop.
use std::io::{self, Read, Write};
use std::net::Shutdown;

use mio::net::{TcpStream, UnixStream};

const BUFFER_BYTES: usize = 16384;

/// Access to the streams of a connection. `Err`: the stream was reset or stopped, or does not exist any more.
pub trait Streams {
    /// Returns how many bytes a write would take.
    fn room(&mut self, stream: u64) -> Result<usize, ()>;
    /// Returns how many bytes it took. `fin`: the end of the stream follows them.
    fn write(&mut self, stream: u64, bytes: &[u8], fin: bool) -> Result<usize, ()>;
    /// Returns the number of bytes, and whether the end of the stream follows them. None: nothing to read.
    fn read(&mut self, stream: u64, into: &mut [u8]) -> Result<Option<(usize, bool)>, ()>;
    /// Cancels a stream in both directions.
    fn cancel(&mut self, stream: u64);
    /// Sets which events of a stream are wanted; called when that changes.
    fn want(&mut self, _stream: u64, _to_read: bool, _to_write: bool) {}
}

pub enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.read(into),
            Self::Tcp(socket) => socket.read(into),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.write(bytes),
            Self::Tcp(socket) => socket.write(bytes),
        }
    }

    fn end(&self) -> io::Result<()> {
        match self {
            Self::Unix(socket) => socket.shutdown(Shutdown::Write),
            Self::Tcp(socket) => socket.shutdown(Shutdown::Write),
        }
    }
}

/// Whether to try again later. NotConnected: the TCP socket is still connecting.
fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected | io::ErrorKind::Interrupted)
}

/// One direction.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    is_at_end: bool,   // the end follows `bytes`
    has_passed: bool,  // the end has been passed on
}

pub struct Local {
    pub connection: u64,
    pub stream: Option<u64>, // None: waits for the handshake
    socket: Socket,
    to_stream: Buffer,
    to_socket: Buffer,
    wants: Option<(bool, bool)>, // to read, to write: arguments of the last want()
}

/// Result of Local::pump().
#[derive(PartialEq)]
pub enum Pumped {
    Nothing,
    Something,
    Over,
}

impl Local {
    pub fn new(connection: u64, stream: Option<u64>, socket: Socket) -> Self {
        Self { connection, stream, socket, to_stream: Buffer::default(), to_socket: Buffer::default(), wants: None }
    }

    /// Moves as many bytes as possible. After `Over`, drop the local connection.
    pub fn pump(&mut self, connection: &mut impl Streams) -> Pumped {
        let Some(stream) = self.stream else { return Pumped::Nothing };
        match self.pump_both(connection, stream) {
            Ok(_) if self.to_stream.has_passed && self.to_socket.has_passed => Pumped::Over,
            Ok(true) => Pumped::Something,
            Ok(false) => Pumped::Nothing,
            Err(()) => {
                connection.cancel(stream);
                Pumped::Over
            }
        }
    }

    /// Returns whether any bytes moved. An error ends both directions.
    fn pump_both(&mut self, connection: &mut impl Streams, stream: u64) -> Result<bool, ()> {
        let moved = [
            self.read_socket()?,
            self.write_stream(connection, stream)?,
            self.read_stream(connection, stream)?,
            self.write_socket()?,
        ];
        self.tell_wants(connection, stream);
        Ok(moved.contains(&true))
    }

    fn tell_wants(&mut self, connection: &mut impl Streams, stream: u64) {
        let wants = (self.to_socket.bytes.len() < BUFFER_BYTES, !self.to_stream.bytes.is_empty());
        if self.wants != Some(wants) {
            connection.want(stream, wants.0, wants.1);
            self.wants = Some(wants);
        }
    }

    fn read_socket(&mut self) -> Result<bool, ()> {
        let buffer = &mut self.to_stream;
        let from = buffer.bytes.len();
        if buffer.is_at_end || from >= BUFFER_BYTES {
            return Ok(false);
        }
        buffer.bytes.resize(BUFFER_BYTES, 0);
        let read = self.socket.read(&mut buffer.bytes[from..]);
        buffer.bytes.truncate(from + read.as_ref().unwrap_or(&0));
        match read {
            Ok(n) => buffer.is_at_end = n == 0,
            Err(error) if waits(&error) => return Ok(false),
            Err(_) => return Err(()),
        }
        Ok(true)
    }

    fn write_stream(&mut self, connection: &mut impl Streams, stream: u64) -> Result<bool, ()> {
        let buffer = &mut self.to_stream;
        if buffer.has_passed {
            return Ok(false);
        }
        // Called for its error too: a write would not report that the peer has stopped the stream.
        let room = connection.room(stream)?;
        let all = buffer.bytes.len();
        if all == 0 && !buffer.is_at_end || all > 0 && room == 0 {
            return Ok(false);
        }
        let n = connection.write(stream, &buffer.bytes, buffer.is_at_end)?;
        buffer.bytes.drain(..n);
        buffer.has_passed = buffer.is_at_end && n == all;
        Ok(n > 0 || buffer.has_passed)
    }

    fn read_stream(&mut self, connection: &mut impl Streams, stream: u64) -> Result<bool, ()> {
        let buffer = &mut self.to_socket;
        let from = buffer.bytes.len();
        if buffer.is_at_end || from >= BUFFER_BYTES {
            return Ok(false);
        }
        buffer.bytes.resize(BUFFER_BYTES, 0);
        let read = connection.read(stream, &mut buffer.bytes[from..]);
        buffer.bytes.truncate(from + read.map_or(0, |read| read.map_or(0, |(n, _)| n)));
        let Some((_, fin)) = read? else { return Ok(false) };
        buffer.is_at_end = fin;
        Ok(true)
    }

    fn write_socket(&mut self) -> Result<bool, ()> {
        let buffer = &mut self.to_socket;
        let mut moved = false;
        while !buffer.bytes.is_empty() {
            match self.socket.write(&buffer.bytes) {
                Ok(n) => buffer.bytes.drain(..n),
                Err(error) if waits(&error) => return Ok(moved),
                Err(_) => return Err(()),
            };
            moved = true;
        }
        if buffer.is_at_end && !buffer.has_passed {
            self.socket.end().map_err(|_| ())?;
            buffer.has_passed = true;
            moved = true;
        }
        Ok(moved)
    }
}
