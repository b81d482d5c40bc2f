//! Servers that are processes, good ones and bad ones, kept by a hub.

mod house;
mod listing;
mod results;
mod trouble;
