//! What a run does about the model's window: it has the transcript fitted before each call, and knows what follows where that cannot be done.

use bytes::Bytes;
use toolgate_config::model::Model;

use super::{Last, Run, splice};
use crate::fit::{self, Fitted};
use crate::provider;
use crate::targets::Target;
use crate::tokens::Tokens;
use crate::upstream::{Answering, NoAnswer};
use crate::wire::{Request, Round, Splice};

impl Run<'_> {
    /// The transcript as it fits into the window of whoever is asked next.
    pub(super) async fn fit(&mut self, round: Round) -> Fitted {
        let last = self.record.run.rounds.last().filter(|last| !last.estimated);
        if let Some(usage) = last.and_then(|last| last.usage.as_ref()) {
            self.fitting.learn(usage.prompt);
        }
        let Self { gateway, request, model, system, offer, messages, fitting, targets, .. } = self;
        let frame = |target: &Target| {
            let params = provider::params(target, &model.params);
            frame(request, splice(target, &params, system, offer, None), round)
        };
        let call = call(&gateway.tokens, request, model, messages, Around { system, offer, frame: &frame });
        fitting.fit(targets.current(), &call).await
    }

    /// Whether a provider found the prompt too long, and may be asked once more in this run. Only what rounds added is saved by that: what the
    /// caller sent by itself fails as it would without us.
    pub(super) fn may_be_shortened(&mut self, sent: &Result<Answering, NoAnswer>) -> bool {
        let Err(NoAnswer::Failed(failure)) = sent else { return false };
        self.added > 0 && failure.about_length().is_some_and(|said| self.fitting.was_refused(said))
    }

    /// A shorter transcript for a provider that found this one too long; `None`: there is nothing to cut.
    pub(super) async fn shorter(&mut self, round: Round) -> Option<Fitted> {
        let fitted = self.fit(round).await;
        matches!(fitted, Fitted::Cut(..)).then_some(fitted)
    }

    /// Not even what must stay fits: the end of a run that has something to show. A first call, also of a run that goes on after a pause, is sent
    /// as it is, so that its caller learns from the provider how much is too much.
    pub(super) fn ran_out_of_context(&mut self, fitted: &Fitted) -> bool {
        let Fitted::TooLong(context) = fitted else { return false };
        let ended = !matches!(self.last, Last::Nothing) && self.talk.ran_out_of_context();
        if ended {
            let (budget, prompt) = (context.budget, context.prompt());
            let note = format!(
                "refused by the window: it has room for {budget} tokens, and of the {prompt} of the prompt too few can go"
            );
            self.record.run.notes.push(note.into());
        }
        ended
    }
}

/// What stands around the messages.
pub(super) struct Around<'a> {
    pub(super) system: &'a Option<Bytes>,
    pub(super) offer: &'a Bytes,
    pub(super) frame: &'a (dyn Fn(&Target) -> Bytes + Sync),
}

/// A call to be fitted.
pub(super) fn call<'c>(
    tokens: &'c Tokens,
    request: &Request,
    model: &Model,
    messages: &'c [Bytes],
    around: Around<'c>,
) -> fit::Call<'c> {
    fit::Call {
        tokens,
        messages,
        system: around.system.as_ref(),
        around: request.around() + around.offer.len(),
        frame: around.frame,
        output_limit: request.output_limit(&model.params),
    }
}

/// The request without its messages.
pub(super) fn frame(request: &Request, splice: Splice<'_>, round: Round) -> Bytes {
    Bytes::from(request.compose(&Splice { system: None, ..splice }, round, &[]).concat())
}
