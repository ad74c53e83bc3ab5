-- The walkers that continue: sequences whose next prefix the trie has just gained, at its node.
-- In: walkers, grown (node, token, next_node). Out: next_walkers (node, tokens, users).
CREATE TEMP TABLE next_walkers AS
SELECT grown.next_node AS node, walkers.tokens, walkers.users
FROM walkers
INNER JOIN grown
    ON
        walkers.node = grown.node
        AND try_element_at(walkers.tokens, $level) = grown.token;
