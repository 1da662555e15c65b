CREATE TABLE ops.lane_reading (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	lane TEXT NOT NULL, 
	at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	visible INTEGER NOT NULL, 
	in_flight INTEGER NOT NULL, 
	delayed INTEGER NOT NULL, 
	CONSTRAINT lane_reading_pkey PRIMARY KEY (id), 
	CONSTRAINT lane_reading_lane_check CHECK (lane IN ('ingest', 'registrar')), 
	CONSTRAINT lane_reading_depth_check CHECK (visible >= 0 AND in_flight >= 0 AND delayed >= 0)
)
--;;
CREATE INDEX lane_reading_at ON ops.lane_reading (lane, at)
--;;
CREATE TABLE ops.reconcile_state (
	name TEXT NOT NULL, 
	value JSONB NOT NULL, 
	updated_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	CONSTRAINT reconcile_state_pkey PRIMARY KEY (name)
)
--;;
CREATE TABLE ops.repair_budget (
	minute TIMESTAMP WITH TIME ZONE NOT NULL, 
	repairs INTEGER NOT NULL, 
	CONSTRAINT repair_budget_pkey PRIMARY KEY (minute)
)
--;;
CREATE TABLE ops.maintenance (
	id UUID NOT NULL, 
	kind TEXT NOT NULL, 
	starts_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	ends_at TIMESTAMP WITH TIME ZONE, 
	reason TEXT NOT NULL, 
	set_by TEXT NOT NULL, 
	lifted_at TIMESTAMP WITH TIME ZONE, 
	CONSTRAINT maintenance_pkey PRIMARY KEY (id), 
	CONSTRAINT maintenance_kind_check CHECK (kind IN ('suspension', 'window')), 
	CONSTRAINT maintenance_reason_check CHECK (length(reason) BETWEEN 1 AND 1000)
)
--;;
CREATE INDEX maintenance_open ON ops.maintenance (starts_at) WHERE lifted_at IS NULL
--;;
CREATE TABLE ops.owner (
	singleton BOOLEAN DEFAULT 'true' NOT NULL, 
	resource TEXT NOT NULL, 
	since TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	seen_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	CONSTRAINT owner_pkey PRIMARY KEY (singleton), 
	CONSTRAINT owner_singleton_check CHECK (singleton)
)
--;;
CREATE TABLE ops.redrive (
	id UUID NOT NULL, 
	requested_by TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	selector JSONB NOT NULL, 
	state TEXT DEFAULT 'running' NOT NULL, 
	cursor JSONB, 
	counts JSONB DEFAULT '{}' NOT NULL, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	finished_at TIMESTAMP WITH TIME ZONE, 
	CONSTRAINT redrive_pkey PRIMARY KEY (id), 
	CONSTRAINT redrive_state_check CHECK (state IN ('running', 'finished', 'stopped')), 
	CONSTRAINT redrive_finished_check CHECK ((state = 'running') = (finished_at IS NULL)), 
	CONSTRAINT redrive_reason_check CHECK (length(reason) BETWEEN 1 AND 1000)
)
--;;
CREATE TABLE ops.dead_letter (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	queue TEXT NOT NULL, 
	message_id TEXT NOT NULL, 
	ticket_id BIGINT, 
	body TEXT NOT NULL, 
	receive_count INTEGER, 
	found_at TIMESTAMP WITH TIME ZONE DEFAULT app.clock() NOT NULL, 
	settled_at TIMESTAMP WITH TIME ZONE, 
	outcome TEXT, 
	reason TEXT, 
	CONSTRAINT dead_letter_pkey PRIMARY KEY (id), 
	CONSTRAINT dead_letter_outcome_check CHECK (outcome IN ('redriven', 'kept', 'obsolete')), 
	CONSTRAINT dead_letter_settled_check CHECK ((outcome IS NULL) = (settled_at IS NULL)), 
	CONSTRAINT dead_letter_queue_message_id_key UNIQUE (queue, message_id)
)
--;;
CREATE INDEX dead_letter_open ON ops.dead_letter (queue, id) WHERE outcome IS NULL
--;;
CREATE INDEX dead_letter_ticket ON ops.dead_letter (ticket_id) WHERE outcome IS NULL
--;;
GRANT SELECT, INSERT, DELETE ON ops.lane_reading TO baton_reconciler
--;;
GRANT SELECT, INSERT, UPDATE (value, updated_at) ON ops.reconcile_state TO baton_reconciler
--;;
GRANT SELECT, INSERT, DELETE, UPDATE (repairs) ON ops.repair_budget TO baton_reconciler
--;;
GRANT SELECT, INSERT, UPDATE (ends_at, lifted_at) ON ops.maintenance TO baton_reconciler
--;;
GRANT SELECT, INSERT, DELETE, UPDATE (resource, since, seen_at) ON ops.owner TO baton_reconciler
--;;
GRANT SELECT, INSERT, UPDATE (state, cursor, counts, finished_at) ON ops.redrive TO baton_reconciler
--;;
GRANT SELECT, INSERT, UPDATE (ticket_id, settled_at, outcome, reason) ON ops.dead_letter TO baton_reconciler
--;;
GRANT SELECT ON ops.lane_reading TO baton_observer
--;;
GRANT SELECT ON ops.reconcile_state TO baton_observer
--;;
GRANT SELECT ON ops.repair_budget TO baton_observer
--;;
GRANT SELECT ON ops.maintenance TO baton_observer
--;;
GRANT SELECT ON ops.owner TO baton_observer
--;;
GRANT SELECT ON ops.redrive TO baton_observer
--;;
GRANT SELECT ON ops.dead_letter TO baton_observer
