-- One row a model call, and one a tool call that has a price. NULL is unknown or none, never nothing.
CREATE TABLE ledger (
    at                 timestamptz NOT NULL,  -- when it ended
    id                 bigint      NOT NULL,  -- tells rows of one microsecond apart, and a row that is written twice from two rows
    trace              text        NOT NULL,  -- the run: 32 hexadecimal digits
    round              bigint      NOT NULL,  -- the model call of the run, from 1, that it was or that asked for it
    attempt            bigint,                -- 1 for the first try; NULL for a tool
    key                text        NOT NULL,  -- the caller
    end_user           text,                  -- for whom the caller acted
    model              text        NOT NULL,  -- what the caller asked for, whose budgets count it: * for a name without an entry
    served             text        NOT NULL,  -- the entry that answered: another one than `model` where a fallback did
    provider           text,                  -- NULL for a tool
    upstream_model     text,                  -- NULL for a tool
    tool               text,                  -- NULL for a model
    input_tokens       bigint      NOT NULL,  -- fresh ones
    cached_tokens      bigint      NOT NULL,
    cache_write_tokens bigint      NOT NULL,
    output_tokens      bigint      NOT NULL,  -- reasoning included
    reasoning_tokens   bigint      NOT NULL,
    estimated          boolean     NOT NULL,  -- the tokens were counted here, not by the provider
    cost_nano_usd      bigint,                -- billionths of a dollar; NULL: not known
    reported_nano_usd  bigint,                -- what the provider says that it cost
    outcome            text        NOT NULL,
    requests           bigint      NOT NULL,  -- 1: the first row of its request
    PRIMARY KEY (at, id)
);

CREATE INDEX ledger_users ON ledger (key, end_user, at) WHERE end_user IS NOT NULL;

-- The sums of the rows that were dropped since. An empty text is none.
CREATE TABLE carried (
    key                text        NOT NULL,
    end_user           text        NOT NULL,
    model              text        NOT NULL,
    served             text        NOT NULL,
    provider           text        NOT NULL,
    tool               text        NOT NULL,
    newest             timestamptz NOT NULL,  -- the time of the newest of them
    calls              bigint      NOT NULL,
    requests           bigint      NOT NULL,
    input_tokens       bigint      NOT NULL,
    cached_tokens      bigint      NOT NULL,
    cache_write_tokens bigint      NOT NULL,
    output_tokens      bigint      NOT NULL,
    reasoning_tokens   bigint      NOT NULL,
    cost_nano_usd      bigint      NOT NULL,  -- what is known of it
    unknown_calls      bigint      NOT NULL,  -- rows whose cost is not known
    estimated_calls    bigint      NOT NULL,
    PRIMARY KEY (key, end_user, model, served, provider, tool)
);
