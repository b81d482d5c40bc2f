-- One row a model call, and one a tool call that has a price. NULL is unknown or none, never nothing.
CREATE TABLE ledger (
    at                 INTEGER NOT NULL,  -- when it ended: microseconds since 1970-01-01 UTC
    id                 INTEGER NOT NULL,  -- tells rows of one microsecond apart, and a row that is written twice from two rows
    trace              TEXT    NOT NULL,  -- the run: 32 hexadecimal digits
    round              INTEGER NOT NULL,  -- the model call of the run, from 1, that it was or that asked for it
    attempt            INTEGER,           -- 1 for the first try; NULL for a tool
    key                TEXT    NOT NULL,  -- the caller
    end_user           TEXT,              -- for whom the caller acted
    model              TEXT    NOT NULL,  -- what the caller asked for, whose budgets count it: * for a name without an entry
    served             TEXT    NOT NULL,  -- the entry that answered: another one than `model` where a fallback did
    provider           TEXT,              -- NULL for a tool
    upstream_model     TEXT,              -- NULL for a tool
    tool               TEXT,              -- NULL for a model
    input_tokens       INTEGER NOT NULL,  -- fresh ones
    cached_tokens      INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,  -- reasoning included
    reasoning_tokens   INTEGER NOT NULL,
    estimated          INTEGER NOT NULL,  -- 1: the tokens were counted here, not by the provider
    cost_nano_usd      INTEGER,           -- billionths of a dollar; NULL: not known
    reported_nano_usd  INTEGER,           -- what the provider says that it cost
    outcome            TEXT    NOT NULL,
    requests           INTEGER NOT NULL,  -- 1: the first row of its request
    PRIMARY KEY (at, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX ledger_users ON ledger (key, end_user, at) WHERE end_user IS NOT NULL;

-- The sums of the rows that were dropped since. An empty text is none.
CREATE TABLE carried (
    key                TEXT    NOT NULL,
    end_user           TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    served             TEXT    NOT NULL,
    provider           TEXT    NOT NULL,
    tool               TEXT    NOT NULL,
    newest             INTEGER NOT NULL,  -- the time of the newest of them
    calls              INTEGER NOT NULL,
    requests           INTEGER NOT NULL,
    input_tokens       INTEGER NOT NULL,
    cached_tokens      INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cost_nano_usd      INTEGER NOT NULL,  -- what is known of it
    unknown_calls      INTEGER NOT NULL,  -- rows whose cost is not known
    estimated_calls    INTEGER NOT NULL,
    PRIMARY KEY (key, end_user, model, served, provider, tool)
) STRICT, WITHOUT ROWID;
