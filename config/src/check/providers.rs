//! `providers:`: addresses and credentials.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::server::credential;
use crate::address::BaseUrl;
use crate::names::ProviderName;
use crate::place::Faults;
use crate::provider::Provider;
use crate::raw::{self, At, File, Text};
use crate::secret::Secret;

pub(super) fn providers(file: &File, faults: &mut Faults) -> BTreeMap<ProviderName, Arc<Provider>> {
    let named = file.providers.value().into_iter().flat_map(|named| &named.0);
    named
        .filter_map(|(name, raw)| provider(ProviderName::new(name.value.as_str()), raw, faults))
        .map(|provider| (provider.name.clone(), Arc::new(provider)))
        .collect()
}

fn provider(name: ProviderName, raw: &raw::Provider, faults: &mut Faults) -> Option<Provider> {
    let base_url = base_url(raw, faults);
    let api_key = match raw.api_key.optional() {
        Some(Some(key)) => api_key(key, base_url.as_ref(), faults).map(Some),
        Some(None) => Some(None),
        None => None,
    };
    Some(Provider {
        name,
        kind: *raw.kind.value()?,
        base_url: base_url?,
        api_key: api_key?,
        trust_zone: *raw.trust_zone.value()?,
        connect_timeout: *raw.connect_timeout.value()?,
        first_byte_timeout: *raw.first_byte_timeout.value()?,
        idle_timeout: *raw.idle_timeout.value()?,
        retries: raw.retries.value()?.0,
    })
}

fn base_url(raw: &raw::Provider, faults: &mut Faults) -> Option<BaseUrl> {
    if let Some(At { value, place }) = raw.base_url.optional()? {
        let parsed = BaseUrl::parse(&value.whole()).map_err(|why| format!("this is no base URL: {why}"));
        return faults.take(place, parsed);
    }
    let Some(address) = raw.kind.value()?.default_address() else {
        faults.add(&raw.place, "`base_url` is missing; `openai_compatible` has no address of its own");
        return None;
    };
    BaseUrl::parse(address).ok()
}

fn api_key(raw: &At<Text>, base_url: Option<&BaseUrl>, faults: &mut Faults) -> Option<Secret> {
    if raw.value.is_literal() && base_url.is_some_and(|url| !url.origin.address.is_loopback()) {
        faults.add(&raw.place, "a key in clear for a provider that is not on loopback; allowed: ${NAME}, ${file:PATH}");
        return None;
    }
    credential(raw, faults)
}
