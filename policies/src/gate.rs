//! The gate: who is calling, what may this run have, may this leave now. The questions and their order stand here, the rules in their own
//! files. Every question is asked of the configuration in force at that moment; whatever is unknown closes the gate.

use std::sync::Arc;

use ring::digest::{SHA256, digest};
use toolgate_config::Config;
use toolgate_config::address::Origin;
use toolgate_config::key::KeyHash;
use toolgate_config::model::Model;
use toolgate_config::names::ProviderName;
use toolgate_config::secret::Secret;
use toolgate_config::server::{Auth, Enforcement};
use toolgate_config::tool::{Definition, Source, Tool};

use crate::counters::Hold;
use crate::egress::{EgressRefusal, Permit};
use crate::facts::{Caller, RunFacts};
use crate::zone::{self, Mark};
use crate::{egress, grant};

/// Something that may leave the process, to a model or to a tool. Only this module can make one, so holding it proves that the gate was
/// asked. Dropping it does nothing.
#[derive(Debug)]
pub struct Cleared<T>(T);

impl<T> Cleared<T> {
    /// What was cleared.
    pub fn get(&self) -> &T {
        &self.0
    }

    /// What was cleared, for the one who sends it.
    pub fn into_inner(self) -> T {
        self.0
    }
}

/// Why a request is turned away at the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No key, or none that is known.
    UnknownKey,
    /// It names an end user and may not.
    UserNotAllowed,
    /// The model is not among those of its key.
    ModelNotAllowed,
    /// There is no such model.
    ModelNotFound,
}

/// What a caller shows at the door.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown<'a> {
    /// The secret or bearer that it sent.
    pub secret: Option<&'a str>,
    /// The end user that it names.
    pub user: Option<&'a str>,
}

/// Who is calling?
///
/// # Errors
/// [`Refused::UnknownKey`] or [`Refused::UserNotAllowed`].
pub fn recognise(config: &Config, shown: Shown<'_>) -> Result<Caller, Refused> {
    let (key, bearer) = match config.auth {
        Auth::None => (None, None),
        Auth::Passthrough => (None, shown.secret.map(Secret::new)),
        Auth::Keys => {
            let secret = shown.secret.ok_or(Refused::UnknownKey)?;
            (Some(config.keys.by_hash(&hash_of(secret)).ok_or(Refused::UnknownKey)?), None)
        }
    };
    if shown.user.is_some() && !key.is_some_and(|key| key.act_for) {
        return Err(Refused::UserNotAllowed);
    }
    Ok(Caller { key: key.map(|key| key.name.clone()), user: shown.user.map(Arc::from), bearer })
}

/// The digest by which the file knows a secret.
pub fn hash_of(secret: &str) -> KeyHash {
    let mut hash = KeyHash::default();
    hash.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    hash
}

/// May this caller use the model of this name?
///
/// # Errors
/// [`Refused::ModelNotFound`], [`Refused::ModelNotAllowed`], or [`Refused::UnknownKey`] when the key has gone meanwhile.
pub fn admit(config: &Config, caller: &Caller, model: &str) -> Result<Arc<Model>, Refused> {
    let found = config.model(model).ok_or(Refused::ModelNotFound)?;
    if caller.key.is_none() {
        return Ok(found);
    }
    let key = grant::key_of(config, caller).ok_or(Refused::UnknownKey)?;
    let allowed = key.models.as_ref().is_none_or(|models| models.contains(model));
    if allowed { Ok(found) } else { Err(Refused::ModelNotAllowed) }
}

/// Why a tool is withheld from a run, in the order in which reasons are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No tool has this name.
    NotRegistered,
    /// It is switched off.
    ToolDisabled,
    /// Its group is switched off.
    GroupDisabled,
    /// It is for admins.
    RequiresAdmin,
    /// The caller lacks a right.
    MissingScope,
    /// The model does not grant it.
    NotGranted,
    /// The key does not grant it.
    KeyNotGranted,
    /// The request does not ask for it.
    NotRequested,
    /// What it returns may not go to the run's providers.
    TrustZone,
    /// What the run has read may not go to it.
    Flow,
    /// A person would have to agree first.
    RequiresApproval,
    /// Its server says something else of it than when it was first seen, and the operator has not accepted that.
    DefinitionChanged,
}

