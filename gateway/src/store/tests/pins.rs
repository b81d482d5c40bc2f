//! What is known of tools, wherever it is kept.

use toolgate_config::store::StoreUrl;

use super::house::{Folder, run, wherever};
use crate::store::pins::{Digest, MOST_OF_SERVER, Pin, Pins, look};

fn pin(server: &str, tool: &str, definition: &str) -> Pin {
    Pin::of(server, tool, definition.to_owned())
}

async fn seen(pins: &Pins, seen: &[&Pin]) -> Vec<Option<Digest>> {
    pins.see(seen.iter().map(|pin| (*pin).clone()).collect()).await.unwrap()
}

async fn the_first_sight_holds_until_another_is_accepted(url: StoreUrl) {
    let pins = Pins::open(&url).unwrap();
    let (old, new, other) = (pin("crm", "find", "old"), pin("crm", "find", "new"), pin("shop", "find", "new"));
    assert_eq!(seen(&pins, &[&old, &other]).await, [Some(old.digest), Some(other.digest)]);
    assert_eq!(seen(&pins, &[&new, &other]).await, [Some(old.digest), Some(other.digest)]);
    pins.accept(vec![new.clone()]).await.unwrap();
    assert_eq!(seen(&pins, &[&new]).await, [Some(new.digest)]);
    assert_eq!(seen(&pins, &[&old]).await, [Some(new.digest)], "one who goes back to the old one has changed as well");
    assert_eq!(seen(&pins, &[]).await, []);
    pins.close().await;
}

async fn whoever_has_the_store_has_its_pins(url: StoreUrl) {
    if url == StoreUrl::None {
        return;
    }
    let at_look = |url: &StoreUrl| {
        let url = url.clone();
        std::thread::spawn(move || look(&url)).join().unwrap()
    };
    let (one, other) = (Pins::open(&url).unwrap(), Pins::open(&url).unwrap());
    let (old, new) = (pin("crm", "größe\0", "old"), pin("crm", "größe\0", "new"));
    assert_eq!(seen(&one, &[&old]).await, [Some(old.digest)]);
    assert_eq!(seen(&other, &[&new]).await, [Some(old.digest)]);
    assert_eq!(at_look(&url).unwrap(), [old]);
    other.accept(vec![new.clone()]).await.unwrap();
    assert_eq!(seen(&one, &[&new]).await, [Some(new.digest)]);
    assert_eq!(at_look(&url).unwrap(), [new]);
    one.close().await;
    other.close().await;
}

async fn a_server_with_ever_new_tools_fills_no_disk(url: StoreUrl) {
    let pins = Pins::open(&url).unwrap();
    let many: Vec<_> = (0..MOST_OF_SERVER).map(|number| pin("crm", &number.to_string(), "d")).collect();
    assert!(pins.see(many).await.unwrap().iter().all(Option::is_some));
    let more = pin("crm", "more", "d");
    assert_eq!(
        seen(&pins, &[&more, &pin("crm", "7", "d"), &pin("shop", "more", "d")]).await,
        [None, Some(more.digest), Some(more.digest)]
    );
    pins.close().await;
}

#[test]
fn a_store_that_is_not_there_is_not_made_by_looking() {
    let folder = Folder::new();
    let path = folder.path("toolgate.db");
    assert_eq!(look(&StoreUrl::Sqlite(path.clone())), Ok(Vec::new()));
    assert!(!path.exists());
}

#[test]
fn a_definition_that_is_too_long_is_known_by_its_digest() {
    let (one, other) = (pin("crm", "find", &"x".repeat(200_000)), pin("crm", "find", &"x".repeat(200_001)));
    assert_eq!((one.definition.as_str(), other.definition.as_str()), ("", ""));
    assert_ne!(one.digest, other.digest);
}

wherever!(
    a_server_with_ever_new_tools_fills_no_disk,
    the_first_sight_holds_until_another_is_accepted,
    whoever_has_the_store_has_its_pins,
);
