//! The demo's tools: a shop that knows three orders, two parcels and a customer. What it answers to a path, and nothing else.

use http::StatusCode;
use serde_json::{Value, json};

/// What is at a path.
pub(super) fn at(path: &str) -> (StatusCode, Value) {
    let found = path.trim_start_matches('/').split_once('/').and_then(|(shelf, number)| {
        let number = number.to_ascii_uppercase();
        match shelf {
            "orders" => order(&number),
            "parcels" => parcel(&number),
            "customers" => customer(&number),
            _ => None,
        }
    });
    found.map_or((StatusCode::NOT_FOUND, json!({ "error": "there is no such thing" })), |found| (StatusCode::OK, found))
}

fn order(number: &str) -> Option<Value> {
    let (summary, parcel) = match number {
        "A-1007" => ("a blue enamel kettle, was sent on Monday", Some("P-5512")),
        "A-1008" => ("two linen towels, is packed and waits for the carrier", None),
        "A-1009" => ("a bread knife, was sent on Tuesday", Some("P-5498")),
        _ => return None,
    };
    let summary = format!("The order {number}, {summary}.");
    Some(json!({ "order": number, "summary": summary, "parcel": parcel, "customer": "C-204" }))
}

fn parcel(number: &str) -> Option<Value> {
    let (state, last_seen, expected) = match number {
        "P-5512" => ("on its way", "Hamburg", "Thursday"),
        "P-5498" => ("on its way", "Lyon", "Friday"),
        _ => return None,
    };
    Some(json!({ "parcel": number, "carrier": "Nordpost", "state": state, "last_seen": last_seen, "expected": expected }))
}

fn customer(number: &str) -> Option<Value> {
    (number == "C-204").then(|| json!({ "customer": number, "name": "Ada Example", "email": "ada@example.org" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_leads_to_its_parcel_and_its_customer() {
        for number in ["A-1007", "a-1008", "A-1009"] {
            let (status, order) = at(&format!("/orders/{number}"));
            assert_eq!(status, StatusCode::OK, "{number}");
            if let Some(parcel) = order["parcel"].as_str() {
                assert_eq!(at(&format!("/parcels/{parcel}")).0, StatusCode::OK);
            }
            assert_eq!(at(&format!("/customers/{}", order["customer"].as_str().unwrap())).0, StatusCode::OK);
        }
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for path in ["/", "/orders", "/orders/A-1", "/parcels/A-1007", "/customers/", "/else/A-1007"] {
            assert_eq!(at(path).0, StatusCode::NOT_FOUND, "{path}");
        }
    }
}