impl Reason {
    /// Every reason, in the order of reporting.
    pub const ALL: [Self; 12] = [
        Self::NotRegistered,
        Self::ToolDisabled,
        Self::GroupDisabled,
        Self::RequiresAdmin,
        Self::MissingScope,
        Self::NotGranted,
        Self::KeyNotGranted,
        Self::NotRequested,
        Self::TrustZone,
        Self::Flow,
        Self::RequiresApproval,
        Self::DefinitionChanged,
    ];

    /// The word of traces, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotRegistered => "not_registered",
            Self::ToolDisabled => "tool_disabled",
            Self::GroupDisabled => "group_disabled",
            Self::RequiresAdmin => "requires_admin",
            Self::MissingScope => "missing_scope",
            Self::NotGranted => "not_granted",
            Self::KeyNotGranted => "key_not_granted",
            Self::NotRequested => "not_requested",
            Self::TrustZone => "trust_zone",
            Self::Flow => "flow",
            Self::RequiresApproval => "requires_approval",
            Self::DefinitionChanged => "definition_changed",
        }
    }
}

/// What the gate says of one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The run may have it.
    Allow,
    /// It breaks the zone rule, which is only observed: the run may have it, and the trace says so.
    Observed(Reason),
    /// The run may not have it.
    Deny(Reason),
}

impl Verdict {
    /// Whether the run may have the tool.
    pub const fn allows(self) -> bool {
        !matches!(self, Self::Deny(_))
    }

    /// The word of traces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Observed(_) => "observed",
            Self::Deny(_) => "deny",
        }
    }

    /// The rule that was broken.
    pub const fn reason(self) -> Option<Reason> {
        match self {
            Self::Allow => None,
            Self::Observed(reason) | Self::Deny(reason) => Some(reason),
        }
    }
}

/// May this run have this tool? The one function behind offering, executing and explaining.
pub fn judge(config: &Config, run: &RunFacts, tool: &Tool) -> Verdict {
    use Reason as R;
    let caller = &run.caller;
    let returns = Mark { class: tool.rule.data_class, personal: tool.rule.personal };
    let zone_broken = !zone::permits(zone::of_run(config, &run.providers), returns);
    let observe = may_observe(config, tool);
    let rules = [
        (R::ToolDisabled, !tool.rule.enabled),
        (R::GroupDisabled, !tool.group.enabled),
        (R::RequiresAdmin, tool.rule.requires_admin && !grant::is_admin(config, caller)),
        (R::MissingScope, !grant::has_scopes(config, caller, tool)),
        (R::NotGranted, !grant::model_grants(config, run, tool)),
        (R::KeyNotGranted, !grant::key_grants(config, caller, tool)),
        (R::NotRequested, !run.requested.includes(tool.name.as_str())),
        (R::TrustZone, zone_broken && !observe),
        (R::Flow, !zone::permits(tool.group.trust_zone, run.mark)),
        (R::RequiresApproval, tool.rule.requires_approval),
        (R::DefinitionChanged, tool.definition == Definition::Changed),
    ];
    match rules.into_iter().find(|(_, broken)| *broken) {
        Some((reason, _)) => Verdict::Deny(reason),
        None if zone_broken => Verdict::Observed(R::TrustZone),
        None => Verdict::Allow,
    }
}

/// Whether the zone rule only observes this tool. What somebody else's server offers is never let past it.
fn may_observe(config: &Config, tool: &Tool) -> bool {
    config.enforcement == Enforcement::Observe && tool.source != Source::Mcp
}

/// A tool and what the gate says of it.
pub type Judged = (Arc<Tool>, Verdict);

