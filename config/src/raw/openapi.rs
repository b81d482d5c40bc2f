//! The table of `openapi:`.

use std::time::Duration;

use crate::class::DataClass;
use crate::raw::mcp::{Chosen, McpTool};
use crate::raw::section::{At, section};
use crate::raw::shape::{Named, Scalar, Size};
use crate::raw::text::Text;
use crate::raw::words::Redact;

section! {
    /// Tools made from an OpenAPI document, 3.0 or 3.1.
    OpenApi {
        /// The document, YAML or JSON: a path.
        spec: Text = required,
        /// Where the API is. Host and port are in the group's `egress`. Default: the first of the document's servers that is.
        base_url: Text,
        /// Headers that are sent along, for the credentials of the API.
        headers: Named<At<Scalar>> = "{}",
        /// Which operations become tools, each by its `operationId` or as `GET /path`, or as `name: { … }` with what holds for that one.
        operations: Vec<At<Chosen<McpTool>>> = required,
        /// The family of its tools: a name of `groups`.
        group: Text = required,
        /// From a call's start to its last byte.
        timeout: Duration = "30s",
        /// Only for admins.
        requires_admin: bool = "false",
        /// The rights that a caller must have, all of them.
        scopes: Vec<At<Text>> = "[]",
        /// How sensitive what they return is. Default: the group's.
        data_class: DataClass,
        /// Whether what they return is about people. Default: the group's.
        personal: bool,
        /// The longest text that the model gets, in bytes.
        max_result: Size = "50000",
        /// Whether what they return is redacted.
        redact: Redact = "default",
    }
}
