CREATE SCHEMA ops
--;;
CREATE SCHEMA agents
--;;
CREATE SCHEMA record
--;;
CREATE SCHEMA inbox
--;;
CREATE FUNCTION app.clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() $$
--;;
CREATE FUNCTION app.firm_id() RETURNS uuid LANGUAGE sql STABLE AS $$ SELECT NULLIF(current_setting('baton.firm_id', true), '')::uuid $$
--;;
CREATE FUNCTION app.is_staff_or_false() RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT coalesce(pg_has_role(current_user, 'baton_staff', 'USAGE'), false) $$
--;;
CREATE TABLE app.release (
	singleton BOOLEAN DEFAULT 'true' NOT NULL, 
	min_app_version TEXT NOT NULL, 
	CONSTRAINT release_pkey PRIMARY KEY (singleton), 
	CONSTRAINT release_singleton_check CHECK (singleton)
)
--;;
CREATE TABLE documents (
	id UUID NOT NULL, 
	firm_id UUID NOT NULL, 
	matter_id UUID NOT NULL, 
	name TEXT NOT NULL, 
	object_key TEXT NOT NULL, 
	content_type TEXT NOT NULL, 
	size_bytes BIGINT, 
	checksum_sha256 TEXT, 
	processing_status TEXT DEFAULT 'pending' NOT NULL, 
	processing_status_since TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	registration_status TEXT DEFAULT 'not_requested' NOT NULL, 
	registration_status_since TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	extraction_epoch INTEGER DEFAULT '1' NOT NULL, 
	extraction_attempt INTEGER DEFAULT '0' NOT NULL, 
	extraction_run_id UUID, 
	registration_attempt INTEGER DEFAULT '0' NOT NULL, 
	registration_run_id UUID, 
	registration_pass UUID, 
	understood_pass UUID, 
	ingest_ticket_id BIGINT, 
	registration_ticket_id BIGINT, 
	next_attempt_at TIMESTAMP WITH TIME ZONE, 
	failure_kind TEXT, 
	processing_message TEXT, 
	registration_message TEXT, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	deleted_at TIMESTAMP WITH TIME ZONE, 
	CONSTRAINT documents_pkey PRIMARY KEY (id), 
	CONSTRAINT documents_processing_status_check CHECK (processing_status IN ('pending', 'uploaded', 'stored', 'extracting', 'indexed', 'needs_review', 'failed')), 
	CONSTRAINT documents_registration_status_check CHECK (registration_status IN ('not_requested', 'queued', 'registering', 'registered', 'registration_failed', 'registration_needs_review')), 
	CONSTRAINT documents_name_check CHECK (length(name) BETWEEN 1 AND 1024), 
	CONSTRAINT documents_object_key_check CHECK (length(object_key) BETWEEN 1 AND 1024), 
	CONSTRAINT documents_size_bytes_check CHECK (size_bytes >= 0), 
	CONSTRAINT documents_extraction_epoch_check CHECK (extraction_epoch >= 1), 
	CONSTRAINT documents_text_has_pass_check CHECK (processing_status NOT IN ('indexed', 'needs_review') OR extraction_run_id IS NOT NULL), 
	CONSTRAINT documents_status_has_pass_check CHECK (registration_status = 'not_requested' OR registration_pass IS NOT NULL), 
	CONSTRAINT documents_next_attempt_check CHECK (next_attempt_at IS NULL OR registration_status = 'registration_failed'), 
	CONSTRAINT documents_firm_id_id_key UNIQUE (firm_id, id), 
	CONSTRAINT documents_firm_id_object_key_key UNIQUE (firm_id, object_key)
)
 WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.005)
--;;
CREATE INDEX doc_checksum ON documents (firm_id, checksum_sha256) WHERE checksum_sha256 IS NOT NULL AND deleted_at IS NULL
--;;
CREATE INDEX doc_matter ON documents (firm_id, matter_id, id)
--;;
CREATE INDEX doc_open_ing ON documents (processing_status, processing_status_since, id) WHERE processing_status IN ('uploaded', 'stored', 'extracting') AND deleted_at IS NULL
--;;
CREATE INDEX doc_open_reg ON documents (registration_status, registration_status_since, id) WHERE registration_status IN ('queued', 'registering') AND deleted_at IS NULL
--;;
CREATE INDEX m_fan_out_missing ON documents (registration_status_since, id) WHERE registration_status = 'registered' AND understood_pass IS DISTINCT FROM registration_pass AND deleted_at IS NULL
--;;
CREATE INDEX m_ingest_ticket_missing ON documents (processing_status_since, id) WHERE processing_status = 'uploaded' AND ingest_ticket_id IS NULL AND deleted_at IS NULL
--;;
CREATE INDEX m_pass_superseded ON documents (registration_status_since, id) WHERE registration_status <> 'not_requested' AND registration_pass IS DISTINCT FROM extraction_run_id AND deleted_at IS NULL
--;;
CREATE INDEX m_request_missing ON documents (processing_status_since, id) WHERE processing_status = 'indexed' AND registration_status = 'not_requested' AND deleted_at IS NULL
--;;
CREATE INDEX m_request_ticket_missing ON documents (registration_status_since, id) WHERE registration_status = 'queued' AND registration_ticket_id IS NULL AND deleted_at IS NULL
--;;
CREATE INDEX m_retry ON documents (next_attempt_at, id) WHERE registration_status = 'registration_failed' AND next_attempt_at IS NOT NULL AND deleted_at IS NULL
--;;
CREATE INDEX m_run_missing ON documents (registration_status_since, id) WHERE registration_status = 'registering' AND registration_run_id IS NULL AND deleted_at IS NULL
--;;
CREATE INDEX m_upload_abandoned ON documents (processing_status_since, id) WHERE processing_status = 'pending' AND deleted_at IS NULL
--;;
CREATE TABLE ops.agent_spend (
	minute TIMESTAMP WITH TIME ZONE NOT NULL, 
	runs INTEGER NOT NULL, 
	CONSTRAINT agent_spend_pkey PRIMARY KEY (minute)
)
--;;
CREATE TABLE ops.consumer_heartbeat (
	consumer_id UUID NOT NULL, 
	queue TEXT NOT NULL, 
	version TEXT NOT NULL, 
	started_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	polled_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	CONSTRAINT consumer_heartbeat_pkey PRIMARY KEY (consumer_id), 
	CONSTRAINT consumer_heartbeat_queue_check CHECK (queue IN ('ingest', 'registrar', 'results'))
)
--;;
CREATE TABLE ops.dispatch_guard (
	singleton BOOLEAN DEFAULT 'true' NOT NULL, 
	runs_per_hour INTEGER, 
	breaker TEXT DEFAULT 'closed' NOT NULL, 
	breaker_since TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	retry_at TIMESTAMP WITH TIME ZONE, 
	trial_runs_left INTEGER DEFAULT '0' NOT NULL, 
	reason TEXT, 
	CONSTRAINT dispatch_guard_pkey PRIMARY KEY (singleton), 
	CONSTRAINT dispatch_guard_singleton_check CHECK (singleton), 
	CONSTRAINT dispatch_guard_breaker_check CHECK (breaker IN ('closed', 'open', 'trial'))
)
--;;
CREATE TABLE record.firm_policy (
	firm_id UUID NOT NULL, 
	kind TEXT NOT NULL, 
	decision TEXT NOT NULL, 
	confidence_floor REAL DEFAULT '0' NOT NULL, 
	CONSTRAINT firm_policy_pkey PRIMARY KEY (firm_id, kind), 
	CONSTRAINT firm_policy_kind_check CHECK (kind IN ('name', 'type', 'tag', 'party', 'date', 'link')), 
	CONSTRAINT firm_policy_decision_check CHECK (decision IN ('apply', 'propose', 'deny')), 
	CONSTRAINT firm_policy_confidence_floor_check CHECK (confidence_floor BETWEEN 0 AND 1)
)
--;;
CREATE TABLE agents.agent_run (
	run_id UUID NOT NULL, 
	seq BIGINT GENERATED ALWAYS AS IDENTITY, 
	firm_id UUID NOT NULL, 
	document_id UUID NOT NULL, 
	extraction_run_id UUID NOT NULL, 
	attempt INTEGER NOT NULL, 
	purpose TEXT NOT NULL, 
	result_schema TEXT NOT NULL, 
	state TEXT DEFAULT 'pending' NOT NULL, 
	ticket_id BIGINT, 
	traceparent TEXT, 
	invoke_count INTEGER DEFAULT '0' NOT NULL, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	accepted_at TIMESTAMP WITH TIME ZONE, 
	deadline_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	settled_at TIMESTAMP WITH TIME ZONE, 
	result_key TEXT NOT NULL, 
	result_digest TEXT, 
	message TEXT, 
	artifact_ticket_id BIGINT, 
	CONSTRAINT agent_run_pkey PRIMARY KEY (run_id), 
	CONSTRAINT agent_run_firm_id_document_id_fkey FOREIGN KEY(firm_id, document_id) REFERENCES documents (firm_id, id), 
	CONSTRAINT agent_run_purpose_check CHECK (purpose IN ('classify', 'card', 'sections', 'brief')), 
	CONSTRAINT agent_run_state_check CHECK (state IN ('pending', 'delivered', 'rejected', 'expired', 'superseded', 'undispatched')), 
	CONSTRAINT agent_run_settled_check CHECK ((state = 'pending') = (settled_at IS NULL)), 
	CONSTRAINT agent_run_firm_id_run_id_key UNIQUE (firm_id, run_id)
)
 WITH (fillfactor = 85)
