//! The operator's log: text on a terminal, and one JSON object a line elsewhere. Both have the same fields.

use std::io::{self, IsTerminal as _};

use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Filter, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// What is logged by default. The client and its watches log each failure that we tell in a sentence of our own, and at
/// every retry.
pub const DEFAULT: &str = "info,kube_client=off,kube_runtime=off";

/// Logs what this filter lets through to standard error from now on.
pub fn begin(filter: &str) {
    let form = if io::stderr().is_terminal() { Form::Text } else { Form::Json };
    tracing_subscriber::registry().with(layer(form, io::stderr).with_filter(logged(filter))).init();
}

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

fn layer<S, W>(form: Form, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    match form {
        Form::Text => layer.boxed(),
        Form::Json => layer.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    }
}

/// A filter that can be used.
pub fn filter(text: &str) -> Result<String, String> {
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// What is logged: what the user asks for, but never the answers that the client can't read. It logs them in full.
fn logged<S: Subscriber + for<'a> LookupSpan<'a>>(filter: &str) -> impl Filter<S> + 'static {
    EnvFilter::new(filter).and(filter_fn(|metadata| metadata.target() != "kube_client::client"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(form: Form, filter: &str, logs: impl FnOnce()) -> String {
        let written = Written::default();
        let writer = written.clone();
        let log = tracing_subscriber::registry().with(layer(form, move || writer.clone()).with_filter(logged(filter)));
        tracing::subscriber::with_default(log, logs);
        String::from_utf8(written.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn an_answer_that_the_client_cannot_read_is_logged_at_no_level() {
        for form in [Form::Text, Form::Json] {
            let written = written(form, "trace,kube_client::client=trace", || {
                tracing::warn!(target: "kube_client::client", "the whole answer");
                tracing::debug!(target: "kube_client::client::builder", "requesting");
            });
            assert!(written.contains("requesting") && !written.contains("the whole answer"), "{written}");
        }
    }

    #[test]
    fn a_line_of_json_is_flat() {
        let written = written(Form::Json, "info", || tracing::info!(kind = "Deployment", ns = "tools", "reload"));
        let line: serde_json::Value = serde_json::from_str(&written).unwrap();
        let fields = ["level", "message", "kind", "ns"].map(|name| line[name].as_str().unwrap());
        assert_eq!(fields, ["INFO", "reload", "Deployment", "tools"]);
    }
}
