-- What is hidden of runs that wait for their callers, for an hour.
CREATE TABLE pauses (
    key          text        NOT NULL,  -- the caller
    end_user     text        NOT NULL,  -- for whom it acted; an empty text is nobody
    calls        bytea       NOT NULL,  -- a digest of the ids of the calls that it was given
    conversation bytea       NOT NULL,  -- a digest of the conversation up to them
    at           timestamptz NOT NULL,  -- when it began to wait
    content      bytea       NOT NULL,  -- a digest of what is hidden
    bytes        bigint      NOT NULL,  -- the length of `state`
    state        text,                    -- JSON; NULL: nothing is hidden
    PRIMARY KEY (key, end_user, calls, conversation)
);

CREATE INDEX pauses_conversations ON pauses (key, end_user, conversation);
CREATE INDEX pauses_at ON pauses (at);
