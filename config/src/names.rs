//! Names that cannot be mixed up: a model's name is no tool's name, though both are text.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it is; what a name may look like is the business of `check`.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<$name> for Arc<str> {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

names! {
    /// An account at a model API (`providers:`).
    ProviderName,
    /// What a caller sends as `model` (`models:`).
    ModelName,
    /// A function that the gateway can run; `^[a-zA-Z0-9_-]{1,64}$`.
    ToolName,
    /// A family of tools (`groups:`).
    GroupName,
    /// A server of tools (`mcp_servers:`).
    ServerName,
    /// A caller (`keys:`); the label that metrics carry.
    KeyName,
    /// A right that a key holds and a tool asks for.
    Scope,
}
