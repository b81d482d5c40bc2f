//! One streamed round while it comes in: which of its chunks the caller may see now.
//!
//! Text before a tool call is not the answer, so the first characters of a round that could still turn to tools are held back. A round that
//! turns is dropped whole; one that says more than is held is shown live from there on, all that was held first. Where the caller has tools
//! of its own, whose a call is decides what becomes of the round, and is known of all of them only when it ends: so from the first call on
//! everything is kept, and the caller's calls are shown with the end of the round.

use toolgate_config::model::StreamHold;

use super::Answer;
use crate::tokens::{Tally, Used};
use crate::wire::chunk::NoChunk;
use crate::wire::sse::Event;
use crate::wire::thoughts::Thoughts;
use crate::wire::{CallParts, Chunk, Finish};

/// A round that is coming in.
#[derive(Debug)]
pub struct Listening {
    showing: Showing,
    calls: CallParts,
    /// The inside of the text's JSON string, kept only where a later round may need it.
    content: Option<String>,
    thoughts: Thoughts,
    is_mixed: bool,
    characters: usize,
    finish: Finish,
    left: Leftover,
    has_finished: bool,
    /// How much of `content` the caller has been shown, in bytes.
    shown: usize,
    is_over: bool,
}

/// What a round may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whatever it says is the caller's: no gateway tools are in the run.
    Open,
    /// It may turn to gateway tools; so much of it is held back.
    MayTurn(StreamHold),
    /// It may turn to gateway tools, to the caller's own, or to both.
    Mixed(StreamHold),
    /// It must be the answer; calls that it asks for all the same are nobody's.
    Closing,
}

#[derive(Debug)]
enum Showing {
    /// Everything is shown as it comes: the round cannot turn to tools.
    All,
    /// It may turn: nothing is shown until more than this many characters came.
    Held(StreamHold),
    /// It may turn, but was shown already: text goes on, its end waits.
    Live,
    /// It has turned.
    Nothing,
    /// It has turned to tools, which may be the caller's: what it says beside the calls is kept.
    Kept,
}

/// What a round leaves behind for the end of the stream, if the round turns out to be the last.
#[derive(Debug, Default)]
pub struct Leftover {
    /// Chunks that were held back.
    pub held: Vec<Chunk>,
    /// Of a round that has turned, the text that was not shown: a raw JSON string.
    pub unseen: Option<String>,
    /// The arguments of its calls as they were written, raw JSON strings; only where they may be the caller's.
    pub arguments: Vec<String>,
    /// The chunk that ends the round.
    pub finish: Option<Chunk>,
    /// The provider's own usage chunk.
    pub usage: Option<Chunk>,
    /// Any chunk of the stream, to make others from.
    pub sample: Option<Chunk>,
}

/// Why a stream is no answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Broken {
    /// It stopped before it was over.
    Cut,
    /// It holds what is no chunk.
    Garbage,
    /// The provider reports an error in it: the data of that event.
    Error(String),
}

impl Listening {
    /// A round that begins.
    pub fn new(kind: Kind) -> Self {
        let showing = match kind {
            Kind::Open => Showing::All,
            Kind::MayTurn(hold) | Kind::Mixed(hold) => Showing::Held(hold),
            Kind::Closing => Showing::Live,
        };
        Self {
            showing,
            calls: CallParts::default(),
            content: (kind != Kind::Open).then(String::new),
            thoughts: Thoughts::default(),
            is_mixed: matches!(kind, Kind::Mixed(_)),
            characters: 0,
            finish: Finish::default(),
            left: Leftover::default(),
            has_finished: false,
            shown: 0,
            is_over: false,
        }
    }

    /// Takes an event. `show` is given each chunk that the caller may see now; `tally` what there is to count in it.
    ///
    /// # Errors
    /// [`Broken::Garbage`] or [`Broken::Error`].
    pub fn hear(
        &mut self,
        event: Event,
        is_tool: impl Fn(&str) -> bool,
        tally: &mut Tally,
        show: impl FnMut(&Chunk),
    ) -> Result<(), Broken> {
        if self.is_over {
            return Ok(());
        }
        if event.is_end_mark() {
            self.is_over = true;
            return Ok(());
        }
        let data = event.data.clone();
        let text = || String::from_utf8_lossy(&data).into_owned();
        if event.is_error {
            return Err(Broken::Error(text()));
        }
        let heard = Chunk::hear(event.data, &mut self.calls, is_tool, &mut |said| tally.say(said));
        let chunk = heard.map_err(|no_chunk| match no_chunk {
            NoChunk::Garbage => Broken::Garbage,
            NoChunk::Error => Broken::Error(text()),
        })?;
        self.take(chunk, tally, show);
        Ok(())
    }

