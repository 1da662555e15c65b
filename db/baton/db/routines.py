"""The functions and triggers inside Postgres, rendered from the table of edges.

All run with a pinned ``search_path``. Those that write ledgers are SECURITY DEFINER, so that a
transition by raw SQL leaves its row whoever makes it.
"""

from __future__ import annotations

from collections.abc import Iterable

from baton.db.edges import EDGES, GUARD_SQL, Edge, Machine

CLOCK_BODY = "SELECT clock_timestamp()"

#: VOLATILE and one SELECT, so that Postgres inlines it. In a WHERE it stands as ``(SELECT app.clock())``,
#: evaluated once, which an index can use. A test database replaces it; nothing else may.
CLOCK = f"CREATE FUNCTION app.clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ {CLOCK_BODY} $$"

#: The member's firm from the transaction's setting. After SET LOCAL ends the setting is '' and not NULL.
FIRM_ID = (
    "CREATE FUNCTION app.firm_id() RETURNS uuid LANGUAGE sql STABLE AS $$ "
    "SELECT NULLIF(current_setting('baton.firm_id', true), '')::uuid $$"
)

#: System roles see every firm by membership, which a session cannot grant to itself. Invoker rights: the answer is
#: about the current role, so a registrar that has become a member for an apply is staff no longer.
IS_STAFF = (
    "CREATE FUNCTION app.is_staff_or_false() RETURNS boolean LANGUAGE sql STABLE AS $$ "
    "SELECT coalesce(pg_has_role(current_user, 'baton_staff', 'USAGE'), false) $$"
)

#: Full text search as one firm's member. ``@@`` is not leakproof: under a policy the GIN index would never be used, so a
#: role of its own with a policy of ``true`` runs it and takes the firm from the transaction's setting. What cannot be
#: shown (deleted, or being read again) is left out before the best are taken: it must not take their places.
SEARCH = """
CREATE FUNCTION app.search(query text, max_rows integer)
RETURNS TABLE (document_id uuid, matter_id uuid, name text, page_number integer, rank real, snippet text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH hit AS MATERIALIZED (
    SELECT s.document_id, d.matter_id, d.name, d.extraction_run_id, s.page_number,
           ts_rank(s.vector, q.query) AS rank, q.query
    FROM (SELECT websearch_to_tsquery('simple', $1) AS query) q
    JOIN document_search s ON s.vector @@ q.query
    JOIN documents d ON d.id = s.document_id AND d.firm_id = (SELECT app.firm_id())
                    AND d.deleted_at IS NULL AND d.extraction_run_id IS NOT NULL
    WHERE s.firm_id = (SELECT app.firm_id())
    ORDER BY rank DESC, s.document_id, s.page_number
    LIMIT least(greatest($2, 0), 1000)
  )
  SELECT hit.document_id, hit.matter_id, hit.name, hit.page_number, hit.rank,
         ts_headline('simple', p.text, hit.query, 'MaxFragments=1, MaxWords=18, MinWords=6')
  FROM hit
  JOIN document_page p ON p.document_id = hit.document_id AND p.extraction_run_id = hit.extraction_run_id
                      AND p.page_number = hit.page_number AND p.firm_id = (SELECT app.firm_id())
  ORDER BY hit.rank DESC, hit.document_id, hit.page_number
$$"""

_REFUSE = "RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = '{constraint}', MESSAGE = {message}"


def _moves(edges: Iterable[Edge]) -> str:
    return ", ".join(f"('{edge.source}', '{edge.target}')" for edge in edges)


def _legal(machine: Machine, column: str) -> str:
    """SQL over OLD and NEW that is true for the machine's legal moves."""
    terms = []
    for guard in (None, *GUARD_SQL):
        edges = [edge for edge in EDGES[machine] if edge.guard is guard]
        if edges:
            term = f"(OLD.{column}, NEW.{column}) IN ({_moves(edges)})"
            terms.append(term if guard is None else f"({term} AND {GUARD_SQL[guard]})")
    return "\n      OR ".join(terms)


def _refuse(machine: Machine, column: str) -> str:
    message = f"format('{machine} status cannot go from %s to %s', OLD.{column}, NEW.{column})"
    return _REFUSE.format(constraint=f"{machine}_status_edge", message=message)


_LEDGER = """
    INSERT INTO ops.document_status_transition
      (firm_id, document_id, axis, from_status, to_status, extraction_epoch, extraction_run_id,
       registration_attempt, registration_run_id, failure_kind, message, actor, application)
    VALUES (NEW.firm_id, NEW.id, '{axis}', OLD.{axis}_status, NEW.{axis}_status, NEW.extraction_epoch,
       coalesce(NEW.extraction_run_id, OLD.extraction_run_id), NEW.registration_attempt,
       coalesce(NEW.registration_run_id, OLD.registration_run_id), NEW.failure_kind, NEW.{axis}_message,
       session_user, current_setting('application_name'));"""

