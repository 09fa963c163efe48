-- The tables of a database of OmniDemo's first version, as SQLite has them.
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE pairs (
    id INTEGER NOT NULL,
    target VARCHAR(400) NOT NULL,
    drafter VARCHAR(400) NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT uq_pairs_target_drafter UNIQUE (target, drafter)
);
CREATE TABLE sessions (
    id VARCHAR(200) NOT NULL,
    created_at VARCHAR(40) NOT NULL,
    keep BOOLEAN NOT NULL,
    learn BOOLEAN NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE requests (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    session_id VARCHAR(200) NOT NULL,
    pair_id INTEGER NOT NULL,
    created_at VARCHAR(40) NOT NULL,
    kind VARCHAR(40) NOT NULL,
    method VARCHAR(80) NOT NULL,
    domain VARCHAR(200) NOT NULL,
    adapter_version INTEGER NOT NULL,
    seed VARCHAR(40),
    prompt_tokens INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    seconds FLOAT,
    tokens_per_second FLOAT,
    acceptance_rate FLOAT,
    alpha FLOAT,
    block_efficiency FLOAT,
    ngram_hits INTEGER NOT NULL,
    time_to_first_token FLOAT,
    engine_overhead FLOAT,
    estimated_speedup FLOAT,
    cache_entries INTEGER NOT NULL,
    cache_bytes INTEGER NOT NULL,
    finish_reason VARCHAR(40) NOT NULL,
    settings JSON NOT NULL,
    metrics JSON NOT NULL,
    prompt TEXT,
    answer TEXT,
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE,
    FOREIGN KEY(pair_id) REFERENCES pairs (id) ON DELETE CASCADE
);
CREATE INDEX ix_requests_pair ON requests (pair_id, id);
CREATE INDEX ix_requests_session ON requests (session_id, id);
CREATE TABLE rounds (
    request_id INTEGER NOT NULL,
    "index" INTEGER NOT NULL,
    draft_length INTEGER NOT NULL,
    drafted INTEGER NOT NULL,
    proposed INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    judged INTEGER NOT NULL,
    ngram_hits INTEGER NOT NULL,
    emitted INTEGER NOT NULL,
    draft_seconds FLOAT,
    verify_seconds FLOAT,
    settle_seconds FLOAT,
    other_seconds FLOAT,
    total_seconds FLOAT,
    PRIMARY KEY (request_id, "index"),
    FOREIGN KEY(request_id) REFERENCES requests (id) ON DELETE CASCADE
);
CREATE TABLE ngrams (
    pair_id INTEGER NOT NULL,
    target_id INTEGER NOT NULL,
    drafter_ids JSON NOT NULL,
    hits INTEGER NOT NULL,
    accepts INTEGER NOT NULL,
    inserted_at INTEGER NOT NULL,
    last_used INTEGER NOT NULL,
    PRIMARY KEY (pair_id, target_id),
    FOREIGN KEY(pair_id) REFERENCES pairs (id) ON DELETE CASCADE
);
CREATE TABLE adapter_versions (
    pair_id INTEGER NOT NULL,
    domain VARCHAR(200) NOT NULL,
    version INTEGER NOT NULL,
    path TEXT,
    sha256 VARCHAR(64),
    parent INTEGER,
    requests_seen INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    loss FLOAT,
    effect JSON NOT NULL,
    created_at VARCHAR(40) NOT NULL,
    active BOOLEAN NOT NULL,
    PRIMARY KEY (pair_id, domain, version),
    FOREIGN KEY(pair_id) REFERENCES pairs (id) ON DELETE CASCADE
);
CREATE TABLE training_steps (
    id INTEGER NOT NULL,
    pair_id INTEGER NOT NULL,
    domain VARCHAR(200) NOT NULL,
    version INTEGER NOT NULL,
    step INTEGER NOT NULL,
    loss FLOAT,
    loss_direct FLOAT,
    loss_ngram FLOAT,
    grad_norm FLOAT,
    learning_rate FLOAT,
    seconds FLOAT,
    created_at VARCHAR(40) NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(pair_id) REFERENCES pairs (id) ON DELETE CASCADE
);
CREATE INDEX ix_training_steps_line ON training_steps (pair_id, domain, id);
INSERT INTO alembic_version VALUES ('0001');
