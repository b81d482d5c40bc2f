//! Who is calling, and which models they may name.

use toolgate_config::Config;
use toolgate_policies::facts::Caller;
use toolgate_policies::gate::{Refused, Shown, admit, recognise};

fn config(head: &str, models: &str) -> Config {
    let keys = format!(
        "keys:\n  - {{ name: all, hash: \"sha256:{}\", act_for: true }}\n  - {{ name: one, hash: \"sha256:{}\", models: [m] }}\n",
        crate::hash("tg-all"),
        crate::hash("tg-one"),
    );
    let provider = "providers: { p: { kind: openai_compatible, base_url: \"http://127.0.0.1:1\" } }";
    let text = format!("{head}\n{provider}\nmodels: {models}\n{}", if head.is_empty() { keys.as_str() } else { "" });
    crate::config(&text)
}

const NAMED: &str = "{ m: { provider: p }, n: { provider: p } }";
const ANY: &str = "{ m: { provider: p }, \"*\": { provider: p } }";

fn seen(config: &Config, secret: Option<&str>, user: Option<&str>) -> Result<String, Refused> {
    let show = |caller: Caller| {
        let bearer = caller.bearer.as_ref().map(|bearer| bearer.expose());
        format!("{} {:?} {bearer:?}", caller.label(), caller.user)
    };
    recognise(config, Shown { secret, user }).map(show)
}

#[test]
fn a_caller_is_known_by_its_secret() {
    let config = config("", NAMED);
    let known = |text: &str| Ok(text.to_owned());
    let table = [
        (Some("tg-all"), None, known("all None None")),
        (Some("tg-all"), Some("u"), known("all Some(\"u\") None")),
        (Some("tg-one"), None, known("one None None")),
        (Some("tg-one"), Some("u"), Err(Refused::UserNotAllowed)),
        (Some("tg-al"), None, Err(Refused::UnknownKey)),
        (Some("TG-ALL"), None, Err(Refused::UnknownKey)),
        (Some(""), None, Err(Refused::UnknownKey)),
        (None, None, Err(Refused::UnknownKey)),
        // The key is judged first.
        (None, Some("u"), Err(Refused::UnknownKey)),
    ];
    for (secret, user, expected) in table {
        assert_eq!(seen(&config, secret, user), expected, "{secret:?} {user:?}");
    }
}

#[test]
fn without_keys_everybody_is_anonymous() {
    let none = config("auth: none", NAMED);
    let through = config("auth: passthrough", NAMED);
    assert_eq!(seen(&none, Some("sk-own"), None).unwrap(), "anonymous None None");
    assert_eq!(seen(&through, Some("sk-own"), None).unwrap(), "anonymous None Some(\"sk-own\")");
    assert_eq!(seen(&through, None, None).unwrap(), "anonymous None None");
    for config in [none, through] {
        assert_eq!(seen(&config, None, Some("u")), Err(Refused::UserNotAllowed));
    }
}

#[test]
fn a_model_is_there_and_the_key_may_name_it() {
    let (named, any) = (config("", NAMED), config("", ANY));
    let table = [
        (&named, "tg-all", "m", Ok("m")),
        (&named, "tg-all", "n", Ok("n")),
        (&named, "tg-all", "M", Err(Refused::ModelNotFound)),
        (&named, "tg-all", "*", Err(Refused::ModelNotFound)),
        (&named, "tg-one", "m", Ok("m")),
        (&named, "tg-one", "n", Err(Refused::ModelNotAllowed)),
        (&named, "tg-one", "x", Err(Refused::ModelNotFound)),
        (&any, "tg-all", "x", Ok("x")),
        (&any, "tg-all", "*", Err(Refused::ModelNotFound)),
        (&any, "tg-all", "", Err(Refused::ModelNotFound)),
        (&any, "tg-one", "x", Err(Refused::ModelNotAllowed)),
    ];
    for (config, secret, model, expected) in table {
        let caller = recognise(config, Shown { secret: Some(secret), user: None }).unwrap();
        let seen = admit(config, &caller, model).map(|model| model.upstream_model.clone());
        assert_eq!(seen, expected.map(str::to_owned), "{secret} {model}");
    }
    let anonymous = config("auth: none", ANY);
    let caller = recognise(&anonymous, Shown::default()).unwrap();
    assert!(admit(&anonymous, &caller, "x").is_ok());
}
