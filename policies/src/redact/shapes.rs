//! The catalogue: credentials that are known by how they begin. A row a shape.

use super::hit::{Hit, Tail};
use super::kind::Kind;
use super::view::{Class, Found, View, alnum, alnum_, base64, dotted, dotted_padded, hex, lower_hex, token, upper_alnum};

/// A credential that is known by how it begins.
pub(super) struct Shape {
    /// How it begins, in exactly these letters.
    pub(super) prefix: &'static str,
    kind: Kind,
    /// What follows.
    body: Class,
    /// How much of that.
    length: Length,
}

/// How long the body of a shape is, in bytes.
enum Length {
    /// So long; it is another thing if it goes on.
    Exactly(usize),
    /// At least so long.
    From(usize),
    /// At least so long, with a digit in that much of it: words that are written with hyphens have none.
    WithDigit(usize),
}

use Length::{Exactly, From, WithDigit};

macro_rules! shapes {
    ($($kind:ident { $($prefix:literal $body:ident $length:expr,)+ })+) => {
        /// Every shape.
        pub(super) static SHAPES: &[Shape] = &[$($(Shape { prefix: $prefix, kind: Kind::$kind, body: $body, length: $length },)+)+];
    };
}

shapes! {
    ApiKey {
        // OpenAI, Anthropic, DeepSeek, OpenRouter and others: sk-, sk-proj-, sk-ant-, sk-or-v1-.
        "sk-" token From(16),
        // Groq, xAI, Perplexity, Replicate, Fireworks.
        "gsk_" alnum From(20),
        "xai-" alnum From(20),
        "pplx-" alnum From(32),
        "r8_" alnum From(30),
        "fw_" alnum From(20),
        // Hugging Face.
        "hf_" alnum From(20),
        "api_org_" alnum From(20),
        // SendGrid, Resend, Brevo, Mailgun, Twilio.
        "SG." dotted From(40),
        "re_" alnum_ WithDigit(24),
        "xkeysib-" token From(32),
        "key-" lower_hex Exactly(32),
        "SK" lower_hex Exactly(32),
        // DigitalOcean, Shopify, Databricks, Linear, Notion, Atlassian.
        "dop_v1_" lower_hex From(32),
        "doo_v1_" lower_hex From(32),
        "dor_v1_" lower_hex From(32),
        "shpat_" hex From(32),
        "shpss_" hex From(32),
        "shpca_" hex From(32),
        "shppa_" hex From(32),
        "dapi" lower_hex From(32),
        "lin_api_" alnum From(20),
        "lin_oauth_" alnum From(20),
        "ntn_" alnum From(20),
        "ATATT3" base64 From(20),
        "ATCTT3" base64 From(20),
        // New Relic, Doppler, Postman, Grafana, Sentry, PostHog, Datadog's neighbours.
        "NRAK-" upper_alnum From(20),
        "NRJS-" lower_hex From(16),
        "NRII-" token From(20),
        "dp.pt." alnum From(20),
        "dp.st." dotted From(20),
        "dp.ct." alnum From(20),
        "dp.sa." alnum From(20),
        "dp.scim." alnum From(20),
        "dp.audit." alnum From(20),
        "PMAK-" token From(24),
        "glsa_" alnum_ From(20),
        "glc_" base64 From(20),
        "sntrys_" dotted_padded From(20),
        "sntryu_" lower_hex From(20),
        "phx_" alnum From(20),
        // Vault, Pulumi, Tailscale, 1Password, Netlify, Supabase, Figma, Fly, Airtable, Square, Dropbox, Facebook.
        "hvs." token From(20),
        "hvb." token From(20),
        "hvr." token From(20),
        "pul-" lower_hex From(32),
        "tskey-" token From(16),
        "ops_" base64 From(40),
        "nfp_" alnum From(20),
        "sbp_" lower_hex From(32),
        "sb_secret_" token From(16),
        "figd_" token From(20),
        "fo1_" token From(20),
        "sq0atp-" token From(20),
        "sq0csp-" token From(20),
        "sl.u." token From(40),
        "sl.B" token From(60),
        "EAACEdEose0cBA" alnum From(10),
        "rzp_live_" alnum From(12),
        "rzp_test_" alnum From(12),
        // toolgate's own.
        "tg-" alnum From(32),
    }
    AwsKey {
        "AKIA" upper_alnum Exactly(16),
        "ASIA" upper_alnum Exactly(16),
        "ABIA" upper_alnum Exactly(16),
        "ACCA" upper_alnum Exactly(16),
        "ABSK" base64 From(60),
    }
    GoogleKey {
        "AIza" token From(35),
        "ya29." token From(20),
        "GOCSPX-" token From(20),
        "1//0" token From(30),
    }
    GithubToken {
        "ghp_" alnum From(20),
        "gho_" alnum From(20),
        "ghu_" alnum From(20),
        "ghs_" alnum From(20),
        "ghr_" alnum From(20),
        "github_pat_" alnum_ From(22),
    }
    GitlabToken {
        "glpat-" dotted From(16),
        "gldt-" token From(16),
        "glrt-" dotted From(16),
        "glcbt-" token From(16),
        "glptt-" token From(16),
        "glsoat-" token From(16),
        "glft-" token From(16),
        "glimt-" token From(16),
        "glagent-" token From(16),
        "GR1348941" token From(16),
    }
    SlackToken {
        "xoxb-" token From(10),
        "xoxp-" token From(10),
        "xoxa-" token From(10),
        "xoxr-" token From(10),
        "xoxs-" token From(10),
        "xoxe-" token From(10),
        "xoxe.xox" dotted From(10),
        "xoxc-" token From(10),
        "xoxd-" token From(10),
        "xapp-" token WithDigit(10),
    }
    StripeKey {
        "sk_live_" alnum From(16),
        "sk_test_" alnum From(16),
        "pk_live_" alnum From(16),
        "pk_test_" alnum From(16),
        "rk_live_" alnum From(16),
        "rk_test_" alnum From(16),
        "whsec_" base64 From(20),
    }
    RegistryToken {
        "npm_" alnum From(30),
        "pypi-Ag" token From(30),
        "dckr_pat_" token From(20),
        "dckr_oat_" token From(20),
        "rubygems_" lower_hex From(32),
        "cio" alnum Exactly(32),
    }
    PrivateKey {
        "AGE-SECRET-KEY-1" upper_alnum From(40),
    }
}