/// Which tools may this run be offered? Every registered tool with its verdict, in the order of the file.
pub fn offer(config: &Config, run: &RunFacts) -> impl Iterator<Item = Judged> {
    config.tools.iter().map(|tool| (Arc::clone(tool), judge(config, run, tool)))
}

/// Something that asks for a tool by the name that a model wrote.
pub trait AsksForTool {
    /// The name, as it came.
    fn tool_name(&self) -> &str;
}

/// A call that may be run, with the tool as the configuration in force defines it.
#[derive(Debug)]
pub struct ToolUse<C> {
    /// What runs.
    pub tool: Arc<Tool>,
    /// What was asked.
    pub call: C,
    /// Who asks.
    pub caller: Caller,
    /// The verdict: plain, or observed.
    pub verdict: Verdict,
}

/// A call that may not be run.
#[derive(Debug)]
pub struct DeniedUse<C> {
    /// What was asked.
    pub call: C,
    /// The tool, where there is one of that name.
    pub tool: Option<Arc<Tool>>,
    /// Why not.
    pub reason: Reason,
}

/// May this call run now?
///
/// # Errors
/// The call and the reason. The model is told neither the reason nor what exists.
pub fn clear_tool<C: AsksForTool>(config: &Config, run: &RunFacts, call: C) -> Result<Cleared<ToolUse<C>>, Box<DeniedUse<C>>> {
    let Some(tool) = config.tools.find(call.tool_name()) else {
        return Err(Box::new(DeniedUse { call, tool: None, reason: Reason::NotRegistered }));
    };
    let tool = Arc::clone(tool);
    match judge(config, run, &tool) {
        Verdict::Deny(reason) => Err(Box::new(DeniedUse { call, tool: Some(tool), reason })),
        verdict => Ok(Cleared(ToolUse { tool, call, caller: run.caller.clone(), verdict })),
    }
}

/// May this transcript go to that provider now? `_held` is what every limit on its path has set aside for it: without that nothing leaves.
///
/// # Errors
/// [`Refused::UnknownKey`] when the caller's key has gone since the run began; [`Refused::ModelNotAllowed`] when the run has read what the
/// provider may not see by the file now in force.
pub fn clear_model<M>(
    config: &Config,
    run: &RunFacts,
    provider: &ProviderName,
    _held: &Hold,
    ask: M,
) -> Result<Cleared<M>, Refused> {
    if run.caller.key.is_some() && grant::key_of(config, &run.caller).is_none() {
        return Err(Refused::UnknownKey);
    }
    let zone = zone::of_run(config, std::slice::from_ref(provider));
    let permitted = zone::permits(zone, run.mark) || config.enforcement == Enforcement::Observe;
    if permitted { Ok(Cleared(ask)) } else { Err(Refused::ModelNotAllowed) }
}

/// What a tool returned and how sensitive it says that is.
pub trait HasMark {
    /// The mark of the contents, the tool's own declaration included.
    fn mark(&self) -> Mark;
}

/// What becomes of a result on its way into the transcript.
#[derive(Debug)]
pub enum Judgement<T> {
    /// The run may read it; its mark has risen accordingly.
    Passed(Cleared<T>),
    /// Above the run's zone: nothing of it may be read.
    Withheld(T),
}

/// May the run read this result of the tool of this name? Raises the run's mark if it may.
pub fn clear_result<T: HasMark>(config: &Config, run: &mut RunFacts, tool: &str, result: T) -> Judgement<T> {
    let mark = result.mark();
    let permitted = zone::permits(zone::of_run(config, &run.providers), mark);
    if !permitted && !config.tools.find(tool).is_some_and(|tool| may_observe(config, tool)) {
        return Judgement::Withheld(result);
    }
    run.mark = run.mark.raised(mark);
    Judgement::Passed(Cleared(result))
}

/// May a tool of this group connect there now? Asked at each execution, whatever `check` has said before.
///
/// # Errors
/// The reason.
pub fn clear_egress<'o>(tool: &Tool, origin: &'o Origin) -> Result<Permit<'o>, EgressRefusal> {
    egress::judge(&tool.group, origin)
}