    /// Whether the provider has said that it is done.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether it shows whatever comes: then nothing comes after it.
    pub fn shows_all(&self) -> bool {
        matches!(self.showing, Showing::All)
    }

    /// Whether chunks are held back.
    pub fn holds(&self) -> bool {
        !self.left.held.is_empty()
    }

    /// How much is kept until the round ends, in bytes, but for the contents of chunks that are held back.
    pub fn kept(&self) -> usize {
        self.left.held.len() * size_of::<Chunk>()
            + self.content.as_ref().map_or(0, String::len)
            + self.thoughts.bytes()
            + self.calls.bytes()
    }

    /// Whether a stream that has ended was cut: neither an end mark nor a finish reason came, or nothing but them.
    pub fn is_cut(&self) -> bool {
        self.left.sample.is_none() || !(self.is_over || self.has_finished)
    }

    /// The stream has ended, and this is what the round used.
    ///
    /// # Errors
    /// [`Broken::Cut`].
    pub fn end(mut self, used: Used, round: u32) -> Result<(Answer, Leftover), Broken> {
        if self.is_cut() {
            return Err(Broken::Cut);
        }
        if matches!(self.showing, Showing::Nothing | Showing::Kept) {
            self.left.unseen =
                self.content.as_ref().map(|inner| &inner[self.shown..]).filter(|rest| !rest.is_empty()).map(in_quotes);
        }
        let content = self.content.take().as_deref().map(in_quotes);
        if self.is_mixed {
            self.left.arguments = self.calls.arguments();
        }
        let answer = Answer {
            content,
            has_text: self.characters > 0,
            aloud: self.thoughts.aloud(),
            thoughts: self.thoughts.finish(),
            is_cut: self.calls.is_cut(),
            finish: self.finish,
            usage: used.usage,
            estimated: used.estimated,
            cost: 0,
            calls: self.calls.finish(round),
        };
        Ok((answer, self.left))
    }

    fn take(&mut self, chunk: Chunk, tally: &mut Tally, mut show: impl FnMut(&Chunk)) {
        let usage = chunk.usage();
        if let Some(usage) = usage {
            tally.report(usage);
        }
        if chunk.is_bare {
            if usage.is_some() {
                self.left.usage = Some(chunk);
            }
            return;
        }
        self.note_content(&chunk);
        if let Some(finish) = chunk.finish() {
            self.finish = Finish::from_raw(Some(finish));
            self.has_finished = true;
        }
        if self.left.sample.is_none() {
            self.left.sample = Some(chunk.clone());
        }
        if matches!(self.showing, Showing::All) {
            show(&chunk);
            return;
        }
        if !self.calls.is_empty() && self.is_mixed {
            self.showing = Showing::Kept;
        } else if !self.calls.is_empty() {
            self.showing = Showing::Nothing;
            self.left.held.clear();
        }
        if chunk.finish().is_none() {
            return self.show_or_hold(chunk, show);
        }
        // Whether the round ends here for the caller too is known when it is over. Some providers say so in every chunk.
        if let Some(earlier) = self.left.finish.replace(chunk).filter(|earlier| earlier.characters > 0) {
            self.show_or_hold(earlier.without_finish(), show);
        }
    }

    fn show_or_hold(&mut self, chunk: Chunk, mut show: impl FnMut(&Chunk)) {
        match self.showing {
            Showing::Nothing => return,
            Showing::Kept => return self.left.held.extend(chunk.without_calls()),
            Showing::Held(hold) if !exceeds(hold, self.characters) => return self.left.held.push(chunk),
            Showing::Held(_) => {
                self.showing = Showing::Live;
                self.left.held.drain(..).for_each(|held| show(&held));
                show(&chunk);
            }
            Showing::Live | Showing::All => show(&chunk),
        }
        self.shown = self.content.as_ref().map_or(0, String::len);
    }

    fn note_content(&mut self, chunk: &Chunk) {
        self.characters += chunk.characters;
        if self.content.is_some() {
            chunk.thoughts().into_iter().for_each(|thoughts| self.thoughts.add(thoughts));
            chunk.aloud().into_iter().for_each(|aloud| self.thoughts.add_aloud(aloud));
        }
        let Some(text) = chunk.content() else { return };
        if let (Some(content), Some(inner)) = (&mut self.content, text.strip_prefix('"').and_then(|text| text.strip_suffix('"')))
        {
            content.push_str(inner);
        }
    }
}

fn in_quotes(inner: &str) -> String {
    format!("\"{inner}\"")
}

fn exceeds(hold: StreamHold, characters: usize) -> bool {
    match hold {
        StreamHold::Characters(0) => true,
        StreamHold::Characters(most) => characters > most,
        StreamHold::All => false,
    }
}

#[cfg(test)]
mod tests;