--;;
CREATE INDEX m_artifact_unopened ON agents.agent_run (settled_at, run_id) WHERE state IN ('delivered', 'rejected', 'expired') AND artifact_ticket_id IS NULL
--;;
CREATE INDEX run_deadline ON agents.agent_run (deadline_at, run_id) WHERE state = 'pending'
--;;
CREATE INDEX run_document ON agents.agent_run (document_id, purpose, seq)
--;;
CREATE UNIQUE INDEX run_one_pending ON agents.agent_run (document_id, purpose, firm_id) WHERE state = 'pending'
--;;
CREATE INDEX run_settled_brin ON agents.agent_run USING brin (settled_at) WITH (pages_per_range = 32, autosummarize = on)
--;;
CREATE TABLE document_page (
	firm_id UUID NOT NULL, 
	document_id UUID NOT NULL, 
	extraction_run_id UUID NOT NULL, 
	page_number INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	source TEXT NOT NULL, 
	confidence REAL, 
	CONSTRAINT document_page_pkey PRIMARY KEY (document_id, extraction_run_id, page_number, firm_id), 
	CONSTRAINT document_page_firm_id_document_id_fkey FOREIGN KEY(firm_id, document_id) REFERENCES documents (firm_id, id), 
	CONSTRAINT document_page_source_check CHECK (source IN ('native', 'ocr')), 
	CONSTRAINT document_page_page_number_check CHECK (page_number >= 1)
)
--;;
CREATE TABLE document_search (
	firm_id UUID NOT NULL, 
	document_id UUID NOT NULL, 
	page_number INTEGER NOT NULL, 
	vector TSVECTOR NOT NULL, 
	CONSTRAINT document_search_pkey PRIMARY KEY (document_id, page_number, firm_id), 
	CONSTRAINT document_search_firm_id_document_id_fkey FOREIGN KEY(firm_id, document_id) REFERENCES documents (firm_id, id)
)
--;;
CREATE INDEX document_search_vector ON document_search USING gin (firm_id, vector)
--;;
CREATE TABLE inbox.item (
	id UUID NOT NULL, 
	firm_id UUID NOT NULL, 
	matter_id UUID NOT NULL, 
	document_id UUID NOT NULL, 
	kind TEXT NOT NULL, 
	dedup_key TEXT NOT NULL, 
	summary TEXT NOT NULL, 
	run_id UUID, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	resolved_at TIMESTAMP WITH TIME ZONE, 
	resolved_by TEXT, 
	CONSTRAINT item_pkey PRIMARY KEY (id), 
	CONSTRAINT item_firm_id_document_id_fkey FOREIGN KEY(firm_id, document_id) REFERENCES documents (firm_id, id), 
	CONSTRAINT item_firm_id_dedup_key_key UNIQUE (firm_id, dedup_key)
)
--;;
CREATE INDEX item_document ON inbox.item (document_id)
--;;
CREATE INDEX item_open ON inbox.item (firm_id, created_at, id) WHERE resolved_at IS NULL
--;;
CREATE TABLE ops.audit_event (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	firm_id UUID NOT NULL, 
	matter_id UUID NOT NULL, 
	document_id UUID NOT NULL, 
	event TEXT NOT NULL, 
	actor TEXT NOT NULL, 
	at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	detail JSONB DEFAULT '{}' NOT NULL, 
	CONSTRAINT audit_event_pkey PRIMARY KEY (id), 
	CONSTRAINT audit_event_firm_id_document_id_fkey FOREIGN KEY(firm_id, document_id) REFERENCES documents (firm_id, id)
)
--;;
CREATE INDEX audit_document ON ops.audit_event (document_id, id)
--;;
CREATE TABLE ops.document_ingest_outbox (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	firm_id UUID NOT NULL, 
	matter_id UUID NOT NULL, 
	document_id UUID NOT NULL, 
	event_type TEXT NOT NULL, 
	lane TEXT GENERATED ALWAYS AS (CASE WHEN event_type = 'document.ingest.requested' THEN 'ingest' ELSE 'registrar' END) STORED NOT NULL, 
	idempotency_key TEXT NOT NULL, 
	generation INTEGER DEFAULT '1' NOT NULL, 
	redrive_of BIGINT, 
	extraction_epoch INTEGER NOT NULL, 
	extraction_run_id UUID, 
	attempt INTEGER DEFAULT '0' NOT NULL, 
	run_id UUID, 
	part TEXT, 
	request_id UUID, 
	object_key TEXT NOT NULL, 
	content_type TEXT NOT NULL, 
	traceparent TEXT, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	not_before TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	attempts INTEGER DEFAULT '0' NOT NULL, 
	last_error TEXT, 
	claimed_at TIMESTAMP WITH TIME ZONE, 
	dispatched_at TIMESTAMP WITH TIME ZONE, 
	message_id TEXT, 
	parked_at TIMESTAMP WITH TIME ZONE, 
	first_received_at TIMESTAMP WITH TIME ZONE, 
	receive_count INTEGER DEFAULT '0' NOT NULL, 
	hold_until TIMESTAMP WITH TIME ZONE, 
	work_attempts INTEGER DEFAULT '0' NOT NULL, 
	handled_at TIMESTAMP WITH TIME ZONE, 
	outcome TEXT, 
	CONSTRAINT document_ingest_outbox_pkey PRIMARY KEY (id), 
	CONSTRAINT document_ingest_outbox_firm_id_document_id_fkey FOREIGN KEY(firm_id, document_id) REFERENCES documents (firm_id, id), 
	CONSTRAINT document_ingest_outbox_event_type_check CHECK (event_type IN ('document.ingest.requested', 'document.registration.requested', 'document.resegment.requested', 'document.understanding.requested', 'document.artifact.delivered')), 
	CONSTRAINT document_ingest_outbox_outcome_check CHECK (outcome IN ('done', 'document_deleted', 'stale', 'already_done', 'stood_down', 'replaced', 'refused', 'poison')), 
	CONSTRAINT document_ingest_outbox_part_check CHECK (part IN ('card', 'sections', 'brief')), 
	CONSTRAINT document_ingest_outbox_handled_check CHECK ((handled_at IS NULL) = (outcome IS NULL)), 
	CONSTRAINT document_ingest_outbox_idempotency_key_check CHECK (length(idempotency_key) BETWEEN 1 AND 128), 
	CONSTRAINT document_ingest_outbox_generation_check CHECK (generation >= 1 AND (generation = 1) = (redrive_of IS NULL)), 
	CONSTRAINT document_ingest_outbox_run_check CHECK ((event_type = 'document.artifact.delivered') = (run_id IS NOT NULL)), 
	CONSTRAINT document_ingest_outbox_pass_check CHECK (event_type = 'document.ingest.requested' OR extraction_run_id IS NOT NULL), 
	CONSTRAINT document_ingest_outbox_part_given_check CHECK ((event_type IN ('document.understanding.requested', 'document.resegment.requested')) = (part IS NOT NULL)), 
	CONSTRAINT document_ingest_outbox_request_check CHECK ((event_type = 'document.resegment.requested') = (request_id IS NOT NULL)), 
	CONSTRAINT document_ingest_outbox_parked_check CHECK (parked_at IS NULL OR dispatched_at IS NULL), 
	CONSTRAINT document_ingest_outbox_firm_id_idempotency_key_key UNIQUE (firm_id, idempotency_key)
)
 WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500000, autovacuum_analyze_scale_factor = 0.005, vacuum_index_cleanup = on)