impl Shape {
    /// Whether such a credential begins at `start`; its prefix, in some case, ends at `end`.
    pub(super) fn find(&self, view: &View<'_>, start: usize, end: usize) -> Found<Option<Hit>> {
        if !view.word_begins(start) || !view.is(start, self.prefix.as_bytes()) {
            return Ok(None);
        }
        let (least, most) = self.length.bounds();
        let to = view.run(end, most, self.body)?;
        let body = view.slice(end, to);
        let fits = match self.length {
            Exactly(length) => body.len() == length && !view.word_goes_on(to)?,
            From(_) => body.len() == least,
            WithDigit(_) => body.len() == least && body.iter().any(u8::is_ascii_digit),
        };
        Ok(fits.then(|| Hit::new(start, to, self.kind.clone()).with(Tail::Run(self.body))))
    }
}

impl Length {
    /// How much there must be, and how much is looked at.
    fn bounds(&self) -> (usize, usize) {
        match *self {
            Exactly(length) | From(length) | WithDigit(length) => (length, length),
        }
    }
}

/// The first half of a Mailchimp key: 32 digits of lower-case hexadecimal; `-us` and a number follow.
pub(super) fn mailchimp(view: &View<'_>, start: usize, end: usize) -> Found<Option<Hit>> {
    let from = view.run_back(start, MAILCHIMP + 1, lower_hex);
    if start - from != MAILCHIMP || !view.word_begins(from) || !view.at(end)?.is_some_and(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    Ok(Some(Hit::new(from, end, Kind::ApiKey).with(Tail::Run(alnum))))
}

/// How many digits of hexadecimal a Mailchimp key begins with.
pub(super) const MAILCHIMP: usize = 32;

/// Credentials that are too much like other things to be taken out of a longer text: Twilio's 32 digits of hexadecimal, PayPal's `E` and 50 to 80.
pub(super) fn whole(view: &View<'_>, start: usize) -> Found<Option<Hit>> {
    let twilio = view.run(start, 33, lower_hex)?;
    let paypal = if view.at(start)? == Some(b'E') { view.run(start, 82, token)? } else { start };
    let end = twilio.max(paypal);
    let fits = end == start + 32 && end == twilio || (51..=81).contains(&(paypal - start));
    Ok((fits && view.at(end)?.is_none()).then(|| Hit::new(start, end, Kind::ApiKey)))
}
