//! Chat completions as they travel: OpenAI's wire, which is the canon here. What is not interpreted stays the bytes that came.
//!
//! Only this module knows the chat format. It parses each body once, keeps where things stand in it, and writes by splicing: nothing that
//! was serialised once is serialised again.

pub mod call;
pub mod chunk;
pub mod content;
pub mod finish;
pub mod form;
pub mod history;
mod mend;
pub mod message;
pub mod object;
pub mod pass;
pub mod prompt;
pub mod reply;
pub mod request;
mod said;
mod scan;
pub mod spoken;
pub mod sse;
pub mod thoughts;
pub mod usage;

pub use call::CallParts;
pub use chunk::Chunk;
pub use finish::Finish;
pub use history::History;
pub use reply::Reply;
pub use request::{Request, Round, Splice};
pub use usage::Usage;

#[cfg(test)]
mod properties;