--;;
CREATE INDEX o_open ON ops.document_ingest_outbox (lane, dispatched_at, id) WHERE dispatched_at IS NOT NULL AND handled_at IS NULL
--;;
CREATE INDEX o_parked ON ops.document_ingest_outbox (parked_at, id) WHERE parked_at IS NOT NULL AND handled_at IS NULL
--;;
CREATE INDEX o_pending ON ops.document_ingest_outbox (lane, not_before, id) WHERE dispatched_at IS NULL AND parked_at IS NULL AND handled_at IS NULL
--;;
CREATE INDEX o_pending_firm ON ops.document_ingest_outbox (lane, firm_id, not_before, id) WHERE dispatched_at IS NULL AND parked_at IS NULL AND handled_at IS NULL
--;;
CREATE INDEX outbox_document ON ops.document_ingest_outbox (document_id, id)
--;;
CREATE TABLE ops.document_status_transition (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	firm_id UUID NOT NULL, 
	document_id UUID NOT NULL, 
	axis TEXT NOT NULL, 
	from_status TEXT NOT NULL, 
	to_status TEXT NOT NULL, 
	at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	extraction_epoch INTEGER NOT NULL, 
	extraction_run_id UUID, 
	registration_attempt INTEGER NOT NULL, 
	registration_run_id UUID, 
	failure_kind TEXT, 
	message TEXT, 
	actor TEXT NOT NULL, 
	application TEXT NOT NULL, 
	CONSTRAINT document_status_transition_pkey PRIMARY KEY (id), 
	CONSTRAINT document_status_transition_firm_id_document_id_fkey FOREIGN KEY(firm_id, document_id) REFERENCES documents (firm_id, id), 
	CONSTRAINT document_status_transition_axis_check CHECK (axis IN ('processing', 'registration'))
)
--;;
CREATE INDEX transition_document ON ops.document_status_transition (document_id, id)
--;;
CREATE TABLE ops.registration_repair (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	firm_id UUID NOT NULL, 
	document_id UUID NOT NULL, 
	aspect TEXT NOT NULL, 
	discrepancy TEXT NOT NULL, 
	action TEXT NOT NULL, 
	result TEXT NOT NULL, 
	reason TEXT, 
	extraction_run_id UUID, 
	ticket_id BIGINT, 
	run_id UUID, 
	requested_by TEXT NOT NULL, 
	detail JSONB DEFAULT '{}' NOT NULL, 
	at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	CONSTRAINT registration_repair_pkey PRIMARY KEY (id), 
	CONSTRAINT registration_repair_firm_id_document_id_fkey FOREIGN KEY(firm_id, document_id) REFERENCES documents (firm_id, id)
)
--;;
CREATE INDEX repair_at ON ops.registration_repair (at)
--;;
CREATE INDEX repair_document ON ops.registration_repair (document_id, at)
--;;
CREATE TABLE record.intent_claim (
	firm_id UUID NOT NULL, 
	document_id UUID NOT NULL, 
	extraction_run_id UUID NOT NULL, 
	intent_key TEXT NOT NULL, 
	run_id UUID NOT NULL, 
	assertion_id BIGINT, 
	claimed_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	CONSTRAINT intent_claim_pkey PRIMARY KEY (document_id, extraction_run_id, intent_key, firm_id), 
	CONSTRAINT intent_claim_firm_id_document_id_fkey FOREIGN KEY(firm_id, document_id) REFERENCES documents (firm_id, id), 
	CONSTRAINT intent_claim_intent_key_check CHECK (length(intent_key) BETWEEN 1 AND 300)
)
--;;
CREATE TABLE record.part_content (
	firm_id UUID NOT NULL, 
	document_id UUID NOT NULL, 
	extraction_run_id UUID NOT NULL, 
	part TEXT NOT NULL, 
	run_id UUID NOT NULL, 
	content JSONB NOT NULL, 
	written_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	CONSTRAINT part_content_pkey PRIMARY KEY (document_id, extraction_run_id, part, firm_id), 
	CONSTRAINT part_content_firm_id_document_id_fkey FOREIGN KEY(firm_id, document_id) REFERENCES documents (firm_id, id), 
	CONSTRAINT part_content_part_check CHECK (part IN ('card', 'sections', 'brief'))
)
--;;
CREATE TABLE record.understanding_part (
	firm_id UUID NOT NULL, 
	document_id UUID NOT NULL, 
	extraction_run_id UUID NOT NULL, 
	part TEXT NOT NULL, 
	state TEXT DEFAULT 'requested' NOT NULL, 
	state_since TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	attempt INTEGER DEFAULT '1' NOT NULL, 
	ticket_id BIGINT, 
	run_id UUID, 
	next_attempt_at TIMESTAMP WITH TIME ZONE, 
	message TEXT, 
	CONSTRAINT understanding_part_pkey PRIMARY KEY (document_id, extraction_run_id, part, firm_id), 
	CONSTRAINT understanding_part_firm_id_document_id_fkey FOREIGN KEY(firm_id, document_id) REFERENCES documents (firm_id, id), 
	CONSTRAINT understanding_part_part_check CHECK (part IN ('card', 'sections', 'brief')), 
	CONSTRAINT understanding_part_state_check CHECK (state IN ('requested', 'running', 'ready', 'failed')), 
	CONSTRAINT understanding_part_next_attempt_check CHECK (next_attempt_at IS NULL OR state = 'failed')
)
 WITH (fillfactor = 85)
