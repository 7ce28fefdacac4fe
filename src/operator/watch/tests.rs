//! What a watch tells of itself.

use futures::stream;
use kube::Config;
use tokio::sync::mpsc;

use super::*;
use crate::model::unread::{Unread, WhyUnread};

fn watch(out: Sender<Seen>, unread: UnreadNow) -> Watch {
    Watch {
        kind: Watched::Report,
        extent: Extent::Cluster,
        scope: Arc::default(),
        client: Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap(),
        metrics: Metrics::new().unwrap(),
        unread,
        out,
        begun: watch::channel(true).1,
        gained: unbounded_channel().1,
        unreadable: Unreadables::new(Watched::Report, Metrics::new().unwrap()),
        first_list: FirstList::Paged,
    }
}

#[tokio::test]
async fn trouble_ends_with_what_was_read_and_not_with_the_next_attempt() {
    let (out, mut seen) = mpsc::channel(8);
    let watch = watch(out, UnreadNow::new(Metrics::new().unwrap()));
    let (mut listing, mut health) = (Listing::InProgress, Health::default());
    let events = [
        (Err(watcher::Error::NoResourceVersion), true),
        (Ok(watcher::Event::Init), true),
        (Err(watcher::Error::NoResourceVersion), true),
        (Ok(watcher::Event::Init), true),
        (Ok(watcher::Event::InitDone), false),
    ];
    for (event, expected) in events {
        assert!(
            watch.tell(&Extent::Cluster, event, &mut listing, &mut health, |object| Ok(report(object))).await.is_ok()
        );
        assert_eq!(health.is_failing(), expected);
    }
    assert!(matches!(seen.recv().await, Some(Seen { event: watcher::Event::Init, .. })));
}

/// The client says nothing of a watch that works again and on which nothing happens.
#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_for_long_is_told_and_one_that_is_quiet_again_is_not() {
    let unread = UnreadNow::new(Metrics::new().unwrap());
    let mut told = unread.subscribe();
    let (out, _seen) = mpsc::channel(8);
    let fails = || Err(watcher::Error::NoResourceVersion);
    let events = move |_: &Watch, _: &Extent| -> Events<StoredReport> {
        let events = [
            (0, Ok(watcher::Event::Init)),
            (0, Ok(watcher::Event::InitDone)),
            (0, fails()),
            (20, fails()),
            (20, fails()),
        ];
        let later = |(seconds, event)| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            event
        };
        stream::iter(events).then(later).chain(stream::pending()).boxed()
    };
    let begin = Instant::now();
    let following = tokio::spawn(watch(out, unread).follow(events, |object| Ok(report(object))));
    let expected = Unread::new(Watched::Report, &Extent::Cluster, WhyUnread::Failing);
    assert_eq!(*told.wait_for(|told| !told.is_empty()).await.unwrap(), [expected].into());
    assert_eq!(begin.elapsed().as_secs(), 40);
    assert!(told.wait_for(|told| told.is_empty()).await.is_ok());
    assert_eq!(begin.elapsed().as_secs(), 130);
    following.abort();
}
