use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value as Json, json};

use crate::Config;
use crate::check::{Source, read};
use crate::place::Fault;
use crate::tool::{Body, Effect, HttpWork, Lists, Tool, Work};

/// A folder of its own, gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn with(spec: &str) -> Self {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let name = format!("toolgate-openapi-{}-{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("shop.yaml"), spec).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The configuration with one API of that description; `section` is what its entry says beside `spec` and `group`.
fn config(spec: &str, section: &str) -> Result<Config, Vec<Fault>> {
    let folder = Folder::with(spec);
    let file = format!(
        "groups: {{ shop: {{ data_class: public, egress: [\"shop.internal:443\", \"127.0.0.1:9\"] }} }}\n\
         openapi:\n  shop: {{ spec: shop.yaml, group: shop, {section} }}\n"
    );
    read(&Source { path: &folder.0.join("toolgate.yaml"), text: &file, env: &|_| None })
}

fn tool(spec: &str, section: &str) -> (String, Json, HttpWork, Effect) {
    let config = config(spec, section).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let tool: &Tool = config.tools.iter().next().unwrap();
    let Work::Http(work) = &tool.work else { panic!("{tool:?}") };
    let copy = HttpWork {
        method: work.method,
        origin: work.origin.clone(),
        path: work.path.clone(),
        query: work.query.clone(),
        headers: work.headers.clone(),
        lists: work.lists.clone(),
        body: work.body,
        body_argument: work.body_argument.clone(),
        errors: work.errors,
        select: work.select.clone(),
    };
    (tool.name.to_string(), tool.parameters.value().clone(), copy, tool.rule.effect)
}

/// What is wrong with one operation `op` of this form, each as `line: path: sentence`.
fn faults(version: &str, paths: &str) -> Vec<String> {
    let spec = format!("openapi: {version}\nservers: [{{ url: \"https://shop.internal\" }}]\npaths:\n{paths}\n");
    let all = config(&spec, "operations: [op]").err().unwrap_or_default();
    let shown = |fault: &Fault| {
        let file = fault.place.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!("{file}:{}: {}: {}", fault.place.line, fault.place.path, fault.message)
    };
    all.iter().map(shown).collect()
}

const SHOP: &str = r##"
openapi: 3.0.3
info: { title: Shop, version: "1" }
servers:
  - url: https://elsewhere.example/v1
  - url: https://{where}.internal/api/
    variables: { where: { default: shop } }
paths:
  /products/{id}:
    parameters:
      - { name: id, in: path, required: true, schema: { type: integer, minimum: 0, exclusiveMinimum: true } }
    get:
      operationId: getProduct
      summary: One product
      description: With all that is known of it.
      parameters:
        - { name: fields, in: query, description: What to show, schema: { type: array, items: { type: string } } }
        - { name: tag, in: query, explode: false, schema: { type: array, items: { type: string } } }
        - { name: "filter[name]", in: query, schema: { type: string, nullable: true, enum: [a, b] } }
        - { name: id, in: query, schema: { type: string } }
        - { name: X-Trace, in: header, schema: { type: string } }
        - { name: Authorization, in: header, schema: { type: string } }
      responses: { "200": { description: ok } }
  /products:
    post:
      operationId: createProduct
      requestBody: { $ref: "#/components/requestBodies/Product" }
    put:
      operationId: replaceAll
      requestBody:
        content: { application/json: { schema: { type: array, items: { $ref: "#/components/schemas/Product" } } } }
components:
  requestBodies:
    Product:
      required: true
      content: { "application/json; charset=utf-8": { schema: { $ref: "#/components/schemas/Product" } } }
  schemas:
    Product:
      type: object
      required: [id, name]
      properties:
        id: { type: integer, readOnly: true }
        name: { type: string, example: Lamp }
        parts: { type: array, items: { $ref: "#/components/schemas/Product" } }
        price: { allOf: [{ $ref: "#/components/schemas/Money" }], nullable: true }
    Money: { type: object, properties: { amount: { type: number } }, x-internal: 1 }
"##;

#[test]
fn parameters_become_holes_and_a_schema() {
    let (name, schema, work, effect) = tool(SHOP, "operations: [getProduct], headers: { x-key: \"k\" }");
    assert_eq!((name.as_str(), effect), ("getProduct", Effect::ReadOnly));
    assert_eq!(
        schema,
        json!({
            "type": "object",
            "properties": {
                "id": { "type": "integer", "exclusiveMinimum": 0 },
                "fields": { "type": "array", "items": { "type": "string" }, "description": "What to show" },
                "tag": { "type": "array", "items": { "type": "string" } },
                "filter_name_": { "type": ["string", "null"], "enum": ["a", "b", null] },
                "query_id": { "type": "string" },
                "X-Trace": { "type": "string" },
            },
            "additionalProperties": false,
            "required": ["id"],
        })
    );
    assert_eq!(work.origin.address.to_string(), "shop.internal:443", "the first server that the group may reach");
    assert_eq!(
        format!("{:?} {:?} {:?}", work.path, work.query, work.headers),
        concat!(
            r#"…{id} [("fields", {fields}), ("tag", {tag}), ("filter[name]", {filter_name_}), ("id", {query_id})] "#,
            r#"[("x-trace", {X-Trace}), ("x-key", …)]"#
        )
    );
    assert_eq!(work.lists, [("fields".to_owned(), Lists::Repeated), ("tag".to_owned(), Lists::Commas)]);
    assert_eq!(work.body, Body::None);
}