--;;
CREATE INDEX part_open ON record.understanding_part (state_since, document_id, part) WHERE state IN ('requested', 'running')
--;;
CREATE INDEX part_retry ON record.understanding_part (next_attempt_at, document_id, part) WHERE state = 'failed' AND next_attempt_at IS NOT NULL
--;;
CREATE INDEX part_run_missing ON record.understanding_part (state_since, document_id, part) WHERE state = 'running' AND run_id IS NULL
--;;
CREATE INDEX part_ticket_missing ON record.understanding_part (state_since, document_id, part) WHERE state = 'requested' AND ticket_id IS NULL
--;;
CREATE TABLE agents.agent_effect (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	firm_id UUID NOT NULL, 
	document_id UUID NOT NULL, 
	run_id UUID NOT NULL, 
	ordinal INTEGER NOT NULL, 
	schema_name TEXT NOT NULL, 
	data JSONB NOT NULL, 
	disposition TEXT DEFAULT 'verified' NOT NULL, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	applied_at TIMESTAMP WITH TIME ZONE, 
	CONSTRAINT agent_effect_pkey PRIMARY KEY (id), 
	CONSTRAINT agent_effect_firm_id_document_id_fkey FOREIGN KEY(firm_id, document_id) REFERENCES documents (firm_id, id), 
	CONSTRAINT agent_effect_firm_id_run_id_fkey FOREIGN KEY(firm_id, run_id) REFERENCES agents.agent_run (firm_id, run_id), 
	CONSTRAINT agent_effect_disposition_check CHECK (disposition IN ('verified', 'applied', 'stale')), 
	CONSTRAINT agent_effect_firm_id_run_id_ordinal_key UNIQUE (firm_id, run_id, ordinal)
)
--;;
CREATE INDEX effect_document ON agents.agent_effect (document_id, schema_name, id)
--;;
CREATE TABLE record.assertion (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	firm_id UUID NOT NULL, 
	document_id UUID NOT NULL, 
	extraction_run_id UUID NOT NULL, 
	run_id UUID NOT NULL, 
	kind TEXT NOT NULL, 
	value TEXT NOT NULL, 
	detail JSONB DEFAULT '{}' NOT NULL, 
	target_document_id UUID, 
	state TEXT NOT NULL, 
	confidence REAL NOT NULL, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	decided_at TIMESTAMP WITH TIME ZONE, 
	decided_by TEXT, 
	CONSTRAINT assertion_pkey PRIMARY KEY (id), 
	CONSTRAINT assertion_firm_id_document_id_fkey FOREIGN KEY(firm_id, document_id) REFERENCES documents (firm_id, id), 
	CONSTRAINT assertion_firm_id_target_document_id_fkey FOREIGN KEY(firm_id, target_document_id) REFERENCES documents (firm_id, id), 
	CONSTRAINT assertion_firm_id_run_id_fkey FOREIGN KEY(firm_id, run_id) REFERENCES agents.agent_run (firm_id, run_id), 
	CONSTRAINT assertion_kind_check CHECK (kind IN ('name', 'type', 'tag', 'party', 'date', 'link')), 
	CONSTRAINT assertion_state_check CHECK (state IN ('applied', 'proposed', 'denied', 'accepted', 'declined', 'superseded')), 
	CONSTRAINT assertion_decided_check CHECK ((decided_at IS NOT NULL) = (state IN ('accepted', 'declined'))), 
	CONSTRAINT assertion_confidence_check CHECK (confidence BETWEEN 0 AND 1), 
	CONSTRAINT assertion_value_check CHECK (length(value) BETWEEN 1 AND 2000)
)
--;;
CREATE INDEX assertion_document ON record.assertion (document_id, kind, id)
--;;

