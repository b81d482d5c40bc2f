//! What the provider behind `"*"` itself lists as its models, for `GET /v1/models`. It is asked for seldom and by one at a time, and what it said
//! is kept for a while; where it fails, that is kept for a moment. Nothing of a caller's leaves with the question but, where bearers pass
//! through, its own key for that provider; so the gate has nothing to clear.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, StatusCode, Uri};
use parking_lot::Mutex;
use tokio::sync::Mutex as Turn;
use tokio::time::{Instant, timeout};
use toolgate_config::key::KeyHash;
use toolgate_config::provider::Provider;
use toolgate_config::secret::Secret;
use toolgate_policies::gate;
use toolgate_tools::net::{Net, Patience, Segments};

use crate::provider;
use crate::provider::listing::{Listed, path, read};

/// How long a list is kept, and how long it is kept in mind that there is none.
const KEPT: Duration = Duration::from_secs(300);
const KEPT_FAILURE: Duration = Duration::from_secs(10);

/// How long reading a list may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest page, in bytes; the most pages; the most models.
const LONGEST_PAGE: usize = 8 * 1024 * 1024;
const MOST_PAGES: usize = 20;
const MOST_MODELS: usize = 10_000;

/// The most lists that are kept: where callers bring keys of their own, each has its own.
const MOST_LISTS: usize = 256;

/// The lists that are kept.
#[derive(Default)]
pub struct Listings(Mutex<HashMap<Account, Arc<Turn<Option<Known>>>>>);

/// Whose list it is: a provider's, as one key sees it.
#[derive(PartialEq, Eq, Hash)]
struct Account {
    place: String,
    key: Option<KeyHash>,
}

/// A list, and until when it is believed.
#[derive(Clone)]
struct Known {
    models: Arc<[Listed]>,
    until: Instant,
}

impl Listings {
    /// The models that a provider lists, as this key sees them; nothing where it fails. Of those who ask at the same time, one reads it.
    pub async fn of(&self, net: &Net, provider: &Provider, key: Option<&Secret>, is_callers_own: bool) -> Arc<[Listed]> {
        let turn = self.turn(Account {
            place: format!("{} {}{}", provider.name, provider.base_url.origin.authority(), provider.base_url.path),
            key: key.map(|key| gate::hash_of(key.expose())),
        });
        let mut known = turn.lock().await;
        if let Some(known) = known.as_ref().filter(|known| Instant::now() < known.until) {
            return Arc::clone(&known.models);
        }
        let asked = timeout(PATIENCE, fetch(net, provider, key, is_callers_own)).await;
        let (models, kept) = match asked.unwrap_or_else(|_| Err("it took too long".to_owned())) {
            Ok(models) => (models, KEPT),
            Err(why) => {
                tracing::warn!(provider = %provider.name, why, "the provider's list of models could not be read");
                (Vec::new(), KEPT_FAILURE)
            }
        };
        let models: Arc<[Listed]> = models.into();
        *known = Some(Known { models: Arc::clone(&models), until: Instant::now() + kept });
        models
    }

    fn turn(&self, account: Account) -> Arc<Turn<Option<Known>>> {
        let mut lists = self.0.lock();
        if lists.len() >= MOST_LISTS && !lists.contains_key(&account) {
            let now = Instant::now();
            lists.retain(|_, turn| turn.try_lock().map_or(true, |known| known.as_ref().is_some_and(|known| now < known.until)));
            if lists.len() >= MOST_LISTS {
                lists.clear();
            }
        }
        Arc::clone(lists.entry(account).or_default())
    }
}

/// Reads a list, page by page.
async fn fetch(net: &Net, provider: &Provider, key: Option<&Secret>, is_callers_own: bool) -> Result<Vec<Listed>, String> {
    let (mut models, mut next) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let mut request = Request::new(Segments::none());
        *request.uri_mut() = Uri::try_from(path(provider, next.as_deref())).map_err(|error| error.to_string())?;
        *request.headers_mut() = provider::headers(provider, key, is_callers_own, &HeaderMap::new(), false);
        let patience = Patience { connect: provider.connect_timeout, first_byte: provider.first_byte_timeout };
        let answer = net.send(&provider.base_url.origin, request, patience).await.map_err(|error| error.to_string())?;
        if answer.head.status != StatusCode::OK {
            return Err(format!("status {}", answer.head.status.as_u16()));
        }
        let body = answer.body.whole(LONGEST_PAGE, provider.idle_timeout).await.map_err(|error| error.to_string())?;
        let page = read(provider, &body).ok_or("it is no list")?;
        models.extend(page.models);
        if page.next.is_none() || page.next == next || models.len() >= MOST_MODELS {
            break;
        }
        next = page.next;
    }
    models.truncate(MOST_MODELS);
    Ok(models)
}
