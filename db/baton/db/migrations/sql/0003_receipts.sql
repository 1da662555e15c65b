CREATE INDEX CONCURRENTLY o_received ON ops.document_ingest_outbox (lane, first_received_at, id) WHERE first_received_at IS NOT NULL AND handled_at IS NULL
--;;
CREATE INDEX CONCURRENTLY o_received_brin ON ops.document_ingest_outbox USING brin (first_received_at) WITH (pages_per_range = 32, autosummarize = on)
