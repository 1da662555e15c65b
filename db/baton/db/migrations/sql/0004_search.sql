GRANT CREATE ON SCHEMA app TO baton_search
--;;
SET LOCAL ROLE baton_search
--;;
CREATE OR REPLACE FUNCTION app.search(query text, max_rows integer)
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
$$
--;;
SET LOCAL ROLE baton_owner
--;;
REVOKE CREATE ON SCHEMA app FROM baton_search