#: Entering a state anew clears its mark unless the same UPDATE writes a new one: whatever made the move, what is
#: missing afterwards is in the index of its discrepancy.
DOCUMENT_GUARD = f"""
CREATE FUNCTION app.guard_document() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NEW.extraction_epoch < OLD.extraction_epoch
     OR (NEW.extraction_epoch > OLD.extraction_epoch AND NEW.processing_status <> 'uploaded') THEN
    {_REFUSE.format(constraint="extraction_epoch", message="'the epoch only rises, with a return to uploaded'")};
  END IF;
  IF NEW.processing_status IS DISTINCT FROM OLD.processing_status
     OR NEW.extraction_epoch > OLD.extraction_epoch THEN
    IF NEW.processing_status IS DISTINCT FROM OLD.processing_status AND NOT (
      {_legal(Machine.PROCESSING, "processing_status")}
    ) THEN
      {_refuse(Machine.PROCESSING, "processing_status")};
    END IF;
    NEW.processing_status_since := app.clock();
    IF NEW.processing_status = 'uploaded' AND NEW.ingest_ticket_id IS NOT DISTINCT FROM OLD.ingest_ticket_id THEN
      NEW.ingest_ticket_id := NULL;
    END IF;{_LEDGER.format(axis="processing")}
  END IF;
  IF NEW.registration_status IS DISTINCT FROM OLD.registration_status THEN
    IF NOT (
      {_legal(Machine.REGISTRATION, "registration_status")}
    ) THEN
      {_refuse(Machine.REGISTRATION, "registration_status")};
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
    END IF;{_LEDGER.format(axis="registration")}
  END IF;
  RETURN NEW;
END $$"""

DOCUMENT_INITIAL = f"""
CREATE FUNCTION app.guard_document_insert() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  {_REFUSE.format(constraint="document_initial_status", message="'a document begins as pending and not_requested'")};
END $$"""

RUN_GUARD = f"""
CREATE FUNCTION app.guard_run() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT (
      {_legal(Machine.RUN, "state")}
  ) THEN
    {_refuse(Machine.RUN, "state")};
  END IF;
  RETURN NEW;
END $$"""

PART_GUARD = f"""
CREATE FUNCTION app.guard_part() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT (
      {_legal(Machine.PART, "state")}
  ) THEN
    {_refuse(Machine.PART, "state")};
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
END $$"""

TICKET_GUARD = f"""
CREATE FUNCTION app.guard_ticket() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  {_REFUSE.format(constraint="ticket_immutable", message="'a ticket keeps its identity, and is sent and closed once'")};
END $$"""

APPEND_ONLY = f"""
CREATE FUNCTION app.refuse_rewrite() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  {_REFUSE.format(constraint="append_only", message="format('%s is append-only', TG_TABLE_NAME)")};
END $$"""

FUNCTIONS = (
    CLOCK,
    FIRM_ID,
    IS_STAFF,
    SEARCH,
    DOCUMENT_GUARD,
    DOCUMENT_INITIAL,
    RUN_GUARD,
    PART_GUARD,
    TICKET_GUARD,
    APPEND_ONLY,
)

#: Columns of a ticket that say what it is.
TICKET_IDENTITY = (
    "id",
    "firm_id",
    "matter_id",
    "document_id",
    "event_type",
    "idempotency_key",
    "generation",
    "redrive_of",
    "extraction_epoch",
    "extraction_run_id",
    "attempt",
    "run_id",
    "part",
    "request_id",
    "created_at",
)

#: A WHEN clause is evaluated in C: the hot updates of the relay never enter plpgsql.
_REWRITES_TICKET = " OR ".join(
    [
        *(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in TICKET_IDENTITY),
        "(OLD.dispatched_at IS NOT NULL AND NEW.dispatched_at IS DISTINCT FROM OLD.dispatched_at)",
        (
            "(OLD.handled_at IS NOT NULL AND (NEW.handled_at IS DISTINCT FROM OLD.handled_at"
            " OR NEW.outcome IS DISTINCT FROM OLD.outcome))"
        ),
    ]
)
LEDGERS = ("ops.document_status_transition", "ops.audit_event", "ops.registration_repair")

_MOVES = " OR ".join(
    f"NEW.{column} IS DISTINCT FROM OLD.{column}"
    for column in ("processing_status", "registration_status", "extraction_epoch")
)
_BEGINS_LATE = "NEW.processing_status <> 'pending' OR NEW.registration_status <> 'not_requested'"
_CHANGES_STATE = "NEW.state IS DISTINCT FROM OLD.state"


def _trigger(
    name: str, when: str, table: str, function: str, *, condition: str | None = None, each: str = "ROW"
) -> str:
    clause = f" WHEN ({condition})" if condition else ""
    return f"CREATE TRIGGER {name} BEFORE {when} ON {table} FOR EACH {each}{clause} EXECUTE FUNCTION app.{function}()"


TRIGGERS = (
    _trigger("guard", "UPDATE", "documents", "guard_document", condition=_MOVES),
    _trigger("initial", "INSERT", "documents", "guard_document_insert", condition=_BEGINS_LATE),
    _trigger("guard", "UPDATE", "agents.agent_run", "guard_run", condition=_CHANGES_STATE),
    _trigger("guard", "UPDATE", "record.understanding_part", "guard_part", condition=_CHANGES_STATE),
    _trigger("guard", "UPDATE", "ops.document_ingest_outbox", "guard_ticket", condition=_REWRITES_TICKET),
    *(_trigger("append_only", "UPDATE OR DELETE", ledger, "refuse_rewrite") for ledger in LEDGERS),
    *(_trigger("append_only_whole", "TRUNCATE", ledger, "refuse_rewrite", each="STATEMENT") for ledger in LEDGERS),
)

#: (table, name) of each trigger.
GUARDED = tuple((words[words.index("ON") + 1], words[2]) for words in map(str.split, TRIGGERS))
