//! Being told to stop.

use std::io;

use tokio::select;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for SIGTERM and SIGINT.
#[derive(Debug)]
pub struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    /// From now on.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Returns when this process is told to stop.
    pub async fn told(&mut self) {
        select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