#[test]
fn the_members_of_a_body_stand_beside_the_parameters() {
    let (_, schema, work, effect) = tool(SHOP, "operations: [{ createProduct: { enabled: true, requires_approval: false } }]");
    let product = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": { "type": "string" },
            "parts": { "type": "array", "items": { "$ref": "#/$defs/Product" } },
            "price": { "anyOf": [{ "allOf": [{ "$ref": "#/$defs/Money" }] }, { "type": "null" }] },
        },
    });
    assert_eq!(schema["properties"], product["properties"]);
    assert_eq!((&schema["required"], &schema["additionalProperties"]), (&json!(["name"]), &json!(true)));
    assert_eq!(schema["$defs"]["Product"], product, "a schema may refer to itself, and what only answers have is left out");
    assert_eq!(schema["$defs"]["Money"], json!({ "type": "object", "properties": { "amount": { "type": "number" } } }));
    assert_eq!((work.body, work.body_argument, effect), (Body::Json, None, Effect::NonIdempotentWrite));
}

#[test]
fn a_body_that_is_no_plain_object_is_one_argument() {
    let (_, schema, work, _) = tool(SHOP, "operations: [replaceAll]");
    assert_eq!(schema["properties"], json!({ "body": { "type": "array", "items": { "$ref": "#/$defs/Product" } } }));
    assert_eq!(schema.get("required"), None, "the document does not ask for it");
    assert_eq!(work.body_argument.as_deref(), Some("body"));
}

#[test]
fn an_operation_may_be_named_by_method_and_path_and_the_base_by_the_operator() {
    let (name, _, work, _) = tool(SHOP, "operations: [\"GET /products/{id}\"], base_url: \"http://127.0.0.1:9/other\"");
    assert_eq!((name.as_str(), work.origin.address.to_string().as_str()), ("get_products_id", "127.0.0.1:9"));
}

#[test]
fn a_document_may_be_json_and_3_1() {
    let spec = r##"{
	"openapi": "3.1.0",
	"servers": [{ "url": "https://shop.internal" }],
	"paths": { "/a": { "post": { "operationId": "op", "requestBody": { "required": true, "content": {
		"application/json": { "schema": { "type": "object", "properties": { "n": { "type": ["integer", "null"],
			"exclusiveMinimum": 3, "description": "caf\u00e9 \/ bar" } }, "additionalProperties": false } } } } } } }
}"##;
    let (_, schema, ..) = tool(spec, "operations: [op]");
    assert_eq!(
        schema["properties"]["n"],
        json!({ "type": ["integer", "null"], "exclusiveMinimum": 3, "description": "café / bar" })
    );
    assert_eq!(schema["additionalProperties"], json!(false));
}

#[test]
fn what_cannot_be_carried_over_is_a_fault_where_it_stands() {
    let get = |parameter: &str| format!("  /a/{{x}}:\n    get:\n      operationId: op\n      parameters:\n        - {parameter}");
    let x = "{ name: x, in: path, required: true, schema: { type: string } }";
    let two = |parameter: &str| get(&format!("{x}\n        - {parameter}"));
    let post = |body: &str| format!("  /a:\n    post:\n      operationId: op\n      requestBody: {body}");
    let table = [
        (two("{ name: s, in: cookie, schema: { type: string } }"), "9", "a cookie cannot be carried over"),
        (two("{ name: s, in: query, style: deepObject, schema: { type: object } }"), "9", "this `style` cannot be carried over"),
        (two("{ name: s, in: query, schema: { type: object, properties: {} } }"), "9", "an object outside of the body"),
        (two("{ name: s, in: query, content: { application/json: {} } }"), "9", "a parameter without a `schema`"),
        (two("{ name: s, in: header, schema: { type: array, items: {} } }"), "9", "a list in a path or a header"),
        (two("{ name: host, in: header, schema: { type: string } }"), "9", "the gateway sets this header itself"),
        (two("{ name: s, in: query, schema: { $ref: \"other.yaml#/X\" } }"), "9", "`other.yaml#/X` leads out of this document"),
        (two("{ name: s, in: query, schema: { $ref: \"#/components/X\" } }"), "9", "`#/components/X` leads nowhere"),
        (two("{ name: s, in: query, schema: { $id: \"https://x.example\" } }"), "9", "a schema with `$id`"),
        (get("{ name: y, in: query, schema: { type: string } }"), "5", "`{x}` is no parameter of this path"),
        (post("{ content: { multipart/form-data: { schema: { type: object } } } }"), "7", "a body of multipart/form-data"),
        (
            post("{ required: true, content: { application/json: { schema: { type: strin } } } }"),
            "6",
            "its schemas cannot be carried over",
        ),
        (
            "  /a:\n    get: { operationId: op, security: [ { k: [] } ] }\ncomponents: { securitySchemes: { k: { type: apiKey, in: query, name: k } } }".to_owned(),
            "5",
            "a credential in a query or a cookie",
        ),
        ("  a:\n    get: { operationId: op }".to_owned(), "5", "a path begins with a slash"),
        ("  \"/a?b=c\":\n    get: { operationId: op }".to_owned(), "5", "a path has no query"),
        ("  /a/%2E%2e/b:\n    get: { operationId: op }".to_owned(), "5", "a path has no `.`"),
        ("  /a:\n    options: { operationId: op }".to_owned(), "", "tools have no such method"),
        ("  /a:\n    get: { operationId: other }".to_owned(), "", "the document has no operation `op`; "),
        ("  /a:\n    get: { operationId: op, operationId: op }".to_owned(), "5", "this key is here twice"),
        ("  /a:\n    get: { operationId: op }\n  /b:\n    get: { operationId: op }".to_owned(), "", "two operations of the id"),
        ("  /a:\n    get: { operationId: op, requestBody: { content: {} } }".to_owned(), "5", "GET with a body"),
    ];
    for (paths, line, expected) in table {
        let found = faults("3.1.0", &paths);
        let place = if line.is_empty() { "toolgate.yaml:".to_owned() } else { format!("shop.yaml:{line}:") };
        assert!(found.iter().any(|fault| fault.starts_with(&place) && fault.contains(expected)), "{expected}: {found:#?}");
    }
}