CREATE FUNCTION app.search(query text, max_rows integer)
RETURNS TABLE (document_id uuid, matter_id uuid, name text, page_number integer, rank real, snippet text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH hit AS MATERIALIZED (
    SELECT s.document_id, s.page_number, ts_rank(s.vector, q.query) AS rank, q.query
    FROM (SELECT websearch_to_tsquery('simple', $1) AS query) q
    JOIN document_search s ON s.vector @@ q.query
    WHERE s.firm_id = (SELECT app.firm_id())
    ORDER BY 3 DESC, s.document_id, s.page_number
    LIMIT least(greatest($2, 0), 1000)
  )
  SELECT d.id, d.matter_id, d.name, hit.page_number, hit.rank,
         ts_headline('simple', p.text, hit.query, 'MaxFragments=1, MaxWords=18, MinWords=6')
  FROM hit
  JOIN documents d ON d.id = hit.document_id AND d.firm_id = (SELECT app.firm_id()) AND d.deleted_at IS NULL
  JOIN document_page p ON p.document_id = d.id AND p.extraction_run_id = d.extraction_run_id
                      AND p.page_number = hit.page_number AND p.firm_id = d.firm_id
  ORDER BY hit.rank DESC, d.id, hit.page_number
$$
--;;

CREATE FUNCTION app.guard_document() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NEW.extraction_epoch < OLD.extraction_epoch
     OR (NEW.extraction_epoch > OLD.extraction_epoch AND NEW.processing_status <> 'uploaded') THEN
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'extraction_epoch', MESSAGE = 'the epoch only rises, with a return to uploaded';
  END IF;
  IF NEW.processing_status IS DISTINCT FROM OLD.processing_status
     OR NEW.extraction_epoch > OLD.extraction_epoch THEN
    IF NEW.processing_status IS DISTINCT FROM OLD.processing_status AND NOT (
      (OLD.processing_status, NEW.processing_status) IN (('pending', 'uploaded'), ('uploaded', 'stored'), ('stored', 'extracting'), ('extracting', 'indexed'), ('extracting', 'needs_review'), ('extracting', 'failed'), ('uploaded', 'failed'), ('stored', 'failed'))
      OR ((OLD.processing_status, NEW.processing_status) IN (('stored', 'uploaded'), ('extracting', 'uploaded'), ('indexed', 'uploaded'), ('needs_review', 'uploaded'), ('failed', 'uploaded')) AND NEW.extraction_epoch > OLD.extraction_epoch)
    ) THEN
      RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'processing_status_edge', MESSAGE = format('processing status cannot go from %s to %s', OLD.processing_status, NEW.processing_status);
    END IF;
    NEW.processing_status_since := app.clock();
    IF NEW.processing_status = 'uploaded' AND NEW.ingest_ticket_id IS NOT DISTINCT FROM OLD.ingest_ticket_id THEN
      NEW.ingest_ticket_id := NULL;
    END IF;
    INSERT INTO ops.document_status_transition
      (firm_id, document_id, axis, from_status, to_status, extraction_epoch, extraction_run_id,
       registration_attempt, registration_run_id, failure_kind, message, actor, application)
    VALUES (NEW.firm_id, NEW.id, 'processing', OLD.processing_status, NEW.processing_status, NEW.extraction_epoch,
       coalesce(NEW.extraction_run_id, OLD.extraction_run_id), NEW.registration_attempt,
       coalesce(NEW.registration_run_id, OLD.registration_run_id), NEW.failure_kind, NEW.processing_message,
       session_user, current_setting('application_name'));
  END IF;
  IF NEW.registration_status IS DISTINCT FROM OLD.registration_status THEN
    IF NOT (
      (OLD.registration_status, NEW.registration_status) IN (('not_requested', 'queued'), ('queued', 'registering'), ('registering', 'registered'), ('registering', 'registration_failed'), ('registering', 'registration_needs_review'), ('registering', 'queued'), ('registration_failed', 'queued'), ('registration_needs_review', 'queued'))
      OR ((OLD.registration_status, NEW.registration_status) IN (('queued', 'not_requested'), ('registering', 'not_requested'), ('registered', 'not_requested'), ('registration_failed', 'not_requested'), ('registration_needs_review', 'not_requested')) AND NEW.extraction_run_id IS DISTINCT FROM OLD.registration_pass)
    ) THEN
      RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'registration_status_edge', MESSAGE = format('registration status cannot go from %s to %s', OLD.registration_status, NEW.registration_status);
    END IF;
    NEW.registration_status_since := app.clock();
    IF NEW.registration_status IN ('queued', 'not_requested') THEN
      IF NEW.registration_ticket_id IS NOT DISTINCT FROM OLD.registration_ticket_id THEN
        NEW.registration_ticket_id := NULL;
      END IF;
      NEW.registration_run_id := NULL;
    END IF;
    IF NEW.registration_status = 'not_requested' THEN
      NEW.registration_pass := NULL;
    END IF;
    IF NEW.registration_status <> 'registration_failed' THEN
      NEW.next_attempt_at := NULL;
    END IF;
    INSERT INTO ops.document_status_transition
      (firm_id, document_id, axis, from_status, to_status, extraction_epoch, extraction_run_id,
       registration_attempt, registration_run_id, failure_kind, message, actor, application)
    VALUES (NEW.firm_id, NEW.id, 'registration', OLD.registration_status, NEW.registration_status, NEW.extraction_epoch,
       coalesce(NEW.extraction_run_id, OLD.extraction_run_id), NEW.registration_attempt,
       coalesce(NEW.registration_run_id, OLD.registration_run_id), NEW.failure_kind, NEW.registration_message,
       session_user, current_setting('application_name'));
  END IF;
  RETURN NEW;
END $$
--;;

CREATE FUNCTION app.guard_document_insert() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'document_initial_status', MESSAGE = 'a document begins as pending and not_requested';
END $$
--;;

CREATE FUNCTION app.guard_run() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT (
      (OLD.state, NEW.state) IN (('pending', 'delivered'), ('pending', 'rejected'), ('pending', 'expired'), ('pending', 'superseded'), ('pending', 'undispatched'))
  ) THEN
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'run_status_edge', MESSAGE = format('run status cannot go from %s to %s', OLD.state, NEW.state);
  END IF;
  RETURN NEW;
END $$
--;;

CREATE FUNCTION app.guard_part() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT (
      (OLD.state, NEW.state) IN (('requested', 'running'), ('running', 'requested'), ('running', 'ready'), ('running', 'failed'), ('failed', 'requested'), ('ready', 'requested'))
  ) THEN
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'part_status_edge', MESSAGE = format('part status cannot go from %s to %s', OLD.state, NEW.state);
  END IF;
  NEW.state_since := app.clock();
  IF NEW.state = 'requested' THEN
    IF NEW.ticket_id IS NOT DISTINCT FROM OLD.ticket_id THEN
      NEW.ticket_id := NULL;
    END IF;
    NEW.run_id := NULL;
  END IF;
  IF NEW.state <> 'failed' THEN
    NEW.next_attempt_at := NULL;
  END IF;
  RETURN NEW;
END $$
--;;

CREATE FUNCTION app.guard_ticket() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'ticket_immutable', MESSAGE = 'a ticket keeps its identity, and is sent and closed once';
END $$
--;;

CREATE FUNCTION app.refuse_rewrite() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'append_only', MESSAGE = format('%s is append-only', TG_TABLE_NAME);
END $$
--;;
CREATE TRIGGER guard BEFORE UPDATE ON documents FOR EACH ROW WHEN (NEW.processing_status IS DISTINCT FROM OLD.processing_status OR NEW.registration_status IS DISTINCT FROM OLD.registration_status OR NEW.extraction_epoch IS DISTINCT FROM OLD.extraction_epoch) EXECUTE FUNCTION app.guard_document()
--;;
CREATE TRIGGER initial BEFORE INSERT ON documents FOR EACH ROW WHEN (NEW.processing_status <> 'pending' OR NEW.registration_status <> 'not_requested') EXECUTE FUNCTION app.guard_document_insert()
--;;
CREATE TRIGGER guard BEFORE UPDATE ON agents.agent_run FOR EACH ROW WHEN (NEW.state IS DISTINCT FROM OLD.state) EXECUTE FUNCTION app.guard_run()
--;;
CREATE TRIGGER guard BEFORE UPDATE ON record.understanding_part FOR EACH ROW WHEN (NEW.state IS DISTINCT FROM OLD.state) EXECUTE FUNCTION app.guard_part()
--;;
CREATE TRIGGER guard BEFORE UPDATE ON ops.document_ingest_outbox FOR EACH ROW WHEN (NEW.id IS DISTINCT FROM OLD.id OR NEW.firm_id IS DISTINCT FROM OLD.firm_id OR NEW.matter_id IS DISTINCT FROM OLD.matter_id OR NEW.document_id IS DISTINCT FROM OLD.document_id OR NEW.event_type IS DISTINCT FROM OLD.event_type OR NEW.idempotency_key IS DISTINCT FROM OLD.idempotency_key OR NEW.generation IS DISTINCT FROM OLD.generation OR NEW.redrive_of IS DISTINCT FROM OLD.redrive_of OR NEW.extraction_epoch IS DISTINCT FROM OLD.extraction_epoch OR NEW.extraction_run_id IS DISTINCT FROM OLD.extraction_run_id OR NEW.attempt IS DISTINCT FROM OLD.attempt OR NEW.run_id IS DISTINCT FROM OLD.run_id OR NEW.part IS DISTINCT FROM OLD.part OR NEW.request_id IS DISTINCT FROM OLD.request_id OR NEW.created_at IS DISTINCT FROM OLD.created_at OR (OLD.dispatched_at IS NOT NULL AND NEW.dispatched_at IS DISTINCT FROM OLD.dispatched_at) OR (OLD.handled_at IS NOT NULL AND (NEW.handled_at IS DISTINCT FROM OLD.handled_at OR NEW.outcome IS DISTINCT FROM OLD.outcome))) EXECUTE FUNCTION app.guard_ticket()
--;;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON ops.document_status_transition FOR EACH ROW EXECUTE FUNCTION app.refuse_rewrite()
--;;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON ops.audit_event FOR EACH ROW EXECUTE FUNCTION app.refuse_rewrite()
--;;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON ops.registration_repair FOR EACH ROW EXECUTE FUNCTION app.refuse_rewrite()
--;;
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON ops.document_status_transition FOR EACH STATEMENT EXECUTE FUNCTION app.refuse_rewrite()
--;;
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON ops.audit_event FOR EACH STATEMENT EXECUTE FUNCTION app.refuse_rewrite()
--;;
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON ops.registration_repair FOR EACH STATEMENT EXECUTE FUNCTION app.refuse_rewrite()
--;;
ALTER TABLE documents ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE documents FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON documents TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON documents TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON documents TO baton_extractor, baton_registrar, baton_reconciler, baton_observer USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
CREATE POLICY search_policy ON documents TO baton_search USING (true) WITH CHECK (true)
--;;
ALTER TABLE document_page ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE document_page FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON document_page TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON document_page TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON document_page TO baton_extractor, baton_registrar, baton_reconciler USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
CREATE POLICY search_policy ON document_page TO baton_search USING (true) WITH CHECK (true)
--;;
ALTER TABLE document_search ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE document_search FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON document_search TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY system_policy ON document_search TO baton_extractor USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
CREATE POLICY search_policy ON document_search TO baton_search USING (true) WITH CHECK (true)
--;;
ALTER TABLE ops.document_ingest_outbox ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE ops.document_ingest_outbox FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON ops.document_ingest_outbox TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON ops.document_ingest_outbox TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON ops.document_ingest_outbox TO baton_relay, baton_extractor, baton_registrar, baton_settler, baton_reconciler, baton_observer USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
ALTER TABLE ops.document_status_transition ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE ops.document_status_transition FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON ops.document_status_transition TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON ops.document_status_transition TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON ops.document_status_transition TO baton_reconciler, baton_observer USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
ALTER TABLE ops.audit_event ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE ops.audit_event FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON ops.audit_event TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON ops.audit_event TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON ops.audit_event TO baton_extractor, baton_registrar, baton_reconciler, baton_observer USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
ALTER TABLE ops.registration_repair ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE ops.registration_repair FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON ops.registration_repair TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON ops.registration_repair TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON ops.registration_repair TO baton_reconciler, baton_observer USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
ALTER TABLE agents.agent_run ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE agents.agent_run FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON agents.agent_run TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON agents.agent_run TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON agents.agent_run TO baton_registrar, baton_settler, baton_reconciler, baton_observer USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
ALTER TABLE agents.agent_effect ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE agents.agent_effect FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON agents.agent_effect TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON agents.agent_effect TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON agents.agent_effect TO baton_registrar, baton_settler, baton_reconciler USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
ALTER TABLE record.assertion ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE record.assertion FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON record.assertion TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON record.assertion TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON record.assertion TO baton_registrar, baton_reconciler USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
ALTER TABLE record.intent_claim ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE record.intent_claim FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON record.intent_claim TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON record.intent_claim TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON record.intent_claim TO baton_registrar, baton_reconciler, baton_observer USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
ALTER TABLE record.firm_policy ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE record.firm_policy FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON record.firm_policy TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON record.firm_policy TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON record.firm_policy TO baton_registrar, baton_reconciler USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
ALTER TABLE record.understanding_part ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE record.understanding_part FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON record.understanding_part TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON record.understanding_part TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON record.understanding_part TO baton_registrar, baton_reconciler, baton_observer USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
ALTER TABLE record.part_content ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE record.part_content FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON record.part_content TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON record.part_content TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON record.part_content TO baton_registrar, baton_reconciler USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
ALTER TABLE inbox.item ENABLE ROW LEVEL SECURITY
--;;
ALTER TABLE inbox.item FORCE ROW LEVEL SECURITY
--;;
CREATE POLICY owner_policy ON inbox.item TO baton_owner USING (true) WITH CHECK (true)
--;;
CREATE POLICY firm_isolation_policy ON inbox.item TO baton_member USING (firm_id = (SELECT app.firm_id())) WITH CHECK (firm_id = (SELECT app.firm_id()))
--;;
CREATE POLICY system_policy ON inbox.item TO baton_reconciler, baton_observer USING ((SELECT app.is_staff_or_false())) WITH CHECK ((SELECT app.is_staff_or_false()))
--;;
GRANT SELECT, INSERT, UPDATE (processing_status, processing_message, failure_kind, extraction_run_id, extraction_attempt, ingest_ticket_id, size_bytes, checksum_sha256, content_type, registration_status, registration_message, registration_attempt, registration_run_id, registration_pass, registration_ticket_id, next_attempt_at, extraction_epoch, understood_pass, deleted_at, name) ON documents TO baton_member
--;;
GRANT SELECT ON document_page TO baton_member
--;;
GRANT SELECT, INSERT, UPDATE (handled_at, outcome) ON ops.document_ingest_outbox TO baton_member
--;;
GRANT SELECT ON ops.document_status_transition TO baton_member
--;;
GRANT SELECT, INSERT ON ops.audit_event TO baton_member
--;;
GRANT SELECT, UPDATE (state, settled_at, message) ON agents.agent_run TO baton_member
--;;
GRANT SELECT ON agents.agent_effect TO baton_member
--;;
GRANT SELECT, INSERT, UPDATE (state, decided_at, decided_by) ON record.assertion TO baton_member
--;;
GRANT SELECT, INSERT, UPDATE (run_id, assertion_id, claimed_at) ON record.intent_claim TO baton_member
--;;
GRANT SELECT, INSERT, DELETE, UPDATE (decision, confidence_floor) ON record.firm_policy TO baton_member
--;;
GRANT SELECT, INSERT, UPDATE (state, attempt, ticket_id, run_id, next_attempt_at, message) ON record.understanding_part TO baton_member
--;;
GRANT SELECT ON record.part_content TO baton_member
--;;
GRANT SELECT, INSERT, UPDATE (resolved_at, resolved_by) ON inbox.item TO baton_member
--;;
GRANT SELECT ON ops.registration_repair TO baton_member
--;;
GRANT SELECT ON app.release TO baton_member
--;;
GRANT SELECT ON app.alembic_version TO baton_member
--;;
GRANT SELECT, UPDATE (attempts, last_error, claimed_at, dispatched_at, message_id, parked_at, not_before) ON ops.document_ingest_outbox TO baton_relay
--;;
GRANT SELECT ON app.release TO baton_relay
--;;
GRANT SELECT ON app.alembic_version TO baton_relay
--;;
GRANT SELECT, UPDATE (processing_status, processing_message, failure_kind, extraction_run_id, extraction_attempt, ingest_ticket_id, size_bytes, checksum_sha256, content_type, registration_status, registration_pass, registration_attempt, registration_ticket_id, registration_message) ON documents TO baton_extractor
--;;
GRANT SELECT, INSERT ON document_page TO baton_extractor
--;;
GRANT SELECT, INSERT, DELETE ON document_search TO baton_extractor
--;;
GRANT SELECT, INSERT, UPDATE (first_received_at, receive_count, hold_until, work_attempts, handled_at, outcome) ON ops.document_ingest_outbox TO baton_extractor
--;;
GRANT SELECT, INSERT ON ops.audit_event TO baton_extractor
--;;
GRANT SELECT, INSERT, DELETE, UPDATE (polled_at) ON ops.consumer_heartbeat TO baton_extractor
--;;
GRANT SELECT ON app.release TO baton_extractor
--;;
GRANT SELECT ON app.alembic_version TO baton_extractor
--;;
GRANT SELECT, UPDATE (registration_status, registration_message, registration_attempt, registration_run_id, registration_pass, registration_ticket_id, next_attempt_at, failure_kind, understood_pass) ON documents TO baton_registrar
--;;
GRANT SELECT ON document_page TO baton_registrar
--;;
GRANT SELECT, INSERT, UPDATE (first_received_at, receive_count, hold_until, work_attempts, handled_at, outcome) ON ops.document_ingest_outbox TO baton_registrar
--;;
GRANT SELECT, INSERT ON ops.audit_event TO baton_registrar
--;;
GRANT SELECT, INSERT, UPDATE (state, settled_at, message, invoke_count, accepted_at) ON agents.agent_run TO baton_registrar
--;;
GRANT SELECT, UPDATE (disposition, applied_at) ON agents.agent_effect TO baton_registrar
--;;
GRANT SELECT ON record.assertion TO baton_registrar
--;;
GRANT SELECT ON record.intent_claim TO baton_registrar
--;;
GRANT SELECT ON record.firm_policy TO baton_registrar
--;;
GRANT SELECT, INSERT, UPDATE (state, attempt, ticket_id, run_id, next_attempt_at, message) ON record.understanding_part TO baton_registrar
--;;
GRANT SELECT, INSERT, UPDATE (run_id, content, written_at) ON record.part_content TO baton_registrar
--;;
GRANT SELECT, INSERT, DELETE, UPDATE (polled_at) ON ops.consumer_heartbeat TO baton_registrar
--;;
GRANT SELECT, UPDATE (breaker, breaker_since, retry_at, trial_runs_left, reason) ON ops.dispatch_guard TO baton_registrar
--;;
GRANT SELECT, INSERT, DELETE, UPDATE (runs) ON ops.agent_spend TO baton_registrar
--;;
GRANT SELECT ON app.release TO baton_registrar
--;;
GRANT SELECT ON app.alembic_version TO baton_registrar
--;;
GRANT SELECT, UPDATE (state, settled_at, message, result_digest, artifact_ticket_id) ON agents.agent_run TO baton_settler
--;;
GRANT SELECT, INSERT ON agents.agent_effect TO baton_settler
--;;
GRANT SELECT, INSERT ON ops.document_ingest_outbox TO baton_settler
--;;
GRANT SELECT, INSERT, DELETE, UPDATE (polled_at) ON ops.consumer_heartbeat TO baton_settler
--;;
GRANT SELECT ON app.release TO baton_settler
--;;
GRANT SELECT ON app.alembic_version TO baton_settler
--;;
GRANT SELECT, UPDATE (processing_status, processing_message, failure_kind, extraction_run_id, extraction_attempt, ingest_ticket_id, size_bytes, checksum_sha256, content_type, registration_status, registration_message, registration_attempt, registration_run_id, registration_pass, registration_ticket_id, next_attempt_at, understood_pass, extraction_epoch) ON documents TO baton_reconciler
--;;
GRANT SELECT ON document_page TO baton_reconciler
--;;
GRANT SELECT, INSERT, UPDATE (first_received_at, receive_count, hold_until, work_attempts, handled_at, outcome, parked_at, not_before) ON ops.document_ingest_outbox TO baton_reconciler
--;;
GRANT SELECT ON ops.document_status_transition TO baton_reconciler
--;;
GRANT SELECT, INSERT ON ops.audit_event TO baton_reconciler
--;;
GRANT SELECT, INSERT ON ops.registration_repair TO baton_reconciler
--;;
GRANT SELECT, INSERT, UPDATE (state, settled_at, message, result_digest, artifact_ticket_id) ON agents.agent_run TO baton_reconciler
--;;
GRANT SELECT, INSERT ON agents.agent_effect TO baton_reconciler
--;;
GRANT SELECT ON record.assertion TO baton_reconciler
--;;
GRANT SELECT ON record.intent_claim TO baton_reconciler
--;;
GRANT SELECT ON record.firm_policy TO baton_reconciler
--;;
GRANT SELECT, INSERT, UPDATE (state, attempt, ticket_id, run_id, next_attempt_at, message) ON record.understanding_part TO baton_reconciler
--;;
GRANT SELECT ON record.part_content TO baton_reconciler
--;;
GRANT SELECT, INSERT ON inbox.item TO baton_reconciler
--;;
GRANT SELECT ON ops.consumer_heartbeat TO baton_reconciler
--;;
GRANT SELECT, UPDATE (runs_per_hour, breaker, breaker_since, retry_at, trial_runs_left, reason) ON ops.dispatch_guard TO baton_reconciler
--;;
GRANT SELECT, INSERT, DELETE, UPDATE (runs) ON ops.agent_spend TO baton_reconciler
--;;
GRANT SELECT ON app.release TO baton_reconciler
--;;
GRANT SELECT ON app.alembic_version TO baton_reconciler
--;;
GRANT SELECT ON documents TO baton_observer
--;;
GRANT SELECT ON ops.document_ingest_outbox TO baton_observer
--;;
GRANT SELECT ON ops.document_status_transition TO baton_observer
--;;
GRANT SELECT ON ops.audit_event TO baton_observer
--;;
GRANT SELECT ON ops.registration_repair TO baton_observer
--;;
GRANT SELECT ON agents.agent_run TO baton_observer
--;;
GRANT SELECT ON record.understanding_part TO baton_observer
--;;
GRANT SELECT ON inbox.item TO baton_observer
--;;
GRANT SELECT ON record.intent_claim TO baton_observer
--;;
GRANT SELECT ON ops.consumer_heartbeat TO baton_observer
--;;
GRANT SELECT ON ops.dispatch_guard TO baton_observer
--;;
GRANT SELECT ON ops.agent_spend TO baton_observer
--;;
GRANT SELECT ON app.release TO baton_observer
--;;
GRANT SELECT ON app.alembic_version TO baton_observer
--;;
GRANT SELECT ON documents TO baton_support
--;;
GRANT SELECT ON document_page TO baton_support
--;;
GRANT SELECT ON document_search TO baton_support
--;;
GRANT SELECT ON ops.document_ingest_outbox TO baton_support
--;;
GRANT SELECT ON ops.document_status_transition TO baton_support
--;;
GRANT SELECT ON ops.audit_event TO baton_support
--;;
GRANT SELECT ON ops.registration_repair TO baton_support
--;;
GRANT SELECT ON agents.agent_run TO baton_support
--;;
GRANT SELECT ON agents.agent_effect TO baton_support
--;;
GRANT SELECT ON record.assertion TO baton_support
--;;
GRANT SELECT ON record.intent_claim TO baton_support
--;;
GRANT SELECT ON record.firm_policy TO baton_support
--;;
GRANT SELECT ON record.understanding_part TO baton_support
--;;
GRANT SELECT ON record.part_content TO baton_support
--;;
GRANT SELECT ON inbox.item TO baton_support
--;;
GRANT SELECT ON app.release TO baton_support
--;;
GRANT SELECT ON app.alembic_version TO baton_support
--;;
GRANT SELECT ON documents TO baton_search
--;;
GRANT SELECT ON document_page TO baton_search
--;;
GRANT SELECT ON document_search TO baton_search
--;;
GRANT USAGE ON SCHEMA public TO baton_member_app, baton_relay, baton_extractor, baton_registrar, baton_settler, baton_reconciler, baton_observer, baton_support, baton_member, baton_search
--;;
GRANT USAGE ON SCHEMA app TO baton_member_app, baton_relay, baton_extractor, baton_registrar, baton_settler, baton_reconciler, baton_observer, baton_support, baton_member, baton_search
--;;
GRANT USAGE ON SCHEMA ops TO baton_member_app, baton_relay, baton_extractor, baton_registrar, baton_settler, baton_reconciler, baton_observer, baton_support, baton_member, baton_search
--;;
GRANT USAGE ON SCHEMA agents TO baton_member_app, baton_relay, baton_extractor, baton_registrar, baton_settler, baton_reconciler, baton_observer, baton_support, baton_member, baton_search
--;;
GRANT USAGE ON SCHEMA record TO baton_member_app, baton_relay, baton_extractor, baton_registrar, baton_settler, baton_reconciler, baton_observer, baton_support, baton_member, baton_search
--;;
GRANT USAGE ON SCHEMA inbox TO baton_member_app, baton_relay, baton_extractor, baton_registrar, baton_settler, baton_reconciler, baton_observer, baton_support, baton_member, baton_search
--;;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA app FROM PUBLIC
--;;
GRANT EXECUTE ON FUNCTION app.clock(), app.firm_id(), app.is_staff_or_false() TO baton_member_app, baton_relay, baton_extractor, baton_registrar, baton_settler, baton_reconciler, baton_observer, baton_support, baton_member, baton_search
--;;
GRANT EXECUTE ON FUNCTION app.search(text, integer) TO baton_member
--;;
GRANT CREATE ON SCHEMA app TO baton_search
--;;
ALTER FUNCTION app.search(text, integer) OWNER TO baton_search
--;;
REVOKE CREATE ON SCHEMA app FROM baton_search
--;;
INSERT INTO ops.dispatch_guard DEFAULT VALUES
--;;
INSERT INTO app.release (min_app_version) VALUES ('0.1.0')
