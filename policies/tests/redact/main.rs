//! Redaction, as whoever uses it sees it.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is test code: what cannot go on stops the test")]

mod corpus;
mod property;
mod shapes;
mod stream;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use toolgate_config::redaction::{Pattern, Personal, Rules};
use toolgate_policies::redact::{Counts, Redactor, Window};

/// Everything that is built in, and a pattern.
fn everything() -> Rules {
    let pattern = |name: &str, regex: &str| Pattern { name: name.into(), regex: regex.into() };
    Rules {
        secrets: true,
        personal: Personal::ALL.into_iter().collect(),
        patterns: Arc::from([pattern("ticket", "TCK-[0-9]{6}"), pattern("canary", "SECRET-CANARY-[0-9]+")]),
    }
}

fn redactor() -> Redactor {
    Redactor::new(&everything())
}

/// The same, compiled once.
fn shared() -> Arc<Redactor> {
    static SHARED: LazyLock<Arc<Redactor>> = LazyLock::new(|| Arc::new(redactor()));
    SHARED.clone()
}

/// What is left of a text, which is also what is left of it the second time.
fn redacted(redactor: &Redactor, text: &str) -> String {
    let once = redactor.text(text, &mut Counts::default()).into_owned();
    let twice = redactor.text(&once, &mut Counts::default());
    assert!(matches!(twice, Cow::Borrowed(_)), "{text:?} becomes {once:?}, and that {twice:?}");
    once
}

/// What is left of a stream that comes in these pieces.
fn streamed<'t>(redactor: &Arc<Redactor>, pieces: impl IntoIterator<Item = &'t str>) -> (String, Counts) {
    let (mut window, mut counts) = (Window::new(redactor.clone()), Counts::default());
    let mut out: String = pieces.into_iter().map(|piece| window.push(piece, &mut counts).into_owned()).collect();
    out.push_str(&window.finish(&mut counts));
    (out, counts)
}