#[test]
fn a_document_that_is_none_is_a_fault() {
    for (spec, expected) in [
        ("swagger: \"2.0\"", "this is Swagger 2.0"),
        ("openapi: 4.0.0", "`4.0.0` is not known"),
        ("openapi: 3.2.0", "`3.2.0` is not known"),
        ("a: [", "this is not YAML"),
        ("{}", "no `openapi`"),
    ] {
        let faults = config(spec, "operations: [op]").unwrap_err();
        assert!(faults.iter().any(|fault| fault.message.contains(expected)), "{spec}: {faults:#?}");
    }
    let folder = Folder::with("");
    let text = "groups: { g: { data_class: public } }\nopenapi: { s: { spec: gone.yaml, group: g, operations: [a] } }\n";
    let faults = read(&Source { path: &folder.0.join("toolgate.yaml"), text, env: &|_| None }).unwrap_err();
    assert!(faults[0].message.contains("cannot be read"), "{faults:#?}");
}

#[test]
fn a_credential_in_a_header_is_the_operators_business_and_one_fault_is_said_once() {
    let spec = "openapi: 3.1.0\nservers: [{ url: \"https://shop.internal\" }]\nsecurity: [ { q: [] }, { h: [] } ]\n\
                paths: { /a: { get: { operationId: a } }, /b: { get: { operationId: b, security: [] } } }\n\
                components: { securitySchemes: { q: { type: apiKey, in: query, name: q }, h: { type: http, scheme: bearer } } }";
    assert_eq!(config(spec, "operations: [a, b]").unwrap().tools.len(), 2);
    let faults = config(spec, "operations: [a, b], base_url: \"https://evil.example\"").unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:#?}");
}

#[test]
fn a_long_chain_of_references_is_a_fault_and_never_the_end_of_the_process() {
    let chain: String = (0..3000)
        .map(|n| format!("    s{n}: {{ properties: {{ a: {{ $ref: \"#/components/schemas/s{}\" }} }} }}\n", n + 1))
        .collect();
    let spec = format!(
        "openapi: 3.1.0\nservers: [{{ url: \"https://shop.internal\" }}]\npaths: {{ /a: {{ post: {{ operationId: op, requestBody: {{ \
         content: {{ application/json: {{ schema: {{ $ref: \"#/components/schemas/s0\" }} }} }} }} }} }} }}\ncomponents:\n  schemas:\n{chain}    s3000: {{}}\n"
    );
    let faults = config(&spec, "operations: [op]").unwrap_err();
    assert!(faults.iter().any(|fault| fault.message.contains("64 levels deep")), "{faults:#?}");
}

#[test]
fn only_servers_that_the_group_may_reach_are_taken() {
    let spec =
        "openapi: 3.1.0\nservers: [{ url: \"https://evil.example\" }, { url: /v1 }]\npaths: { /a: { get: { operationId: op } } }";
    let faults = config(spec, "operations: [op]").unwrap_err();
    assert!(faults[0].message.contains("no server is in the `egress` of the group `shop`"), "{faults:#?}");
    let faults = config(spec, "operations: [op], base_url: \"https://evil.example\"").unwrap_err();
    assert!(faults[0].message.contains("evil.example:443 is not in the `egress`"), "{faults:#?}");
}
