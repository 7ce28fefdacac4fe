//! Asking the leader for its index, to see what it knows.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

use crate::model::index::dump::Dump;

/// Where the leader is asked.
#[derive(Debug, Clone, Default)]
pub struct Desk(Arc<Mutex<Option<mpsc::Sender<Question>>>>);

/// What the leader is asked.
pub type Asked = mpsc::Receiver<Question>;

/// Somebody wants the index.
#[derive(Debug)]
pub struct Question(oneshot::Sender<Dump>);

impl Question {
    /// Tells it.
    pub fn answer(self, dump: Dump) {
        // Who asked may be gone.
        let _ = self.0.send(dump);
    }
}

impl Desk {
    /// A leader is here from now on, until it drops what it gets.
    pub fn open(&self) -> Asked {
        let (ask, asked) = mpsc::channel(1);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(ask);
        asked
    }

    /// The index; `None` while this process does not lead.
    pub async fn ask(&self) -> Option<Dump> {
        let leader = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let (answer, told) = oneshot::channel();
        leader.send(Question(answer)).await.ok()?;
        told.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_leader_answers() {
        let desk = Desk::default();
        assert!(desk.ask().await.is_none());
        let mut asked = desk.open();
        let (told, ()) = tokio::join!(desk.ask(), async { asked.recv().await.unwrap().answer(Dump::default()) });
        assert!(told.is_some());
        drop(asked);
        assert!(desk.ask().await.is_none());
    }
}
