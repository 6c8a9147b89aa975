//! Streams of tquic. tquic wakes up every millisecond for a stream that is wanted and ready, and after each call about
//! a stream. So it is called only if there is something to read or write.
use bytes::Bytes;
use railyard_relay::pump::Streams;
use tquic::error::Error;
use tquic::{Connection, Shutdown};

const CANCELLED: u64 = 1; // application error code of a cancelled stream

pub struct Tquic<'a>(pub &'a mut Connection);

impl Streams for Tquic<'_> {
    fn room(&mut self, stream: u64) -> Result<usize, ()> {
        self.0.stream_capacity(stream).map_err(|_| ())
    }

    fn write(&mut self, stream: u64, bytes: &[u8], fin: bool) -> Result<usize, ()> {
        match self.0.stream_write(stream, Bytes::copy_from_slice(bytes), fin) {
            Ok(n) => Ok(n),
            Err(Error::Done) => Ok(0),
            Err(_) => Err(()),
        }
    }

    fn read(&mut self, stream: u64, into: &mut [u8]) -> Result<Option<(usize, bool)>, ()> {
        if !self.0.stream_readable(stream) {
            return Ok(None);
        }
        match self.0.stream_read(stream, into) {
            Ok(read) => Ok(Some(read)),
            Err(Error::Done) => Ok(None),
            Err(_) => Err(()),
        }
    }

    fn cancel(&mut self, stream: u64) {
        let _ = self.0.stream_shutdown(stream, Shutdown::Write, CANCELLED);
        let _ = self.0.stream_shutdown(stream, Shutdown::Read, CANCELLED);
    }

    fn want(&mut self, stream: u64, to_read: bool, to_write: bool) {
        let _ = self.0.stream_want_read(stream, to_read);
        let _ = self.0.stream_want_write(stream, to_write);
    }
}
