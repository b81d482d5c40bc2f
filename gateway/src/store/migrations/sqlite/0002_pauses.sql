-- What is hidden of runs that wait for their callers, for an hour.
CREATE TABLE pauses (
    key          TEXT        NOT NULL,  -- the caller
    end_user     TEXT        NOT NULL,  -- for whom it acted; an empty text is nobody
    calls        BLOB        NOT NULL,  -- a digest of the ids of the calls that it was given
    conversation BLOB        NOT NULL,  -- a digest of the conversation up to them
    at           INTEGER     NOT NULL,  -- when it began to wait: microseconds since 1970-01-01 UTC
    content      BLOB        NOT NULL,  -- a digest of what is hidden
    bytes        INTEGER     NOT NULL,  -- the length of `state`
    state        TEXT,                    -- JSON; NULL: nothing is hidden
    PRIMARY KEY (key, end_user, calls, conversation)
) STRICT;

CREATE INDEX pauses_conversations ON pauses (key, end_user, conversation);
CREATE INDEX pauses_at ON pauses (at);
