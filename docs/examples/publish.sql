-- Fenced publication with nothing but psql:
--
--     psql -X -q -v id=42 -v collect='fetch-items 42' -f publish.sql
--
-- Claims the row `id` of app.source, runs `collect`, and publishes each line that it writes as an item of the row: all of
-- them, or none. Ends with status 0 only when they are published. `collect` has three minutes; what needs longer renews
-- the claim meanwhile, from a connection of its own: see publish.py.

\set ON_ERROR_STOP on

SELECT result, coalesce(message, '') AS message, attempt, encode(token, 'hex') AS token, gen_random_uuid() AS nonce
FROM tenure.claim_row('app.source', 'id', :'id', soft_delete => 'deleted_at', ttl => '180 s') \gset
SELECT tenure.lose(:'result', :'message') WHERE :'result' <> 'ok' \g /dev/null

-- No transaction is open now. A last line that is a dot says that the command went well.
\setenv COLLECT :collect
\set items `eval "$COLLECT" && echo .`

-- One short transaction. The token stands in a setting, because a statement that fails is logged; what follows is sent
-- as one message, of which the server skips everything after the first failure.
\set ON_ERROR_STOP off
BEGIN;
SELECT set_config('tenure.token', :'token', true) AS token \gset
SELECT tenure.publication_begin(:'attempt') \;
SELECT tenure.lose('invalid', 'the collection failed') WHERE :'items' !~ '(^|\n)\.$' \;
DELETE FROM app.item WHERE source = :'id' \;
INSERT INTO app.item (source, value) SELECT :'id', item FROM string_to_table(left(:'items', -2), E'\n') item \;
SELECT tenure.publication_end(:'attempt', nonce => :'nonce') \g /dev/null
COMMIT;
\set why :LAST_ERROR_MESSAGE

-- Was it committed? If not, the claim is still there, and ends with the reason.
BEGIN;
SELECT set_config('tenure.token', :'token', true) AS token \gset
SELECT result <> 'ok' AS lost FROM tenure.settle_ask(:'attempt', NULL, :'nonce') \gset
SELECT tenure.fail(:'attempt', NULL, :'why') WHERE :'lost' \g /dev/null
COMMIT;
\set ON_ERROR_STOP on
SELECT tenure.lose('invalid', 'nothing was published: ' || :'why') WHERE :'lost' \g /dev/null
