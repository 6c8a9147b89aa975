//! Counters for the client's `path` records, from s2n-quic's events.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber, events};

#[derive(Default)]
pub struct Counters {
    pub sent: AtomicU64,
    pub received: AtomicU64,
    pub srtt_us: AtomicU64,
}

pub struct Watch(pub Arc<Counters>);

impl Subscriber for Watch {
    type ConnectionContext = ();

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo) {}

    fn on_datagram_sent(&mut self, _: &mut (), _: &ConnectionMeta, event: &events::DatagramSent) {
        self.0.sent.fetch_add(u64::from(event.len), Relaxed);
    }

    fn on_datagram_received(&mut self, _: &mut (), _: &ConnectionMeta, event: &events::DatagramReceived) {
        self.0.received.fetch_add(u64::from(event.len), Relaxed);
    }

    fn on_recovery_metrics(&mut self, _: &mut (), _: &ConnectionMeta, event: &events::RecoveryMetrics) {
        self.0.srtt_us.store(event.smoothed_rtt.as_micros() as u64, Relaxed);
    }
}

